//! serde's attributes, as far as they change the form in JSON.
//!
//! Attributes that serde does not know are serde's to report.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::{Attribute, ExprPath, LitStr, Token, Type};

use crate::errors::Errors;
use crate::keys::WithSpan;

/// `rename_all = "…"`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rename {
    /// As in Rust.
    #[default]
    None,
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

/// Source of the value of an absent field.
#[derive(Clone, Debug)]
pub(crate) enum Default {
    /// `Default::default()`
    Trait,
    /// A function.
    Function(ExprPath),
}

/// Attributes of a type.
#[derive(Debug, Default)]
pub(super) struct OfType {
    pub(super) rename: Option<String>,
    pub(super) rename_all: Rename,
    pub(super) rename_all_fields: Rename,
    pub(super) closed: bool,
    pub(super) tag: Option<String>,
    /// The word `tag`.
    pub(super) tag_span: Option<Span>,
    pub(super) content: Option<String>,
    pub(super) untagged: bool,
    pub(super) default: Option<self::Default>,
    pub(super) transparent: bool,
    /// Type of `from` or `try_from`.
    pub(super) from: Option<Type>,
    /// Whether `from` may fail.
    pub(super) is_fallible: bool,
    pub(super) into: Option<Type>,
}

/// Attributes of a variant.
#[derive(Debug, Default)]
pub(super) struct OfVariant {
    pub(super) rename: Option<String>,
    pub(super) rename_all: Rename,
    pub(super) skipped: bool,
    pub(super) untagged: bool,
    /// Further names that serde reads.
    pub(super) aliases: Vec<String>,
    /// `other`: serde reads every other name as this variant.
    pub(super) is_rest: bool,
    /// Module or function that writes or reads the content.
    pub(super) by: Option<WithSpan<String>>,
}

/// Attributes of a field.
#[derive(Debug, Default)]
pub(super) struct OfField {
    pub(super) rename: Option<String>,
    pub(super) default: Option<self::Default>,
    /// Neither read nor written.
    pub(super) skipped: bool,
    pub(super) not_read: bool,
    pub(super) not_written: bool,
    pub(super) skip_if: Option<ExprPath>,
    pub(super) flatten: Option<Span>,
    /// `with = "module"`
    pub(super) with: Option<WithSpan<String>>,
    /// Function that writes the field.
    pub(super) serialize_with: Option<ExprPath>,
    /// `deserialize_with = "function"`
    pub(super) reads: Option<WithSpan<String>>,
    /// Whether a function reads the field.
    pub(super) read_by_function: bool,
    /// Further names that serde reads.
    pub(super) aliases: Vec<String>,
}

impl OfType {
    /// Reads the attributes.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        each(attributes, |meta| {
            let name = name(meta);
            match name.as_str() {
                "rename" => read.rename = both_ways(meta, errors)?,
                "rename_all" => read.rename_all = rule(both_ways(meta, errors)?),
                "rename_all_fields" => read.rename_all_fields = rule(both_ways(meta, errors)?),
                "deny_unknown_fields" => read.closed = true,
                "tag" => {
                    read.tag_span = Some(meta.path.span());
                    read.tag = Some(text(meta)?);
                }
                "content" => read.content = Some(text(meta)?),
                "untagged" => read.untagged = true,
                "transparent" => read.transparent = true,
                "default" => read.default = Some(default(meta)?),
                "from" | "try_from" => {
                    read.is_fallible = meta.path.is_ident("try_from");
                    read.from = Some(parsed(meta)?);
                }
                "into" => read.into = Some(parsed(meta)?),
                _ => return Ok(false),
            }
            Ok(true)
        });
        read
    }
}

impl OfVariant {
    /// Reads the attributes.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        each(attributes, |meta| {
            match name(meta).as_str() {
                "rename" => read.rename = both_ways(meta, errors)?,
                "rename_all" => read.rename_all = rule(both_ways(meta, errors)?),
                "skip" | "skip_deserializing" => read.skipped = true,
                "untagged" => read.untagged = true,
                "alias" => read.aliases.push(text(meta)?),
                "other" => read.is_rest = true,
                "with" | "serialize_with" | "deserialize_with" => {
                    read.by = Some(WithSpan::text(&meta.value()?.parse()?));
                }
                _ => return Ok(false),
            }
            Ok(true)
        });
        read
    }
}

impl OfField {
    /// Reads the attributes.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        each(attributes, |meta| {
            let span = meta.path.span();
            match name(meta).as_str() {
                "rename" => read.rename = both_ways(meta, errors)?,
                "default" => read.default = Some(default(meta)?),
                "skip" => read.skipped = true,
                "skip_deserializing" => read.not_read = true,
                "skip_serializing" => read.not_written = true,
                "skip_serializing_if" => read.skip_if = Some(parsed(meta)?),
                "flatten" => read.flatten = Some(span),
                "alias" => read.aliases.push(text(meta)?),
                "with" => {
                    let module: LitStr = meta.value()?.parse()?;
                    read.read_by_function = true;
                    read.serialize_with =
                        syn::parse_str(&format!("{}::serialize", module.value())).ok();
                    read.with = Some(WithSpan::text(&module));
                }
                "serialize_with" => read.serialize_with = Some(parsed(meta)?),
                "deserialize_with" => {
                    let function: LitStr = meta.value()?.parse()?;
                    read.reads = Some(WithSpan::text(&function));
                    read.read_by_function = true;
                }
                _ => return Ok(false),
            }
            Ok(true)
        });
        if read.not_read && read.default.is_none() {
            read.default = Some(self::Default::Trait);
        }
        read
    }
}

