//! Reads the columns of `#[schema(column(…))]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

use crate::errors::Errors;
use crate::keys::{self, unknown};
use crate::resource::check_places::{COLUMN_FORMATS, COLUMN_TYPES};
use crate::schema::attrs::COLUMN_KEYS;

/// Reads `column`, `column = "Host"` or `column("Host", priority = 1, …)`: the keys as JSON.
pub(super) fn column(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<TokenStream> {
    let mut found: Vec<(&str, TokenStream)> = Vec::new();
    if input.peek(Token![=]) {
        found.push(("name", one_name(&keys::text(key, input)?)?));
    } else if input.peek(syn::token::Paren) {
        let read = |content: ParseStream<'_>| column_keys(content, errors);
        found = keys::group(key, input, "column(\"Host\", priority = 1)", read)?;
    }
    let pairs = found.iter().map(|(name, value)| quote!(#name: #value));
    Ok(quote!(__s::json!({ #(#pairs),* })))
}

/// Reads the keys inside of `column(…)`; the heading may stand first without a key.
fn column_keys(
    content: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<(&'static str, TokenStream)>> {
    let mut found: Vec<(&str, TokenStream)> = Vec::new();
    while !content.is_empty() {
        if content.peek(LitStr) && !found.is_empty() {
            let message = "a column has one heading, which stands first: `column(\"Host\", description = \"…\")`";
            return Err(syn::Error::new(content.span(), message));
        }
        let (name, value, span) = if content.peek(LitStr) {
            let text: LitStr = content.parse()?;
            ("name", one_name(&keys::WithSpan::text(&text))?, text.span())
        } else {
            let word = content.call(Ident::parse_any)?;
            errors.saw(&word);
            let part = keys::SpannedKey { name: word.to_string(), span: word.span() };
            let (name, value) = column_part(&part, content)?;
            (name, value, part.span)
        };
        if found.iter().any(|(other, _)| *other == name) {
            return Err(syn::Error::new(span, format!("duplicate key `{name}`: it is set above")));
        }
        found.push((name, value));
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok(found)
}

fn column_part(
    part: &keys::SpannedKey,
    content: ParseStream<'_>,
) -> syn::Result<(&'static str, TokenStream)> {
    let among = |known: &[&str], what: &str| {
        let text = keys::text(part, content)?;
        if !known.contains(&text.value.as_str()) {
            return Err(syn::Error::new(text.span, unknown(what, &text.value, known)));
        }
        Ok(text.value.to_token_stream())
    };
    Ok(match part.name.as_str() {
        "name" => ("name", one_name(&keys::text(part, content)?)?),
        "description" => ("description", keys::text(part, content)?.value.to_token_stream()),
        "type" => ("type", among(COLUMN_TYPES, "column type")?),
        "format" => ("format", among(COLUMN_FORMATS, "column format")?),
        "priority" => {
            let priority = keys::number::<u16>(part, content)?;
            ("priority", priority.value.to_token_stream())
        }
        "path" | "jsonPath" => {
            let message = "the column shows this field; a column of another field belongs to the kind: \
                           `#[resource(column(…))]`";
            return Err(syn::Error::new(part.span, message));
        }
        other => return Err(syn::Error::new(part.span, unknown("key", other, COLUMN_KEYS))),
    })
}

/// A heading.
fn one_name(text: &keys::WithSpan<String>) -> syn::Result<TokenStream> {
    if text.value.trim().is_empty() {
        return Err(syn::Error::new(text.span, "a column needs a heading, such as `Host`"));
    }
    Ok(text.value.to_token_stream())
}
