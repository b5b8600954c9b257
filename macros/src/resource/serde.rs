//! Serde's attributes on the root struct, which the derive reads and writes itself.

// DESIGN.md, 273: The root takes those attributes of serde that a definition can say

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::{Attribute, ExprPath, LitStr, Token};

use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, WithSpan, set};
use crate::schema::{FieldDefault, Rename};

/// Serde's attributes of a field of the root.
#[derive(Debug, Default)]
pub(super) struct OfField {
    pub(super) rename: Option<WithSpan<String>>,
    /// The value of an absent field.
    pub(super) default: Option<(FieldDefault, Span)>,
    /// Function that says which values are left out.
    pub(super) skip_if: Option<(ExprPath, Span)>,
}

/// Fields of every object, whose names do not follow a rule.
const OF_EVERY_OBJECT: &[&str] = &["metadata", "spec", "status"];

/// Words before a key of serde that has no effect on the root.
const REFUSAL: &str = "the object itself takes no";

/// Serde's keys of a struct that have no effect on the root, and the reasons.
const OF_STRUCT_HINTS: &[(&str, &str)] = &[
    ("rename", "the name of a kind is `#[resource(kind = \"…\")]`"),
    ("default", "write `#[serde(default)]` on the fields that may be absent"),
    (
        "deny_unknown_fields",
        "API servers drop fields that the definition does not list, and objects of a newer definition stay readable",
    ),
    ("crate", "the path of windlass is `#[resource(crate = …)]`"),
    ("tag", "an object says its kind by `apiVersion` and `kind`, which are written for you"),
    ("content", "an object says its kind by `apiVersion` and `kind`, which are written for you"),
    ("untagged", "an object says its kind by `apiVersion` and `kind`, which are written for you"),
    ("expecting", "errors of reading name the kind: leave it out"),
    ("rename_all_fields", "it is for the variants of an enum: write `rename_all`"),
    ("transparent", "an object has `metadata` beside its other fields"),
    ("from", "convert the type of a field instead: `#[serde(from = \"…\")]` on that type"),
    ("try_from", "convert the type of a field instead: `#[serde(try_from = \"…\")]` on that type"),
    ("into", "convert the type of a field instead: `#[serde(into = \"…\")]` on that type"),
    ("remote", "the derive stands on the object itself"),
    ("bound", "an object has no type parameters"),
];

/// Serde's keys of a field that have no effect on a field of the root, and the reasons.
const OF_FIELD_HINTS: &[(&str, &str)] = &[
    ("skip", "every field of the object itself is part of the kind: move it to another struct"),
    ("skip_serializing", "every field of the object itself is part of the kind"),
    ("skip_deserializing", "every field of the object itself is part of the kind"),
    (
        "flatten",
        "the fields of a kind stand below `spec` and `status`: flatten inside of those types",
    ),
    (
        "rename_all",
        "it stands on the struct: `#[serde(rename_all = \"snake_case\")]`; rename one field by `rename`",
    ),
    ("alias", "API servers know one name for a field: write `rename`"),
    ("with", "give the field a type of your own that implements `Serialize` and `Deserialize`"),
    ("serialize_with", "give the field a type of your own that implements `Serialize`"),
    ("deserialize_with", "give the field a type of your own that implements `Deserialize`"),
    ("borrow", "an object owns its fields"),
    ("bound", "an object has no type parameters"),
];

/// Reads the rule for the names of fields, the only attribute of serde that the struct takes.
pub(super) fn rename_all(attributes: &[Attribute], errors: &mut Errors) -> Rename {
    let mut rule = None;
    let known = KeyNames { refusal: REFUSAL, ..KeyNames::new(&["rename_all"], OF_STRUCT_HINTS) };
    keys::attributes(attributes, "serde", errors, |input, errors| {
        keys::each_item(
            input,
            known,
            errors,
            |_, _| None,
            |key, input, errors| {
                let Some(text) = both_ways(key, input, errors)? else { return Ok(()) };
                let names: Vec<&str> = Rename::RULES.iter().map(|(name, _)| *name).collect();
                let found = Rename::RULES.iter().find(|(name, _)| *name == text.value);
                let found = found.ok_or_else(|| {
                    syn::Error::new(text.span, keys::unknown("rule", &text.value, &names))
                })?;
                set(&mut rule, key, found.1, errors);
                Ok(())
            },
        );
    });
    rule.unwrap_or_default()
}

