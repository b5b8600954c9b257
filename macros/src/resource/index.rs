//! Parser of `#[index(by_host = spec.host)]`.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, LitStr, Token, Type};

use crate::errors::Errors;
use crate::keys::{WithSpan, skip_to_comma};

/// One index.
#[derive(Debug)]
pub(super) struct IndexAttr {
    pub(super) name: Ident,
    /// Type of the values; `None`: `String`.
    pub(super) value: Option<Type>,
    pub(super) source: IndexSource,
}

/// Source of the values.
#[derive(Debug)]
pub(super) enum IndexSource {
    /// `spec.ports[].name`: Rust fields of the decoded object, checked by the compiler.
    Fields(Vec<FieldStep>),
    /// `".spec.host"`: a JSON path, read without decoding, checked by `crd()`.
    Path(WithSpan<String>),
}

/// One field on the way to the value.
#[derive(Debug)]
pub(super) struct FieldStep {
    pub(super) field: Ident,
    /// Written as `?` or `[]`: an `Option` or a list, of which each element is taken.
    pub(super) each: bool,
}

impl IndexAttr {
    /// Reads `name = source, …`; goes on behind faults.
    pub(super) fn read_all(input: ParseStream<'_>, errors: &mut Errors, into: &mut Vec<Self>) {
        if input.is_empty() {
            errors.at(input.span(), "name an index: `#[index(by_host = spec.host)]`");
        }
        while !input.is_empty() {
            match Self::read(input) {
                Ok(index) if input.is_empty() || input.peek(Token![,]) => into.push(index),
                Ok(index) => {
                    into.push(index);
                    errors.at(input.span(), "expected `,`");
                }
                Err(fault) => errors.add(fault),
            }
            skip_to_comma(input);
            let _ = input.parse::<Option<Token![,]>>();
        }
    }

    /// Reads one `name: Type = source`.
    fn read(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        let value = match input.parse::<Option<Token![:]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        if input.parse::<Option<Token![=]>>()?.is_none() {
            let message = format!("index `{name}` needs a field: `{name} = spec.host`");
            return Err(syn::Error::new(name.span(), message));
        }
        let source = if input.peek(LitStr) {
            IndexSource::Path(WithSpan::text(&input.parse()?))
        } else {
            Self::fields(input)?
        };
        Ok(Self { name, value, source })
    }

    /// Reads a chain of fields.
    fn fields(input: ParseStream<'_>) -> syn::Result<IndexSource> {
        input.fork().call(Ident::parse_any).map_err(|fault| {
            syn::Error::new(
                fault.span(),
                "expected fields, such as `spec.host`, or a JSON path, such as `\".spec.host\"`",
            )
        })?;
        let mut steps = vec![Self::step(input)?];
        while input.parse::<Option<Token![.]>>()?.is_some() {
            steps.push(Self::step(input)?);
        }
        Ok(IndexSource::Fields(steps))
    }

    /// Reads one field, with `?` or `[]` behind it.
    fn step(input: ParseStream<'_>) -> syn::Result<FieldStep> {
        let field = input.parse()?;
        let mut each = input.parse::<Option<Token![?]>>()?.is_some();
        if input.peek(syn::token::Bracket) {
            let content;
            syn::bracketed!(content in input);
            if !content.is_empty() {
                return Err(content.error("an index takes each element: write `[]`"));
            }
            each = true;
        }
        Ok(FieldStep { field, each })
    }
}

impl IndexSource {
    /// Returns the source in the user's notation.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Path(path) => path.value.clone(),
            Self::Fields(steps) => {
                let names: Vec<_> = steps.iter().map(|step| step.field.to_string()).collect();
                names.join(".")
            }
        }
    }
}