/// Calls `read` for each word in `#[serde(…)]`; `read` returns whether the word is known.
fn each(attributes: &[Attribute], mut read: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<bool>) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // Faults of the syntax are reported by serde.
        let _ = attribute.parse_nested_meta(|meta| {
            if !read(&meta)? {
                skip(&meta)?;
            }
            Ok(())
        });
    }
}

fn name(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// Skips the value of a word that is of no interest.
fn skip(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        let _: syn::Expr = meta.value()?.parse()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        let _: proc_macro2::TokenStream = content.parse()?;
    }
    Ok(())
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<String> {
    Ok(meta.value()?.parse::<LitStr>()?.value())
}

fn parsed<T: Parse>(meta: &ParseNestedMeta<'_>) -> syn::Result<T> {
    meta.value()?.parse::<LitStr>()?.parse()
}

fn default(meta: &ParseNestedMeta<'_>) -> syn::Result<self::Default> {
    if meta.input.peek(Token![=]) {
        Ok(self::Default::Function(parsed(meta)?))
    } else {
        Ok(self::Default::Trait)
    }
}

/// Reads `= "name"` or `(serialize = "name", deserialize = "name")`; two different names are a
/// fault.
fn both_ways(meta: &ParseNestedMeta<'_>, errors: &mut Errors) -> syn::Result<Option<String>> {
    if !meta.input.peek(syn::token::Paren) {
        return text(meta).map(Some);
    }
    let (mut written, mut read) = (None, None);
    meta.parse_nested_meta(|way| {
        let text: LitStr = way.value()?.parse()?;
        match name(&way).as_str() {
            "serialize" => written = Some(text.value()),
            "deserialize" => read = Some(text.value()),
            _ => {}
        }
        Ok(())
    })?;
    if written != read {
        errors.at(
            meta.path.span(),
            "the name differs between reading and writing, and a schema has one: the API server would refuse \
             or drop what is written",
        );
    }
    Ok(read.or(written))
}

/// Returns the rule of that name; an unknown name is serde's to report.
fn rule(name: Option<String>) -> Rename {
    let name = name.unwrap_or_default();
    Rename::RULES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, rule)| *rule)
        .unwrap_or_default()
}

impl Rename {
    /// Each rule with its name.
    pub(crate) const RULES: &[(&str, Self)] = &[
        ("lowercase", Self::Lower),
        ("UPPERCASE", Self::Upper),
        ("PascalCase", Self::Pascal),
        ("camelCase", Self::Camel),
        ("snake_case", Self::Snake),
        ("SCREAMING_SNAKE_CASE", Self::ScreamingSnake),
        ("kebab-case", Self::Kebab),
        ("SCREAMING-KEBAB-CASE", Self::ScreamingKebab),
    ];

    /// Returns this rule, or `other` without a rule.
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::None { other } else { self }
    }

    /// Returns the name of a field that is `snake_case` in Rust.
    pub(crate) fn field(self, name: &str) -> String {
        match self {
            Self::None | Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(name),
            Self::Camel => first_lower(&pascal(name)),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Returns the name of a variant that is `PascalCase` in Rust.
    pub(super) fn variant(self, name: &str) -> String {
        match self {
            Self::None | Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => first_lower(name),
            Self::Snake => snake(name),
            Self::ScreamingSnake => snake(name).to_ascii_uppercase(),
            Self::Kebab => snake(name).replace('_', "-"),
            Self::ScreamingKebab => snake(name).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(name: &str) -> String {
    let mut pascal = String::new();
    let mut upper = true;
    for c in name.chars() {
        if c == '_' {
            upper = true;
        } else if upper {
            pascal.push(c.to_ascii_uppercase());
            upper = false;
        } else {
            pascal.push(c);
        }
    }
    pascal
}

fn first_lower(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_ascii_lowercase().to_string() + letters.as_str())
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, c) in name.char_indices() {
        if place > 0 && c.is_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::Rename;

    #[test]
    fn names_are_those_of_serde() {
        let rules = [
            (Rename::None, "max_size", "MaxSize"),
            (Rename::Lower, "max_size", "maxsize"),
            (Rename::Upper, "MAX_SIZE", "MAXSIZE"),
            (Rename::Pascal, "MaxSize", "MaxSize"),
            (Rename::Camel, "maxSize", "maxSize"),
            (Rename::Snake, "max_size", "max_size"),
            (Rename::ScreamingSnake, "MAX_SIZE", "MAX_SIZE"),
            (Rename::Kebab, "max-size", "max-size"),
            (Rename::ScreamingKebab, "MAX-SIZE", "MAX-SIZE"),
        ];
        for (rule, field, variant) in rules {
            assert_eq!(rule.field("max_size"), field, "{rule:?}");
            assert_eq!(rule.variant("MaxSize"), variant, "{rule:?}");
        }
    }
}
