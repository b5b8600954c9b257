//! Arguments of settings: durations, texts and numbers, with the value of a literal.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit};

use super::durations;

/// An argument with its position.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) tokens: TokenStream,
    pub(super) span: Span,
    /// The value of a literal.
    pub(super) literal: Option<Literal>,
}

/// A value that the derive can compare.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Duration(Duration),
}

impl Argument {
    /// A text.
    pub(super) fn of_text(text: &str, span: Span) -> Self {
        Self { tokens: quote!(#text), span, literal: Some(Literal::Text(text.to_owned())) }
    }
}

/// Reads a duration: a text, or an expression of type `Duration`.
pub(super) fn duration(key: &str, found: &Expr, least: Duration) -> syn::Result<Argument> {
    let span = found.span();
    let fault = |message: String| Err(syn::Error::new(span, message));
    match found {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match durations::parse(&text.value()) {
            Ok(value) if value < least => {
                fault(format!("`{key}` is at least {} s", least.as_secs()))
            }
            Ok(value) if value.is_zero() => {
                fault(format!("`{key}` of zero would leave no time at all"))
            }
            Ok(value) => {
                let (seconds, nanos) = (value.as_secs(), value.subsec_nanos());
                let tokens = quote_spanned!(span=> ::core::time::Duration::new(#seconds, #nanos));
                Ok(Argument { tokens, span, literal: Some(Literal::Duration(value)) })
            }
            Err(message) => fault(format!("`{key}` is a duration such as \"1h30m\": {message}")),
        },
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => {
            let digits = number.base10_digits();
            fault(format!("a duration has a unit: `{key} = \"{digits}s\"`"))
        }
        Expr::Lit(_) => fault(format!("`{key}` is a duration: `{key} = \"10m\"`")),
        other => Ok(Argument { tokens: quote!(#other), span, literal: None }),
    }
}

/// Reads a text.
pub(super) fn text(key: &str, found: &Expr) -> syn::Result<Argument> {
    match found {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            Ok(Argument::of_text(&text.value(), text.span()))
        }
        other => {
            Err(syn::Error::new(other.span(), format!("`{key}` takes a text: `{key} = \"…\"`")))
        }
    }
}

/// Reads a number that is not zero.
pub(super) fn number(key: &str, found: &Expr) -> syn::Result<Argument> {
    let fault = |message: String| Err(syn::Error::new(found.span(), message));
    match found {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => match digits.base10_parse::<u32>() {
            Ok(0) => fault(format!("`{key}` is at least 1")),
            Ok(number) => {
                let span = found.span();
                Ok(Argument { tokens: quote_spanned!(span=> #number), span, literal: None })
            }
            Err(_) => fault(format!("`{key}` is at most {}", u32::MAX)),
        },
        _ => fault(format!("`{key}` takes a whole number: `{key} = 10`")),
    }
}