/// Reads `= "name"`, or `(serialize = "name", deserialize = "name")`; `None` for names that are no
/// single name, a fault that is reported.
fn both_ways(
    key: &SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<WithSpan<String>>> {
    if !input.peek(syn::token::Paren) {
        return keys::text(key, input).map(Some);
    }
    let (mut written, mut read) = (None, None);
    let example = format!("{} = \"…\"", key.name);
    let tried = keys::group(key, input, &example, |content| {
        let ways = &["serialize", "deserialize"];
        Ok(keys::each_key(content, ways, errors, |way, content, errors| {
            let slot = if way.name == "serialize" { &mut written } else { &mut read };
            set(slot, way, keys::text(way, content)?, errors);
            Ok(())
        }))
    })?;
    let is_set = [&written, &read].into_iter().flatten().count() == tried.len();
    let same = written.zip(read).filter(|(written, read)| written.value == read.value);
    // Another fault is reported already.
    if same.is_none() && is_set {
        let message = format!(
            "an object is read by the names that it is written with, and a definition has one: `{example}`"
        );
        errors.at(key.span, message);
    }
    Ok(same.map(|(written, _)| written))
}

/// Returns the name in JSON of a field of that name in Rust: in camelCase without a rule.
pub(super) fn json_name(rust: &str, rule: Rename) -> String {
    if OF_EVERY_OBJECT.contains(&rust) {
        rust.to_owned()
    } else {
        rule.or(Rename::Camel).field(rust)
    }
}

impl OfField {
    /// Reads the attributes of a field.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        let keys = &["rename", "default", "skip_serializing_if"];
        let known = KeyNames { refusal: REFUSAL, ..KeyNames::new(keys, OF_FIELD_HINTS) };
        keys::attributes(attributes, "serde", errors, |input, errors| {
            keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| {
                    match key.name.as_str() {
                        "rename" => {
                            if let Some(name) = both_ways(key, input, errors)? {
                                set(&mut read.rename, key, name, errors);
                            }
                        }
                        "default" => {
                            set(&mut read.default, key, (default(input)?, key.span), errors);
                        }
                        _ => {
                            let function = path(&keys::value(key, input, "\"Vec::is_empty\"")?)?;
                            set(&mut read.skip_if, key, (function, key.span), errors);
                        }
                    }
                    Ok(())
                },
            );
        });
        read
    }

    /// Checks the attributes against the field, and leaves out those that say nothing new.
    pub(super) fn settle(&mut self, json: &str, is_option: bool, errors: &mut Errors) {
        let is_of_trait = matches!(self.default, Some((FieldDefault::Trait, _)));
        // An absent option is `None` anyway, and absent metadata is empty.
        if is_of_trait && (is_option || json == "metadata") {
            self.default = None;
        }
        let is_none = |(function, _): &(ExprPath, Span)| {
            let names = function.path.segments.iter().rev().map(|it| it.ident.to_string());
            names.take(2).eq(["is_none", "Option"])
        };
        // Beside the function of a default, `None` is written otherwise.
        let is_plain = is_option && self.default.is_none();
        if is_plain && self.skip_if.as_ref().is_some_and(is_none) {
            self.skip_if = None;
        }
        let default = self.default.as_ref().map(|(_, span)| *span);
        let Some(span) = default.or(self.skip_if.as_ref().map(|(_, span)| *span)) else { return };
        let message = match json {
            "metadata" => "the metadata of an object are always written, and absent ones are empty",
            "status" => {
                "an absent status is `None`, which is left out: the operator writes the first one"
            }
            _ if default.is_none() && !is_option => {
                "serde leaves the value out and demands it on reading: give the field \
                 `#[serde(default)]` as well, or make it an `Option`"
            }
            _ => return,
        };
        errors.at(span, message);
        (self.default, self.skip_if) = (None, None);
    }
}

/// Reads nothing, or `= "function"`.
fn default(input: ParseStream<'_>) -> syn::Result<FieldDefault> {
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok(FieldDefault::Trait);
    }
    path(&input.parse()?).map(FieldDefault::Function)
}

/// Reads the path in a text.
fn path(text: &LitStr) -> syn::Result<ExprPath> {
    text.parse()
}
