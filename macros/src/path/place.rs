//! Places in an object: fields, or a text.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

use super::{ParsedPath, plain};
use crate::keys::{SpannedKey, WithSpan};

/// A field of the object.
#[derive(Debug)]
pub(crate) enum PathStep {
    /// `".spec.host"`: a JSON path, checked by `crd()`.
    Text(WithSpan<String>),
    /// `spec.host`: Rust fields, checked by the compiler.
    Fields(ParsedPath),
}

impl PathStep {
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            return Ok(Self::Text(WithSpan::text(&input.parse()?)));
        }
        ParsedPath::parse(input).map(Self::Fields)
    }

    /// Reads `= field` behind a key.
    pub(crate) fn value(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Self> {
        if input.parse::<Option<Token![=]>>()?.is_none() {
            let message = format!("`{}` needs a field: `{0} = spec.host`", key.name);
            return Err(syn::Error::new(key.span, message));
        }
        Self::parse(input)
    }

    /// Whether the place is below this field of the object, in either notation.
    pub(crate) fn is_below(&self, root: &str) -> bool {
        match self {
            Self::Text(text) => {
                let rest = text.value.strip_prefix('.').and_then(|path| path.strip_prefix(root));
                rest.is_some_and(|rest| rest.starts_with('.'))
            }
            Self::Fields(path) => plain(path.root()) == root,
        }
    }

    /// Returns the position of the first field of a path, and that of a text.
    pub(crate) fn start(&self) -> Span {
        match self {
            Self::Text(text) => text.span,
            Self::Fields(path) => path.root().span(),
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Text(text) => text.span,
            Self::Fields(path) => path.end(),
        }
    }

    /// Returns the path as written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.value.clone(),
            Self::Fields(path) => path.text(),
        }
    }
}
