//! Circles: the files and folders of a module do not import each other in a circle.
//!
//! A path through a re-export of the module counts as an import of the file that has the item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{Source, imports, sources};

/// Circles that stand: the module, and the files and folders of a circle, with the reason. The list
/// only gets shorter; DESIGN.md, 283.
const STANDING: &[(&str, &str)] = &[
    // The data refer to each other: an object has the findings of its store, and a finding keeps
    // the object that does not decode.
    ("framework/cache store::object", "invalid object"),
];

/// The imports between the files and folders of a module.
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the files of each package.
fn packages() -> BTreeMap<&'static Path, Vec<&'static Source>> {
    let mut packages: BTreeMap<&Path, Vec<&Source>> = BTreeMap::new();
    for file in sources("framework") {
        packages.entry(&file.package).or_default().push(file);
    }
    packages
}

/// Returns the imports between the files and folders inside a module of a package.
fn graph<'a>(files: &[(&'a Source, Vec<Vec<String>>)], inside: &[String]) -> Graph<'a> {
    let below = |path: &[String]| path.strip_prefix(inside).and_then(|rest| rest.first()).cloned();
    let parts: BTreeSet<&'a str> = files
        .iter()
        .filter_map(|(file, _)| file.module.strip_prefix(inside)?.first())
        .map(String::as_str)
        .collect();
    // The names that the module's own file exports again, each with its part.
    let mut exports: BTreeMap<String, &'a str> = BTreeMap::new();
    for (file, _) in files.iter().filter(|(file, _)| file.module == inside) {
        for import in imports(file).into_iter().filter(|import| import.export.is_some()) {
            let part = below(&import.path).and_then(|part| parts.get(part.as_str()).copied());
            if let (Some(part), Some(name)) = (part, import.path.last()) {
                exports.insert(name.clone(), part);
            }
        }
    }
    let mut graph = Graph::new();
    for (file, paths) in files {
        let own = file.module.strip_prefix(inside).and_then(|rest| rest.first());
        let Some(own) = own else { continue };
        for name in paths.iter().filter_map(|path| below(path)) {
            let to = parts.get(name.as_str()).or_else(|| exports.get(&name));
            if let Some(to) = to.filter(|to| **to != own.as_str()) {
                graph.entry(own).or_default().insert(to);
            }
        }
    }
    graph
}

/// Returns the parts that a part reaches through imports.
fn reached<'a>(graph: &Graph<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(part) = open.pop() {
        let next = graph.get(part).into_iter().flatten();
        open.extend(next.filter(|to| found.insert(**to)).copied());
    }
    found
}

/// Returns the circles, each as the names of its parts.
fn circles(graph: &Graph<'_>) -> BTreeSet<String> {
    let mut circles = BTreeSet::new();
    for part in graph.keys() {
        let mut circle: Vec<&str> = reached(graph, part).into_iter().collect();
        circle.retain(|other| reached(graph, other).contains(part));
        if !circle.is_empty() {
            circles.insert(circle.join(" "));
        }
    }
    circles
}

#[test]
fn files_of_a_module_import_each_other_in_no_circle() {
    let mut found = BTreeSet::new();
    for (package, files) in packages() {
        let read = |file: &&'static Source| {
            let paths = imports(file).into_iter().map(|import| import.path).collect();
            (*file, paths)
        };
        let files: Vec<(&Source, Vec<Vec<String>>)> = files.iter().map(read).collect();
        let modules: BTreeSet<&[String]> = files
            .iter()
            .flat_map(|(file, _)| (0..file.module.len()).map(|length| &file.module[..length]))
            .collect();
        for inside in modules {
            let place = format!("{} {}", package.display(), inside.join("::"));
            let circles = circles(&graph(&files, inside));
            found.extend(circles.into_iter().map(|circle| (place.clone(), circle)));
        }
    }
    let standing: BTreeSet<(String, String)> =
        STANDING.iter().map(|(place, circle)| ((*place).into(), (*circle).into())).collect();
    let new: Vec<_> = found.difference(&standing).collect();
    assert!(new.is_empty(), "move the shared items into a file below both:\n{new:#?}");
    let gone: Vec<_> = standing.difference(&found).collect();
    assert!(gone.is_empty(), "these circles are gone; take them out of STANDING:\n{gone:#?}");
}

#[test]
fn a_circle_is_seen_through_exports_and_over_several_files() {
    let file = |name: &str, text: &str| {
        let path = format!("framework/x/src/part{name}.rs");
        Source::new(Path::new(&path), text)
    };
    let sources = [
        file("/mod", "mod a; mod b; mod c; mod d; pub use c::Thing;"),
        file("/a", "use super::b::First;"),
        file("/b", "fn f() -> crate::part::Thing { todo!() }"),
        file("/c", "use crate::part::{a::Second, d};"),
        file("/d", "use std::fmt;"),
    ];
    let read = |source| {
        (source, imports(source).into_iter().map(|import| import.path).collect::<Vec<_>>())
    };
    let files: Vec<_> = sources.iter().map(read).collect();
    let found = circles(&graph(&files, &["part".to_owned()]));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a b c"]);
}
