//! Parser of comma-separated keys that goes on behind a fault.
//!
//! `syn::parse_nested_meta` stops at the first fault; here the rest of a bad key is skipped up to
//! the next comma, so that a user sees all faults in one compile.

// DESIGN.md, 144: Editors find the documentation of a key by a reference at its position

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Token, parenthesized};

use crate::errors::Errors;

/// A key with the position.
#[derive(Clone, Debug)]
pub(crate) struct SpannedKey {
    /// The key as written.
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// A value with the position.
#[derive(Clone, Debug)]
pub(crate) struct WithSpan<T> {
    /// The value.
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl WithSpan<String> {
    /// The text of a literal, with its position.
    pub(crate) fn text(literal: &LitStr) -> Self {
        Self { value: literal.value(), span: literal.span() }
    }
}

/// Calls `read` for every attribute `#[name(…)]` with its content; other forms are faults. Returns
/// whether all have this form.
pub(crate) fn attributes(
    attributes: &[Attribute],
    name: &str,
    errors: &mut Errors,
    mut read: impl FnMut(ParseStream<'_>, &mut Errors),
) -> bool {
    let mut have_content = true;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        match &attribute.meta {
            syn::Meta::List(list) => {
                let parsed = list.parse_args_with(|input: ParseStream<'_>| {
                    read(input, errors);
                    Ok(())
                });
                errors.keep(parsed);
            }
            other => {
                have_content = false;
                errors.at(other.span(), format_args!("write `#[{name}(…)]`"));
            }
        }
    }
    have_content
}

/// Names of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyNames<'a> {
    /// Keys that can be written.
    pub(crate) keys: &'a [&'a str],
    /// Keys that a misspelt key may stand for.
    pub(crate) suggested: &'a [&'a str],
    /// Words of other tools, and the advice for each.
    pub(crate) hints: &'a [(&'a str, &'a str)],
    /// Words of a message before such a word.
    pub(crate) refusal: &'static str,
}

impl<'a> KeyNames<'a> {
    /// Keys of this framework.
    pub(crate) fn new(keys: &'a [&'a str], hints: &'a [(&'a str, &'a str)]) -> Self {
        Self { keys, suggested: keys, hints, refusal: "there is no key" }
    }
}

