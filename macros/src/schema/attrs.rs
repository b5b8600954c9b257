//! Reads `#[schema(…)]`.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, LitStr, Path, Token};

use super::hints::hint;
use super::key::{KeyMeaning, SchemaKey};
use super::values::kinds;
use crate::errors::Errors;
use crate::keys::{self, unknown};
use crate::resource::attrs::KUBE_ON_A_TYPE;

/// Keys on a field, and on the field of a variant.
pub(crate) const FIELD_KEYS: &[&str] = &[
    "atomic",
    "column",
    "default",
    "docs",
    "each",
    "embedded",
    "example",
    "exclusive_max",
    "exclusive_min",
    "extend",
    "format",
    "full",
    "immutable",
    "int_or_string",
    "items",
    "length",
    "list",
    "map",
    "max",
    "min",
    "multiple_of",
    "nullable",
    "opaque",
    "optional",
    "pattern",
    "preserve",
    "properties",
    "range",
    "required",
    "rule",
    "schema_with",
    "selectable",
    "set",
    "skip",
    "title",
    "transform",
    "with",
];

/// Keys on the type.
pub(crate) const TYPE_KEYS: &[&str] = &[
    "at_least_one_of",
    "at_most_one_of",
    "atomic",
    "crate",
    "docs",
    "example",
    "extend",
    "map",
    "one_of",
    "preserve",
    "properties",
    "rule",
    "title",
    "transform",
];

/// Keys on a variant of an enum.
pub(crate) const VARIANT_KEYS: &[&str] = &["extend", "title", "transform", "with"];

/// Parts of `rule(…)`.
pub(crate) const RULE_KEYS: &[&str] =
    &["message", "message_expression", "optional_old_self", "path", "reason"];

/// Parts of `column(…)`.
pub(crate) const COLUMN_KEYS: &[&str] = &["description", "format", "name", "priority", "type"];

/// Parts of `each(…)`.
pub(crate) const EACH_KEYS: &[&str] =
    &["format", "length", "max", "min", "multiple_of", "pattern", "range"];

/// Place of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeTarget {
    Type,
    Variant,
    Field,
}

impl AttributeTarget {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Type => TYPE_KEYS,
            Self::Variant => VARIANT_KEYS,
            Self::Field => FIELD_KEYS,
        }
    }
}

/// The attributes of a place.
#[derive(Debug, Default)]
pub(super) struct SchemaAttrs {
    pub(super) keys: Vec<SchemaKey>,
    /// `crate = path`
    pub(super) krate: Option<Path>,
    /// Whether `immutable` was read: its rule has no name that tells it from other rules.
    immutable: Option<()>,
}

impl SchemaAttrs {
    /// Reads all attributes of a place.
    pub(super) fn read(
        attributes: &[Attribute],
        place: AttributeTarget,
        errors: &mut Errors,
    ) -> Self {
        let mut read = Self::default();
        for attribute in attributes {
            let path = attribute.path();
            if let Some(message) = foreign(path, place) {
                errors.at(syn::spanned::Spanned::span(path), message);
            }
        }
        keys::attributes(attributes, "schema", errors, |input, errors| {
            read.keys(input, place, errors);
        });
        read
    }

    /// Reads `key …, key …`; goes on behind faults.
    fn keys(&mut self, input: ParseStream<'_>, place: AttributeTarget, errors: &mut Errors) {
        while !input.is_empty() {
            let word = input.fork().call(Ident::parse_any);
            match self.key(input, place, errors) {
                Ok(()) if input.is_empty() || input.peek(Token![,]) => {}
                Ok(()) if input.peek(Token![=]) || input.peek(syn::token::Paren) => {
                    let word = word.map_or_else(|_| "the key".to_owned(), |it| format!("`{it}`"));
                    errors.at(input.span(), format_args!("{word} stands alone, without a value"));
                }
                Ok(()) => errors.at(input.span(), "expected `,`"),
                Err(fault) => errors.add(fault),
            }
            keys::skip_to_comma(input);
            let _ = input.parse::<Option<Token![,]>>();
        }
    }

