//! Parser of comma-separated keys that goes on behind a fault.
//!
//! `syn::parse_nested_meta` stops at the first fault; here the rest of a bad key is skipped up to
//! the next comma, so that a user sees all of them in one compile.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Token, parenthesized};

use crate::errors::Errors;

/// A key and its position.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The key as it is written.
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct WithSpan<T> {
    /// The value.
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl WithSpan<String> {
    /// The text of a literal, at its position.
    pub(crate) fn text(literal: &LitStr) -> Self {
        Self { value: literal.value(), span: literal.span() }
    }
}

/// Calls `read` for every attribute `#[name(…)]` with its content; other forms are faults.
pub(crate) fn attributes(
    attributes: &[Attribute],
    name: &str,
    errors: &mut Errors,
    mut read: impl FnMut(ParseStream<'_>, &mut Errors),
) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        match &attribute.meta {
            syn::Meta::List(list) => {
                let parsed = list.parse_args_with(|input: ParseStream<'_>| {
                    read(input, errors);
                    Ok(())
                });
                errors.keep(parsed);
            }
            other => errors.at(other.span(), format_args!("write `#[{name}(…)]`")),
        }
    }
}

/// Reads `key …, key …`: calls `read` behind each key, reports unknown keys, and goes on behind
/// faults. Returns the keys that were written or meant, so that a key with a fault is not reported
/// as missing as well.
pub(crate) fn each_key(
    input: ParseStream<'_>,
    known: &[&str],
    errors: &mut Errors,
    mut read: impl FnMut(&Key, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> Vec<String> {
    let mut tried = Vec::new();
    while !input.is_empty() {
        match one_key(input, known, &mut tried, errors, &mut read) {
            Ok(()) if input.is_empty() || input.peek(Token![,]) => {}
            Ok(()) => errors.at(input.span(), "expected `,`"),
            Err(fault) => errors.add(fault),
        }
        // The rest of a key with a fault is skipped: one fault, one message.
        skip_to_comma(input);
        let _ = input.parse::<Option<Token![,]>>();
    }
    tried
}

/// Reads one key and its value.
fn one_key(
    input: ParseStream<'_>,
    known: &[&str],
    tried: &mut Vec<String>,
    errors: &mut Errors,
    read: &mut impl FnMut(&Key, ParseStream<'_>, &mut Errors) -> syn::Result<()>,
) -> syn::Result<()> {
    // Any identifier: keys such as `for` and `type` are words of Rust.
    let ident = input.call(Ident::parse_any)?;
    let key = Key { name: ident.unraw().to_string(), span: ident.span() };
    // A misspelt key counts as the one that it is closest to, which is then not reported as
    // missing.
    tried.extend(closest(&key.name, known).map(ToOwned::to_owned));
    if known.contains(&key.name.as_str()) {
        read(&key, input, errors)
    } else {
        Err(syn::Error::new(key.span, unknown("key", &key.name, known)))
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

/// Sets a value that may be given once; a second one is a fault, reported at the second.
pub(crate) fn set<T>(slot: &mut Option<T>, key: &Key, value: T, errors: &mut Errors) {
    if slot.is_some() {
        errors.at(key.span, format_args!("duplicate key `{}`: it is set above", key.name));
    } else {
        *slot = Some(value);
    }
}

/// Reads `= "text"` behind `key`.
pub(crate) fn text(key: &Key, input: ParseStream<'_>) -> syn::Result<WithSpan<String>> {
    needs_value(key, input, "\"…\"")?;
    if !input.peek(LitStr) {
        let found: Expr = input.parse()?;
        let message = format!("`{}` takes a text: `{0} = \"…\"`", key.name);
        return Err(syn::Error::new(found.span(), message));
    }
    Ok(WithSpan::text(&input.parse()?))
}

/// Reads `= "text"` or `= ["text", "text"]` behind `key`.
pub(crate) fn texts(key: &Key, input: ParseStream<'_>) -> syn::Result<Vec<WithSpan<String>>> {
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
pub(crate) fn number<N>(key: &Key, input: ParseStream<'_>) -> syn::Result<WithSpan<N>>
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
pub(crate) fn value<T: Parse>(key: &Key, input: ParseStream<'_>, example: &str) -> syn::Result<T> {
    needs_value(key, input, example)?;
    input.parse()
}

/// Reads the `=` behind a key; the fault shows the example.
fn needs_value(key: &Key, input: ParseStream<'_>, example: &str) -> syn::Result<()> {
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
    key: &Key,
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
    let value = read(&content);
    if value.is_err() {
        // Tokens that are left over would be reported as a fault of their own.
        let _ = content.parse::<TokenStream>();
    }
    value
}

/// Returns "unknown key `namespacd`; did you mean `namespaced`?", or the list of the known keys.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match closest(name, known) {
        Some(meant) => format!("unknown {what} `{name}`; did you mean `{meant}`?"),
        None => {
            let list: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("unknown {what} `{name}`; expected one of {}", list.join(", "))
        }
    }
}

/// Returns the known name that is close enough to be a correction.
fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
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

/// Returns the doc comment, joined: lines of a paragraph by a blank, paragraphs by an empty line.
pub(crate) fn docs(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta.require_name_value().ok()?.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        })
        .flat_map(|text| text.split('\n').map(|line| line.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    let joined = lines.join("\n");
    let paragraphs = joined.split("\n\n").map(|paragraph| paragraph.trim().replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n").trim().to_owned()
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
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(distance("verison", "version"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }

    #[test]
    fn doc_lines_join_into_paragraphs() {
        let input: syn::DeriveInput = syn::parse_quote! {
            /// A site,
            /// served.
            ///
            /// Second paragraph.
            struct X;
        };
        assert_eq!(docs(&input.attrs), "A site, served.\n\nSecond paragraph.");
    }
}
