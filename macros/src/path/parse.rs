//! Parser of paths.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitInt, LitStr, Token};

use super::{ParsedPath, Segment};

impl ParsedPath {
    /// Reads fields joined by dots. A `?` stands behind an option and has no effect: options are
    /// passed by themselves.
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(Token![&]) {
            let message = "a path names fields, and takes no reference: write `spec.host`";
            return Err(syn::Error::new(input.span(), message));
        }
        input.fork().call(Ident::parse_any).map_err(|fault| {
            syn::Error::new(
                fault.span(),
                "expected fields, such as `spec.host`, or a JSON path, such as `\".spec.host\"`",
            )
        })?;
        let mut path = Self::new(Vec::new());
        step(input, &mut path)?;
        while let Some(dot) = input.parse::<Option<Token![.]>>()? {
            if input.is_empty() || input.peek(Token![,]) {
                let message = "expected the name of a field behind the dot";
                return Err(syn::Error::new(dot.span, message));
            }
            step(input, &mut path)?;
        }
        Ok(path)
    }
}

/// Reads a field with the marks behind.
fn step(input: ParseStream<'_>, into: &mut ParsedPath) -> syn::Result<()> {
    if input.peek(LitInt) {
        return Err(
            input.error("a field of a tuple has no name in JSON: name the fields of structs")
        );
    }
    let is_word = !input.peek(Ident);
    let ident: Ident = input.call(Ident::parse_any)?;
    if ident == "self" || ident == "Self" {
        let message = "a path begins with a field of the object: write `spec.host`, without `self`";
        return Err(syn::Error::new(ident.span(), message));
    }
    if is_word {
        let message = format!(
            "`{ident}` is a word of Rust: the field is `{ident}_` in types of k8s-openapi, and mostly \
             `r#{ident}` in your own"
        );
        return Err(syn::Error::new(ident.span(), message));
    }
    if input.peek(Token![::]) {
        let message = "a path begins with a field of the object, without a type: `spec.host`";
        return Err(syn::Error::new(ident.span(), message));
    }
    if input.peek(syn::token::Paren) {
        into.segments.push(call(&ident, input)?);
    } else {
        into.segments.push(Segment::Field(ident));
    }
    loop {
        if let Some(mark) = input.parse::<Option<Token![?]>>()? {
            into.marks.push((into.segments.len(), mark.span));
            continue;
        }
        if !input.peek(syn::token::Bracket) {
            return Ok(());
        }
        into.segments.push(bracket(input)?);
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
