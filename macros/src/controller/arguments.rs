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
    pub(super) literal: Option<ComparableValue>,
}

/// A value that the derive can compare.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ComparableValue {
    Text(String),
    Duration(Duration),
}

impl Argument {
    /// A text.
    pub(super) fn of_text(text: &str, span: Span) -> Self {
        Self { tokens: quote!(#text), span, literal: Some(ComparableValue::Text(text.to_owned())) }
    }
}

/// Returns the least value of a duration: the builder would raise a shorter one without a word, or
/// timers, which count milliseconds.
fn least(setting: &str, key: &str) -> Duration {
    match (setting, key) {
        ("resync", _) | ("timer", "every") | ("rate_limit" | "loop_guard", "within") => {
            Duration::from_secs(1)
        }
        _ => Duration::from_millis(1),
    }
}

/// Returns the text against a duration that would become another one; `None` for all others.
fn duration_fault(setting: &str, key: &str, value: Duration) -> Option<String> {
    let least = least(setting, key);
    if value < least {
        let unit = if least.as_secs() > 0 { "s" } else { "ms" };
        let never = match setting {
            "resync" | "reconcile_timeout" => "; none at all is \"never\"",
            _ => "",
        };
        return Some(format!("`{key}` is at least 1 {unit}{never}"));
    }
    let rest = value.subsec_nanos() % 1_000_000;
    (rest > 0).then(|| format!("`{key}` is counted in milliseconds: leave the `us` and `ns` out"))
}

/// Reads a duration of a setting: a text, or an expression of type `Duration`.
pub(super) fn duration(setting: &str, key: &str, found: &Expr) -> syn::Result<Argument> {
    let span = found.span();
    let fault = |message: String| Err(syn::Error::new(span, message));
    match found {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => match durations::parse(&text.value()) {
            Ok(value) => {
                if let Some(message) = duration_fault(setting, key, value) {
                    return fault(message);
                }
                let (seconds, nanos) = (value.as_secs(), value.subsec_nanos());
                let tokens = quote_spanned!(span=> ::core::time::Duration::new(#seconds, #nanos));
                Ok(Argument { tokens, span, literal: Some(ComparableValue::Duration(value)) })
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

/// Reads a number from `least` on.
pub(super) fn number(key: &str, least: u32, found: &Expr) -> syn::Result<Argument> {
    let fault = |message: String| Err(syn::Error::new(found.span(), message));
    match found {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => match digits.base10_parse::<u32>() {
            Ok(number) if number < least => fault(format!("`{key}` is at least {least}")),
            Ok(number) => {
                let span = found.span();
                Ok(Argument { tokens: quote_spanned!(span=> #number), span, literal: None })
            }
            Err(_) => fault(format!("`{key}` is at most {}", u32::MAX)),
        },
        _ => fault(format!("`{key}` takes a whole number: `{key} = 10`")),
    }
}
