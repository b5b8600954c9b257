//! Paths of fields, written as Rust: `spec.ports[].number`.
//!
//! A path is expanded to a walk over references (`windlass::__private::path::Walk`), so that the
//! compiler checks each segment at its place in the source.

mod expand;
mod parse;
mod place;

pub(crate) use expand::{CollectNames, located, statements};
pub(crate) use place::PathStep;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{LitStr, Token, Type};

/// A path from an object to a field.
#[derive(Clone, Debug)]
pub(crate) struct ParsedPath {
    /// At least one segment; the first is a field.
    pub(crate) segments: Vec<Segment>,
    /// Each `?`, with the number of segments before it.
    marks: Vec<(usize, Span)>,
}

/// A step of a path.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Field(Ident),
    /// `[]`: each element of a list, or value of a map.
    Each(Span),
    /// `[0]`
    Item(usize, Span),
    /// `["name"]`
    Key(LitStr),
    /// `.keys()`
    Keys(Span),
    /// `.values()`
    Values(Span),
}

impl Segment {
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Field(ident) => ident.span(),
            Self::Key(text) => text.span(),
            Self::Each(span) | Self::Item(_, span) | Self::Keys(span) | Self::Values(span) => *span,
        }
    }
}

impl ParsedPath {
    /// Makes a path of segments, of which the first is a field.
    pub(crate) fn new(segments: Vec<Segment>) -> Self {
        Self { segments, marks: Vec::new() }
    }

    /// Returns the first field.
    pub(crate) fn root(&self) -> &Ident {
        match &self.segments[0] {
            Segment::Field(ident) => ident,
            _ => unreachable!("a path begins with a field"),
        }
    }

    /// Returns the position of the last segment.
    pub(crate) fn end(&self) -> Span {
        self.segments.last().map_or_else(Span::call_site, Segment::span)
    }

    /// Returns the name of the last field.
    pub(crate) fn last_name(&self) -> String {
        let named = self.segments.iter().rev().find_map(|segment| match segment {
            Segment::Field(ident) => Some(plain(ident)),
            Segment::Key(text) => Some(text.value()),
            _ => None,
        });
        named.unwrap_or_default()
    }

    /// Returns the path as written.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            let part = match segment {
                Segment::Field(ident) if text.is_empty() => ident.to_string(),
                Segment::Field(ident) => format!(".{ident}"),
                Segment::Each(_) => "[]".to_owned(),
                Segment::Item(place, _) => format!("[{place}]"),
                Segment::Key(key) => format!("[{:?}]", key.value()),
                Segment::Keys(_) => ".keys()".to_owned(),
                Segment::Values(_) => ".values()".to_owned(),
            };
            text.push_str(&part);
        }
        text
    }

    /// Returns the first segment that is no field.
    pub(crate) fn no_field(&self) -> Option<&Segment> {
        self.segments.iter().find(|segment| !matches!(segment, Segment::Field(_)))
    }
}

/// Returns an identifier without `r#`.
pub(crate) fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Input of `path!`: `crate_path; Website: spec.host`.
struct Input {
    krate: syn::Path,
    ty: Type,
    path: ParsedPath,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let krate = input.call(syn::Path::parse_mod_style)?;
        input.parse::<Token![;]>()?;
        let example = "write a type and a path of its fields: `path!(Website: spec.host)`";
        let start = input.span();
        if input.is_empty() || input.peek(LitStr) {
            return Err(syn::Error::new(start, example));
        }
        let ty = input.parse().map_err(|_| syn::Error::new(start, example))?;
        if input.parse::<Option<Token![:]>>()?.is_none() {
            return Err(syn::Error::new(input.span(), example));
        }
        let path = ParsedPath::parse(input)?;
        if !input.is_empty() {
            return Err(input.error("a path ends here: one field after another, joined by dots"));
        }
        Ok(Self { krate, ty, path })
    }
}

/// Expands `path!`.
pub(crate) fn path(input: TokenStream) -> TokenStream {
    let Input { krate, ty, path } = match syn::parse2(input) {
        Ok(input) => input,
        Err(fault) => return fault.to_compile_error(),
    };
    let steps = statements(&path, CollectNames::Collected);
    let p = quote!(::windlass::__private::path);
    let end = located(path.end());
    let inner = quote_spanned!(end=> __w.inner().inner().inner());
    let code = quote! {
        ::windlass::resource::FieldPath::<#ty, _>::of(|__w: #p::Walk<'_, #ty>| {
            #[allow(unused_imports)]
            use #p::{Declared as _, Inner as _, Probed as _, Undeclared as _};
            #steps
            #inner
        })
    };
    crate::crate_path::with_crate(code, Some(&krate))
}