/// Reads `key …, key …`: calls `read` behind each key, reports unknown keys, and goes on behind
/// faults. Returns the keys that were written or meant, so that a key with a fault is not reported
/// as missing as well.
pub(crate) fn each_key(
    input: ParseStream<'_>,
    known: &[&str],
    errors: &mut Errors,
    read: impl FnMut(&SpannedKey, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Vec<String> {
    let known = KeyNames::new(known, &[]);
    each_item(input, known, errors, |_, _| None, read)
}

/// As [`each_key`], with hints, and with values that have no key: `other` reads them, or returns
/// `None` where a key begins.
pub(crate) fn each_item(
    input: ParseStream<'_>,
    known: KeyNames<'_>,
    errors: &mut Errors,
    mut other: impl FnMut(ParseStream<'_>, &mut Errors) -> Option<syn::Result<()>>,
    mut read: impl FnMut(&SpannedKey, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Vec<String> {
    let (mut tried, mut given) = (Vec::new(), Vec::new());
    while !input.is_empty() {
        let outcome = match other(input, errors) {
            // The fault may stand for any of the keys.
            Some(Err(fault)) => {
                tried.extend(known.keys.iter().map(ToString::to_string));
                Err(fault)
            }
            Some(outcome) => outcome,
            None if repeats_advice(input, known, &mut given) => {
                skip_to_comma(input);
                Ok(())
            }
            None if input.peek(Lit) => {
                // The value may stand for any of the keys.
                tried.extend(known.keys.iter().map(ToString::to_string));
                let keys: Vec<String> = known.keys.iter().map(|key| format!("`{key}`")).collect();
                Err(input.error(format_args!("expected a key: {}", keys.join(", "))))
            }
            None => one_key(input, known, &mut tried, errors, &mut read),
        };
        match outcome {
            Ok(()) if input.is_empty() || input.peek(Token![,]) => {}
            Ok(()) => {
                errors.at(input.span(), "expected `,`");
                let _ = input.parse::<Option<Token![;]>>();
                // Only the comma is missing: the next key or value is read.
                if is_key(input, known) {
                    continue;
                }
                if let Some(Err(_)) = other(input, errors) {
                    tried.extend(known.keys.iter().map(ToString::to_string));
                }
            }
            Err(fault) => errors.add(fault),
        }
        // The rest of a key with a fault is skipped, for one message per fault.
        skip_to_comma(input);
        let _ = input.parse::<Option<Token![,]>>();
    }
    tried
}

/// Whether a known key comes next.
fn is_key(input: ParseStream<'_>, known: KeyNames<'_>) -> bool {
    let next = input.fork().call(Ident::parse_any);
    next.is_ok_and(|ident| known.keys.contains(&ident.unraw().to_string().as_str()))
}

/// Whether a word of another tool comes next whose advice is among those `given`: two words may
/// have one advice.
fn repeats_advice<'a>(
    input: ParseStream<'_>,
    known: KeyNames<'a>,
    given: &mut Vec<&'a str>,
) -> bool {
    let Ok(next) = input.fork().call(Ident::parse_any) else { return false };
    let name = next.unraw().to_string();
    let hint = known.hints.iter().find(|(word, _)| *word == name);
    let Some((_, advice)) = hint.filter(|_| !known.keys.contains(&name.as_str())) else {
        return false;
    };
    let is_again = given.contains(advice);
    given.push(advice);
    is_again
}

/// Reads a key with the value.
fn one_key(
    input: ParseStream<'_>,
    known: KeyNames<'_>,
    tried: &mut Vec<String>,
    errors: &mut Errors,
    read: &mut impl FnMut(&SpannedKey, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<()> {
    // Any identifier: keys such as `for` and `type` are words of Rust.
    let ident = input.call(Ident::parse_any)?;
    let key = SpannedKey { name: ident.unraw().to_string(), span: ident.span() };
    let hint = known.hints.iter().find(|(word, _)| *word == key.name);
    if let Some((word, advice)) = hint.filter(|_| !known.keys.contains(&key.name.as_str())) {
        // The word may stand for any of the keys.
        tried.extend(known.keys.iter().map(ToString::to_string));
        let message = format!("{} `{word}`: {advice}", known.refusal);
        return Err(syn::Error::new(key.span, message));
    }
    // A misspelt key counts as the closest known key, which is then not reported as missing.
    tried.extend(closest(&key.name, known.keys).map(ToOwned::to_owned));
    if known.keys.contains(&key.name.as_str()) {
        errors.saw(&ident);
        read(&key, input, errors)
    } else {
        Err(syn::Error::new(key.span, unknown("key", &key.name, known.suggested)))
    }
}

/// Keys that are words of Rust, and so no name of an item.
pub(crate) const RUST_WORDS: &[&str] = &["crate", "for", "type"];

/// Returns a list of the constants that document the keys, each at the position of its key: an
/// editor shows the documentation for a key, and finds the definition.
pub(crate) fn references(
    krate: &TokenStream,
    derive: &str,
    keys: &[Ident],
    known: &[&[&str]],
) -> TokenStream {
    let derive = Ident::new(derive, Span::call_site());
    let keys = keys.iter().filter(|key| {
        let name = key.unraw().to_string();
        !RUST_WORDS.contains(&name.as_str()) && known.concat().contains(&name.as_str())
    });
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return TokenStream::new();
    }
    quote! {
        const _: &[()] = {
            use #krate::__private::keys::#derive as __k;
            &[#(__k::#keys),*]
        };
    }
}

/// Skips everything up to the next comma, behind a fault that was reported.
pub(crate) fn skip_to_comma(input: ParseStream<'_>) {
    drop(left_over(input));
}

/// Takes everything up to the next comma.
pub(crate) fn left_over(input: ParseStream<'_>) -> TokenStream {
    let mut rest = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        rest.extend(input.parse::<TokenTree>());
    }
    rest
}

/// Sets a value that may be given once; a second value is a fault, reported there.
pub(crate) fn set<T>(slot: &mut Option<T>, key: &SpannedKey, value: T, errors: &mut Errors) {
    if slot.is_some() {
        errors.at(key.span, format_args!("duplicate key `{}`: it is set above", key.name));
    } else {
        *slot = Some(value);
    }
}

/// Reads `= "text"` behind `key`.
pub(crate) fn text(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<WithSpan<String>> {
    needs_value(key, input, "\"…\"")?;
    if !input.peek(LitStr) {
        let found: Expr = input.parse()?;
        let message = format!("`{}` takes a text: `{0} = \"…\"`", key.name);
        return Err(syn::Error::new(found.span(), message));
    }
    Ok(WithSpan::text(&input.parse()?))
}

/// Reads the address of a page, which OpenAPI demands for `externalDocs`.
pub(crate) fn url(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<String> {
    let text = text(key, input)?;
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.value.strip_prefix(scheme));
    if rest.is_none_or(|rest| rest.is_empty() || rest.contains(char::is_whitespace)) {
        let message = "`docs` is the address of a page: `docs = \"https://…\"`; a text about the field is its doc comment";
        return Err(syn::Error::new(text.span, message));
    }
    Ok(text.value)
}

/// Reads `= "text"` or `= ["text", "text"]` behind `key`.
pub(crate) fn texts(
    key: &SpannedKey,
    input: ParseStream<'_>,
) -> syn::Result<Vec<WithSpan<String>>> {
    needs_value(key, input, "\"…\"")?;
    let found: Expr = input.parse()?;
    let message = format!("`{}` takes a text or a list of texts: `{0} = [\"…\", \"…\"]`", key.name);
    let literal = |expr: &Expr| match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(WithSpan::text(text)),
        other => Err(syn::Error::new(other.span(), &message)),
    };
    match &found {
        Expr::Array(list) => list.elems.iter().map(literal).collect(),
        single => literal(single).map(|text| vec![text]),
    }
}

/// Reads `= 1` behind `key`.
pub(crate) fn number<N>(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<WithSpan<N>>
where
    N: std::str::FromStr<Err: std::fmt::Display>,
{
    needs_value(key, input, "1")?;
    let message = format!("`{}` takes a whole number: `{0} = 1`", key.name);
    let start = input.span();
    match input.parse::<Lit>() {
        Ok(Lit::Int(digits)) => Ok(WithSpan { value: digits.base10_parse()?, span: digits.span() }),
        Ok(other) => Err(syn::Error::new(other.span(), message)),
        Err(_) => Err(syn::Error::new(start, message)),
    }
}

/// Reads `= value` behind `key`, of any type that parses.
pub(crate) fn value<T: Parse>(
    key: &SpannedKey,
    input: ParseStream<'_>,
    example: &str,
) -> syn::Result<T> {
    needs_value(key, input, example)?;
    input.parse()
}

/// Reads the `=` behind a key; the fault shows the example.
pub(crate) fn needs_value(
    key: &SpannedKey,
    input: ParseStream<'_>,
    example: &str,
) -> syn::Result<()> {
    match input.parse::<Option<Token![=]>>()? {
        Some(_) => Ok(()),
        None => {
            let message = format!("`{}` needs a value: `{0} = {example}`", key.name);
            Err(syn::Error::new(key.span, message))
        }
    }
}

/// Reads the content of `(…)` behind `key`.
pub(crate) fn group<T>(
    key: &SpannedKey,
    input: ParseStream<'_>,
    example: &str,
    read: impl FnOnce(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<T> {
    if !input.peek(syn::token::Paren) {
        let message = format!("`{}` is written `{example}`", key.name);
        return Err(syn::Error::new(key.span, message));
    }
    let content;
    parenthesized!(content in input);
    let found = read(&content);
    let rest = content.span();
    // Otherwise syn reports the rest as unexpected, beside a fault or without an advice.
    if content.parse::<TokenStream>()?.is_empty() || found.is_err() {
        return found;
    }
    Err(syn::Error::new(rest, format!("`{}` is written `{example}`, without more", key.name)))
}

/// Returns "unknown key `namespacd`; did you mean `namespaced`?", or the list of the known keys.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match closest(name, known) {
        None if known.is_empty() => format!("unknown {what} `{name}`: there is none to name here"),
        Some(meant) => format!("unknown {what} `{name}`; did you mean `{meant}`?"),
        None => {
            let list: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("unknown {what} `{name}`; expected one of {}", list.join(", "))
        }
    }
}

/// Returns the known name that is close enough to be a correction.
pub(crate) fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let reach = name.chars().count().div_ceil(3);
    known
        .iter()
        .map(|known| (distance(&name, known), *known))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Counts the edits (insert, delete, replace, swap of neighbours) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(x != y);
            let mut best = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

/// Whether two pieces of source print the same.
pub(crate) fn same_tokens(a: &impl quote::ToTokens, b: &impl quote::ToTokens) -> bool {
    a.to_token_stream().to_string() == b.to_token_stream().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_answered_with_the_closest_known_one() {
        let known = ["namespaced", "cluster", "version"];
        assert_eq!(closest("namespacd", &known), Some("namespaced"));
        assert_eq!(closest("Namespaced", &known), Some("namespaced"));
        assert_eq!(closest("verison", &known), Some("version"));
        assert_eq!(closest("owns", &known), None);
    }

    #[test]
    fn an_unknown_name_without_alternatives_is_answered_without_a_list() {
        assert_eq!(unknown("field", "db", &[]), "unknown field `db`: there is none to name here");
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(distance("verison", "version"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn a_missing_comma_is_one_fault() {
        let mut errors = Errors::default();
        let parse = |input: ParseStream<'_>| {
            Ok(each_key(input, &["a", "b"], &mut errors, |key, input, _| {
                text(key, input).map(drop)
            }))
        };
        let tried = syn::parse::Parser::parse_str(parse, "a = \"1\" b = \"2\"; a = \"3\"");
        assert_eq!(tried.unwrap_or_default(), ["a", "b", "a"]);
        assert_eq!(errors.texts(), ["expected `,`", "expected `,`"]);
        errors.finish();
    }
}