    fn key(
        &mut self,
        input: ParseStream<'_>,
        place: AttributeTarget,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            let message = match input.peek(Token![=]) {
                true => format!("a key has no quotation marks: write `{} = …`", text.value()),
                false => "expected a key; a rule is written `rule(\"self > 0\")`".to_owned(),
            };
            return Err(syn::Error::new(text.span(), message));
        }
        let ident = input.call(Ident::parse_any)?;
        let key = keys::SpannedKey { name: ident.unraw().to_string(), span: ident.span() };
        if !place.keys().contains(&key.name.as_str()) {
            return Err(syn::Error::new(key.span, not_here(&key.name, place)));
        }
        errors.saw(&ident);
        if key.name == "crate" {
            let path = keys::value(&key, input, "::my::windlass")?;
            keys::set(&mut self.krate, &key, path, errors);
            return Ok(());
        }
        if key.name == "immutable" {
            keys::set(&mut self.immutable, &key, (), errors);
        }
        for kind in kinds(&key, input, errors)? {
            self.add(SchemaKey { span: key.span, kind }, &key.name, errors);
        }
        Ok(())
    }

    /// Adds a key; a key that may be given once is a fault the second time.
    fn add(&mut self, key: SchemaKey, name: &str, errors: &mut Errors) {
        let same = |other: &SchemaKey| match (&key.kind, &other.kind) {
            (KeyMeaning::Keyword(a, _), KeyMeaning::Keyword(b, _))
            | (KeyMeaning::Item(a, _), KeyMeaning::Item(b, _)) => a == b,
            (KeyMeaning::Extend(a, _), KeyMeaning::Extend(b, _)) => a.value() == b.value(),
            (
                KeyMeaning::Rule(_)
                | KeyMeaning::OneOf(..)
                | KeyMeaning::Example(_)
                | KeyMeaning::Transform(_),
                _,
            ) => false,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        if self.keys.iter().any(same) {
            errors.at(key.span, format_args!("duplicate key `{name}`: it is set above"));
        } else {
            self.keys.push(key);
        }
    }
}

/// The answer to an attribute of another tool.
fn foreign(path: &Path, place: AttributeTarget) -> Option<&'static str> {
    let name = path.get_ident()?.to_string();
    match name.as_str() {
        "schemars" => Some(
            "this derive reads `#[schema(…)]`, whose keys are nearly the same: \
             `#[schema(range(min = 1, max = 9))]`",
        ),
        "validate" | "garde" => Some(
            "an API server knows no validation in Rust: write the bounds as `#[schema(range(min = 1, max = 9))]`, \
             `length(…)`, `pattern = \"…\"` or `rule(\"…\")`, which the schema has",
        ),
        // Beside `CustomResource` the compiler shows the same text of both derives once.
        "kube" if place == AttributeTarget::Type => Some(KUBE_ON_A_TYPE),
        "kube" | "x_kube" => Some(OF_KUBE),
        _ => None,
    }
}

/// The answer to attributes of kube-rs.
const OF_KUBE: &str = "this derive is windlass's: write `#[schema(…)]` on fields and nested types, `#[resource(…)]` on \
     the kind";

/// The answer to a key that this place does not have.
fn not_here(name: &str, place: AttributeTarget) -> String {
    let elsewhere = |place: AttributeTarget, text: &str| {
        place
            .keys()
            .contains(&name)
            .then(|| format!("`{name}` is a key of {text}, not of this place"))
    };
    if let Some(hint) = hint(name, place == AttributeTarget::Type) {
        return hint;
    }
    let other = match place {
        AttributeTarget::Type => elsewhere(AttributeTarget::Field, "a field"),
        AttributeTarget::Field => elsewhere(AttributeTarget::Type, "the type"),
        AttributeTarget::Variant if name == "rule" => Some(
            "an API server has no rules for one variant: write the rule on the type, with a condition that says \
             for which variant it holds"
                .to_owned(),
        ),
        AttributeTarget::Variant => {
            elsewhere(AttributeTarget::Field, "a field").or_else(|| elsewhere(AttributeTarget::Type, "the type"))
        }
    };
    other.unwrap_or_else(|| unknown("key", name, place.keys()))
}
