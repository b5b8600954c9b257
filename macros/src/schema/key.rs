//! The keys of `#[schema(…)]`, parsed.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Expr, LitStr, Path, Type};

/// A key with its value. An attribute with several parts gives several keys.
#[derive(Debug)]
pub(super) struct SchemaKey {
    pub(super) span: Span,
    pub(super) kind: KeyMeaning,
}

/// Meaning of a key.
#[derive(Debug)]
pub(super) enum KeyMeaning {
    /// A keyword of the schema.
    Keyword(&'static str, TokenStream),
    /// A keyword of the items of a list.
    Item(&'static str, TokenStream),
    /// A keyword that the derive does not know.
    Extend(LitStr, TokenStream),
    /// `list(map, keys(…))`
    ListMap(Vec<Ident>),
    /// Server-side apply replaces the value as a whole.
    Atomic,
    Rule(CelRule),
    /// The fields of which exactly, at most or at least one is set.
    OneOf(FieldCount, Vec<Ident>),
    Default(Expr),
    Example(Expr),
    Transform(Expr),
    Required,
    Optional,
    /// The value is kept unchecked.
    Opaque,
    /// A Kubernetes type with all fields.
    Full,
    /// A whole Kubernetes object.
    Embedded,
    IntOrString,
    /// The schema of another type.
    With(Type),
    /// The schema that a function returns.
    By(Path),
    /// No part of the schema.
    Skip,
}

impl SchemaKey {
    /// The fields of the type that the key names.
    pub(super) fn fields(&self) -> &[Ident] {
        match &self.kind {
            KeyMeaning::OneOf(_, names) => names,
            KeyMeaning::Rule(CelRule { path: Some(RulePath::Field(name)), .. }) => {
                std::slice::from_ref(name)
            }
            _ => &[],
        }
    }
}

impl KeyMeaning {
    /// Whether the key gives the field another schema than the type's.
    pub(super) fn replaces_schema(&self) -> bool {
        matches!(
            self,
            Self::Opaque
                | Self::Full
                | Self::Embedded
                | Self::IntOrString
                | Self::With(_)
                | Self::By(_)
        )
    }
}

/// Number of fields that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldCount {
    Exactly,
    AtMost,
    AtLeast,
}

/// `rule("…", message = "…", …)`
#[derive(Debug)]
pub(super) struct CelRule {
    pub(super) rule: LitStr,
    pub(super) message: Option<LitStr>,
    pub(super) message_expression: Option<LitStr>,
    pub(super) reason: Option<LitStr>,
    pub(super) path: Option<RulePath>,
    pub(super) optional_old_self: bool,
}

/// The field that a failed rule names.
#[derive(Debug)]
pub(super) enum RulePath {
    /// A field of the type, by name in Rust.
    Field(Ident),
    /// A JSON path.
    Json(LitStr),
}
