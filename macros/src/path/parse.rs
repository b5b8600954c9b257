//! Parser of paths.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitInt, LitStr, Token};

use super::{FieldPath, Segment};

impl FieldPath {
    /// Reads fields joined by dots. A `?` behind a field is taken and has no effect: options are
    /// passed by themselves.
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.fork().call(Ident::parse_any).map_err(|fault| {
            syn::Error::new(
                fault.span(),
                "expected fields, such as `spec.host`, or a JSON path, such as `\".spec.host\"`",
            )
        })?;
        let mut segments = Vec::new();
        step(input, &mut segments)?;
        while let Some(dot) = input.parse::<Option<Token![.]>>()? {
            if input.is_empty() || input.peek(Token![,]) {
                let message = "expected the name of a field behind the dot";
                return Err(syn::Error::new(dot.span, message));
            }
            step(input, &mut segments)?;
        }
        Ok(Self { segments })
    }
}

/// Reads a field with the marks behind.
fn step(input: ParseStream<'_>, into: &mut Vec<Segment>) -> syn::Result<()> {
    if input.peek(LitInt) {
        return Err(
            input.error("a field of a tuple has no name in JSON: name the fields of structs")
        );
    }
    let is_word = !input.peek(Ident);
    let ident: Ident = input.call(Ident::parse_any)?;
    if is_word {
        let message = format!(
            "`{ident}` is a word of Rust: the field is `{ident}_` in types of k8s-openapi, and mostly \
             `r#{ident}` in your own"
        );
        return Err(syn::Error::new(ident.span(), message));
    }
    if input.peek(syn::token::Paren) {
        into.push(call(&ident, input)?);
    } else {
        into.push(Segment::Field(ident));
    }
    loop {
        if input.parse::<Option<Token![?]>>()?.is_some() {
            continue;
        }
        if !input.peek(syn::token::Bracket) {
            return Ok(());
        }
        into.push(bracket(input)?);
    }
}

/// Reads `keys()` or `values()`.
fn call(ident: &Ident, input: ParseStream<'_>) -> syn::Result<Segment> {
    let content;
    syn::parenthesized!(content in input);
    match ident.to_string().as_str() {
        "keys" if content.is_empty() => Ok(Segment::Keys(ident.span())),
        "values" if content.is_empty() => Ok(Segment::Values(ident.span())),
        _ => {
            rest(&content);
            let message =
                "a path names fields: of methods it takes `keys()` and `values()` of maps only";
            Err(syn::Error::new(ident.span(), message))
        }
    }
}

/// Reads `[]`, `[0]` or `["name"]`.
fn bracket(input: ParseStream<'_>) -> syn::Result<Segment> {
    let content;
    let bracket = syn::bracketed!(content in input);
    let span = bracket.span.join();
    if content.is_empty() {
        return Ok(Segment::Each(span));
    }
    let segment = if content.peek(LitStr) {
        Segment::Key(content.parse()?)
    } else if content.peek(LitInt) {
        let place: LitInt = content.parse()?;
        let number = place.base10_parse().map_err(|_| {
            let message = "the position of an element is a whole number from 0, such as `[0]`";
            syn::Error::new(place.span(), message)
        })?;
        Segment::Item(number, place.span())
    } else {
        let message = "write `[]` for each element, `[0]` for one, or `[\"name\"]` for a value of a \
                       map";
        let fault = content.error(message);
        rest(&content);
        return Err(fault);
    };
    if content.is_empty() {
        return Ok(segment);
    }
    let fault = content.error("expected `]`");
    rest(&content);
    Err(fault)
}

/// Takes everything that is left, for which a fault was reported.
fn rest(content: ParseStream<'_>) {
    let _ = content.parse::<proc_macro2::TokenStream>();
}
