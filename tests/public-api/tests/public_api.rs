//! The public items of the workspace's crates are those of `tests/public-api.txt`.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use windlass_public_api::{CrateSource, Listing, public_items, published_crates};

/// Largest number of public methods of a type; a type with more has several tasks.
const MOST_METHODS: usize = 40;
const HEAD: &str = "\
# Public items of the crates: path, kind and name, one a line; then the public methods per type.
# A test of `windlass-public-api` compares; WINDLASS_PUBLIC_API=accept writes this file anew.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Returns the public items of the workspace, read once for all tests.
fn listing() -> &'static Listing {
    static LISTING: LazyLock<Listing> =
        LazyLock::new(|| public_items(&published_crates(&root()).unwrap()).unwrap());
    &LISTING
}

fn text(listing: &Listing) -> String {
    let lines = listing.lines.iter().map(|line| format!("{line}\n"));
    let methods = listing.methods.iter().map(|(path, count)| format!("methods {path} {count}\n"));
    lines.chain(methods).fold(HEAD.to_owned(), |text, line| text + &line)
}

/// Returns the lines that only a single text has, marked with `-` and `+`, in the texts' order.
fn difference(before: &str, after: &str) -> String {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (before.lines().collect(), after.lines().collect());
    let gone = old.difference(&new).map(|line| (line, '-'));
    let mut all: Vec<_> = gone.chain(new.difference(&old).map(|line| (line, '+'))).collect();
    all.sort();
    all.iter().map(|(line, sign)| format!("{sign} {line}\n")).collect()
}

#[test]
fn public_items_change_on_purpose_only() {
    let file = root().join("tests/public-api.txt");
    let after = text(listing());
    // Accepted items are compared like all others, with the file just written.
    if std::env::var("WINDLASS_PUBLIC_API").is_ok_and(|value| value == "accept") {
        fs::write(&file, &after).unwrap();
    }
    let before = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        before == after,
        "the public items are not those of tests/public-api.txt:\n{}\
         If the change is meant, write the file anew and commit it with the change:\n  \
         WINDLASS_PUBLIC_API=accept cargo test -p windlass-public-api\n",
        difference(&before, &after)
    );
}

#[test]
fn no_type_has_more_than_forty_public_methods() {
    let methods = &listing().methods;
    let large: Vec<_> = methods.iter().filter(|(_, count)| **count > MOST_METHODS).collect();
    assert!(large.is_empty(), "more than {MOST_METHODS} public methods: {large:?}");
}

#[test]
fn the_prelude_has_at_most_sixteen_names() {
    let lines =
        listing().lines.iter().filter_map(|line| line.strip_prefix("windlass::prelude use "));
    // `_` brings the methods of a trait, and no name.
    let names: BTreeSet<_> =
        lines.filter_map(|line| line.split(' ').next()).filter(|name| *name != "_").collect();
    assert!((1..=16).contains(&names.len()), "{} names: {names:?}", names.len());
}

#[test]
fn exports_are_found_through_modules_imports_and_globs() {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixture/src/lib.rs");
    let listing = public_items(&[CrateSource { name: "fixture".to_owned(), root: lib }]).unwrap();
    let expected = [
        "fixture fn renamed",
        "fixture macro exported!",
        "fixture mod prelude",
        "fixture mod shapes",
        "fixture struct Kept",
        "fixture use Circle = fixture::shapes::Circle",
        "fixture use Draw = fixture::shapes::Draw",
        "fixture use Foreign = outside::Foreign",
        "fixture use MADE = fixture::shapes::MADE",
        "fixture use Shape = fixture::shapes::Shape",
        "fixture::Kept field 0",
        "fixture::prelude use Circle = fixture::shapes::Circle",
        "fixture::shapes enum Shape",
        "fixture::shapes generated MADE",
        "fixture::shapes struct Circle",
        "fixture::shapes trait Draw",
        "fixture::shapes::Circle const UNIT",
        "fixture::shapes::Circle field radius",
        "fixture::shapes::Circle fn area",
        "fixture::shapes::Circle fn from_another_module",
        "fixture::shapes::Draw fn draw",
        "fixture::shapes::Draw type Canvas",
        "fixture::shapes::Shape variant Round",
    ];
    assert_eq!(listing.lines, expected, "{:#?}", listing.lines);
    assert_eq!(listing.methods["fixture::shapes::Circle"], 2);
}

#[test]
fn a_difference_names_each_line_that_came_or_went() {
    assert_eq!(
        difference("a fn one\na fn two\n", "a fn two\na fn three\n"),
        "- a fn one\n+ a fn three\n"
    );
    assert_eq!(difference("same\n", "same\n"), "");
}
