//! Reads the values of the keys of `#[schema(…)]`.

mod columns;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Lit, LitStr, Path, Token, Type, parenthesized};

use super::attrs::{EACH_KEYS, RULE_KEYS};
use super::key::{CelRule, FieldCount, KeyMeaning, RulePath};
use crate::errors::Errors;
use crate::keys::{self, unknown};
use columns::column;

/// Keywords of Kubernetes for `extend(…)`.
const EXTENSIONS: &[&str] = &[
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Reads the value of a key.
pub(super) fn kinds(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<KeyMeaning>> {
    if let Some(found) = validation(key, input, errors)? {
        return Ok(found);
    }
    Ok(match key.name.as_str() {
        "each" => each(key, input, errors)?,
        "extend" => extend(key, input, errors)?,
        name => vec![match name {
            "atomic" => KeyMeaning::Atomic,
            "list" => list(key, input, errors)?,
            "map" => map(key, input, errors)?,
            "rule" => KeyMeaning::Rule(rule(key, input, errors)?),
            "immutable" => KeyMeaning::Rule(immutable(key.span)),
            "one_of" => KeyMeaning::OneOf(FieldCount::Exactly, names(key, input)?),
            "at_most_one_of" => KeyMeaning::OneOf(FieldCount::AtMost, names(key, input)?),
            "at_least_one_of" => KeyMeaning::OneOf(FieldCount::AtLeast, names(key, input)?),
            "default" => KeyMeaning::Default(keys::value(key, input, "3")?),
            "example" => KeyMeaning::Example(keys::value(key, input, "3")?),
            "transform" => KeyMeaning::Transform(keys::value(key, input, "function")?),
            "with" => KeyMeaning::With(named::<Type>(key, input, "Type")?),
            "schema_with" => KeyMeaning::By(named::<Path>(key, input, "path::to::function")?),
            "opaque" => KeyMeaning::Opaque,
            "full" => KeyMeaning::Full,
            "embedded" => KeyMeaning::Embedded,
            "int_or_string" => KeyMeaning::IntOrString,
            "required" => KeyMeaning::Required,
            "optional" => KeyMeaning::Optional,
            // The last of the known keys.
            _ => KeyMeaning::Skip,
        }],
    })
}

/// Reads a key that is a keyword of the schema.
fn validation(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Option<Vec<KeyMeaning>>> {
    let one = |name, value| Ok(Some(vec![KeyMeaning::Keyword(name, value)]));
    let mut range = |example, names| bounds(key, input, errors, example, names).map(Some);
    match key.name.as_str() {
        "min" => one("minimum", expression(key, input, "1")?),
        "max" => one("maximum", expression(key, input, "10")?),
        "exclusive_min" => one("exclusiveMinimum", exclusive(key, input, "0", "min")?),
        "exclusive_max" => one("exclusiveMaximum", exclusive(key, input, "1", "max")?),
        "multiple_of" => one("multipleOf", expression(key, input, "5")?),
        "range" => range("range(min = 1, max = 10)", ["minimum", "maximum"]),
        "length" => range("length(min = 1, max = 63)", ["minLength", "maxLength"]),
        "items" => range("items(min = 1, max = 10)", ["minItems", "maxItems"]),
        "properties" => range("properties(min = 1)", ["minProperties", "maxProperties"]),
        "pattern" => one("pattern", pattern(key, input)?),
        "format" => one("format", format(key, input)?),
        "title" => one("title", title(key, input)?),
        "docs" => {
            let url = keys::url(key, input)?;
            one("externalDocs", quote!(__s::json!({ "url": #url })))
        }
        "set" => one("x-kubernetes-list-type", quote!("set")),
        "preserve" => one("x-kubernetes-preserve-unknown-fields", quote!(true)),
        "nullable" => one("nullable", quote!(true)),
        "column" => one("x-windlass-column", column(key, input, errors)?),
        "selectable" => one("x-windlass-selectable", quote!(true)),
        _ => Ok(None),
    }
}

/// Reads `= path`, with quotes as schemars wants them or without.
fn named<T: Parse>(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    example: &str,
) -> syn::Result<T> {
    if input.peek(Token![=]) && input.peek2(LitStr) {
        return keys::value::<LitStr>(key, input, example)?.parse();
    }
    keys::value(key, input, example)
}

fn expression(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    example: &str,
) -> syn::Result<TokenStream> {
    keys::value::<Expr>(key, input, example).map(ToTokens::into_token_stream)
}

/// Reads `= 0`. In kubebuilder's markers the key is a flag beside the bound.
fn exclusive(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    example: &str,
    bound: &str,
) -> syn::Result<TokenStream> {
    let value: Expr = keys::value(key, input, example)?;
    if matches!(&value, Expr::Lit(ExprLit { lit: Lit::Bool(_), .. })) {
        let message = format!(
            "`{}` is the bound itself, and no flag beside `{bound}`: write `{0} = {example}` instead of \
             `{bound} = {example}`",
            key.name
        );
        return Err(syn::Error::new_spanned(&value, message));
    }
    Ok(value.into_token_stream())
}

/// Reads `= "text"` or `= CONSTANT`. A literal of another type would make a schema that cannot be
/// decoded.
fn title(key: &keys::SpannedKey, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    if input.peek(Token![=]) && input.peek2(syn::Lit) {
        return Ok(keys::text(key, input)?.value.to_token_stream());
    }
    let value = expression(key, input, "\"…\"")?;
    Ok(quote!(::core::convert::AsRef::<str>::as_ref(&#value)))
}

/// Reads `(min = 1, max = 2)`; `equal` stands for both.
fn bounds(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
    example: &str,
    [least, most]: [&'static str; 2],
) -> syn::Result<Vec<KeyMeaning>> {
    keys::group(key, input, example, |content| {
        let mut bounds: Vec<KeyMeaning> = Vec::new();
        while !content.is_empty() {
            let start = content.span();
            let name = content.call(Ident::parse_any).map_err(|_| {
                syn::Error::new(start, format!("`{}` is written `{example}`", key.name))
            })?;
            errors.saw(&name);
            let part = keys::SpannedKey { name: name.to_string(), span: name.span() };
            let names: &[&str] = match part.name.as_str() {
                "min" => &[least],
                "max" => &[most],
                "equal" => &[least, most],
                other => {
                    let message = unknown("key", other, &["min", "max", "equal"]);
                    return Err(syn::Error::new(part.span, message));
                }
            };
            let value = expression(&part, content, "1")?;
            let known = |name| [least, most].into_iter().find(|known| *known == name);
            let is_set = |kind: &KeyMeaning| matches!(kind, KeyMeaning::Keyword(set, _) if names.contains(set));
            if bounds.iter().any(is_set) {
                let message = "a bound is given once, and `equal` stands for both `min` and `max`";
                return Err(syn::Error::new(part.span, message));
            }
            bounds.extend(
                names
                    .iter()
                    .filter_map(|name| Some(KeyMeaning::Keyword(known(*name)?, value.clone()))),
            );
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        if bounds.is_empty() {
            let message = format!("`{}` is written `{example}`", key.name);
            return Err(syn::Error::new(key.span, message));
        }
        Ok(bounds)
    })
}

/// Reads the keys of list items.
fn each(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<KeyMeaning>> {
    keys::group(key, input, "each(pattern = \"^[a-z]+$\")", |content| {
        let mut found = Vec::new();
        keys::each_key(content, EACH_KEYS, errors, |part, value, errors| {
            found.extend(kinds(part, value, errors)?.into_iter().filter_map(|kind| match kind {
                KeyMeaning::Keyword(name, value) => Some(KeyMeaning::Item(name, value)),
                _ => None,
            }));
            Ok(())
        });
        Ok(found)
    })
}

/// Reads a pattern, and refuses constructs that the API server's regular expressions lack.
fn pattern(key: &keys::SpannedKey, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let text = keys::text(key, input)?;
    let Err(error) = windlass_cel::library::regex::Pattern::parse(&text.value) else {
        return Ok(LitStr::new(&text.value, text.span).to_token_stream());
    };
    let bad =
        ["(?=", "(?!", "(?<=", "(?<!", "(?>"].iter().find(|group| text.value.contains(**group));
    if let Some(group) = bad {
        let message = format!(
            "the pattern uses `{group}`, which the API server's regular expressions do not have; say it without \
             looking around, or as a `rule`"
        );
        return Err(syn::Error::new(text.span, message));
    }
    let mut escaped = false;
    for c in text.value.chars() {
        if escaped && matches!(c, '1'..='9') {
            let message = "the pattern refers back to a group, which the API server's regular expressions cannot do";
            return Err(syn::Error::new(text.span, message));
        }
        escaped = c == '\\' && !escaped;
    }
    Err(syn::Error::new(text.span, format!("the API server refuses this pattern: {error}")))
}

/// Formats that the API server checks; it ignores others.
const FORMATS: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

fn format(key: &keys::SpannedKey, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let text = keys::text(key, input)?;
    if !FORMATS.contains(&text.value.as_str()) {
        let message = unknown("format", &text.value, FORMATS);
        return Err(syn::Error::new(text.span, message));
    }
    Ok(LitStr::new(&text.value, text.span).to_token_stream())
}

/// Reads `list(map, keys(name))`, `list(set)` or `list(atomic)`.
fn list(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<KeyMeaning> {
    let example = "list(map, keys(name))";
    keys::group(key, input, example, |content| {
        let kind = content.call(Ident::parse_any)?;
        errors.saw(&kind);
        match kind.to_string().as_str() {
            "set" | "atomic" if !content.is_empty() => {
                let message = format!(
                    "a list of kind `{kind}` has no keys: write `list({kind})`, or `list(map, keys(name))`"
                );
                Err(syn::Error::new(content.span(), message))
            }
            word @ ("set" | "atomic") => Ok(KeyMeaning::Keyword(
                "x-kubernetes-list-type",
                LitStr::new(word, kind.span()).to_token_stream(),
            )),
            "map" => {
                let message = "a list of kind `map` needs the fields that tell its items apart: \
                               `list(map, keys(name))`";
                content.parse::<Token![,]>().map_err(|_| syn::Error::new(kind.span(), message))?;
                let word = content.call(Ident::parse_any)?;
                if word != "keys" {
                    return Err(syn::Error::new(word.span(), message));
                }
                let key = keys::SpannedKey { name: "keys".to_owned(), span: word.span() };
                names(&key, content).map(KeyMeaning::ListMap)
            }
            other => {
                let message = unknown("kind of list", other, &["map", "set", "atomic"]);
                Err(syn::Error::new(kind.span(), message))
            }
        }
    })
}

/// Reads `map(granular)` or `map(atomic)`.
fn map(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<KeyMeaning> {
    keys::group(key, input, "map(granular)", |content| {
        let kind = content.call(Ident::parse_any)?;
        errors.saw(&kind);
        match kind.to_string().as_str() {
            word @ ("granular" | "atomic") => Ok(KeyMeaning::Keyword(
                "x-kubernetes-map-type",
                LitStr::new(word, kind.span()).to_token_stream(),
            )),
            other => {
                let message = unknown("kind of map", other, &["granular", "atomic"]);
                Err(syn::Error::new(kind.span(), message))
            }
        }
    })
}

/// Reads `(a, b)`: fields by their names in Rust.
fn names(key: &keys::SpannedKey, input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    let example = format!("{}(a, b)", key.name);
    keys::group(key, input, &example, |content| {
        let mut names = Vec::new();
        while !content.is_empty() {
            if content.peek(LitStr) {
                let text: LitStr = content.parse()?;
                let message =
                    "fields are named as in Rust, without quotes; the names in JSON follow";
                return Err(syn::Error::new(text.span(), message));
            }
            let name = content.call(Ident::parse_any)?;
            if content.peek(Token![.]) {
                let message = match key.name.as_str() {
                    "keys" => {
                        "a key is a field of the item itself: API servers compare no fields below"
                            .to_owned()
                    }
                    list => format!(
                        "`{list}` names fields of this type: write the key on the type of `{name}`"
                    ),
                };
                return Err(syn::Error::new(content.span(), message));
            }
            // The keys of items are fields in the expansion, the other names are compared only.
            let name = if key.name == "keys" { in_code(&name) } else { name.unraw() };
            // Lists of one_of(…) are checked with their other rules.
            if key.name == "keys" && names.contains(&name) {
                return Err(syn::Error::new(name.span(), format!("`{name}` is named twice")));
            }
            names.push(name);
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        if names.is_empty() {
            return Err(syn::Error::new(
                key.span,
                format!("`{}` is written `{example}`", key.name),
            ));
        }
        Ok(names)
    })
}

/// Reads `("self > 0", message = "…", …)`.
fn rule(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<CelRule> {
    keys::group(key, input, "rule(\"self > 0\", message = \"…\")", |content| {
        if !content.peek(LitStr) {
            let message =
                "a rule begins with its expression: `rule(\"self > 0\", message = \"…\")`";
            return Err(syn::Error::new(content.span(), message));
        }
        let mut rule = CelRule {
            rule: content.parse()?,
            message: None,
            message_expression: None,
            reason: None,
            path: None,
            optional_old_self: false,
        };
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
        if content.peek(LitStr) {
            let message =
                "one `rule(…)` holds one rule: write a second `rule(…)`, or `message = \"…\"`";
            return Err(syn::Error::new(content.span(), message));
        }
        keys::each_key(content, RULE_KEYS, errors, |part, value, errors| {
            let literal = |value| keys::text(part, value).map(|it| LitStr::new(&it.value, it.span));
            match part.name.as_str() {
                "message" => keys::set(&mut rule.message, part, literal(value)?, errors),
                "message_expression" => {
                    keys::set(&mut rule.message_expression, part, literal(value)?, errors);
                }
                "reason" => keys::set(&mut rule.reason, part, literal(value)?, errors),
                "path" => keys::set(&mut rule.path, part, rule_path(part, value)?, errors),
                _ => rule.optional_old_self = true,
            }
            Ok(())
        });
        Ok(rule)
    })
}

fn rule_path(key: &keys::SpannedKey, input: ParseStream<'_>) -> syn::Result<RulePath> {
    if input.peek(Token![=]) && input.peek2(LitStr) {
        let text = keys::text(key, input)?;
        return Ok(RulePath::Json(LitStr::new(&text.value, text.span)));
    }
    keys::needs_value(key, input, "field")?;
    let field = input.call(Ident::parse_any).map_err(|fault| {
        let message = "`path` takes the name of a field, or a path in JSON as a text: `path = host`, \
                       `path = \".spec.host\"`";
        syn::Error::new(fault.span(), message)
    })?;
    Ok(RulePath::Field(field.unraw()))
}

/// Returns the name of a field as code has it: a word of Rust is written `r#type` there.
fn in_code(name: &Ident) -> Ident {
    let is_word = syn::parse_str::<Ident>(&name.to_string()).is_err();
    if is_word { Ident::new_raw(&name.to_string(), name.span()) } else { name.clone() }
}

/// The rule of a value that never changes.
fn immutable(span: Span) -> CelRule {
    CelRule {
        rule: LitStr::new("self == oldSelf", span),
        message: Some(LitStr::new("field is immutable", span)),
        message_expression: None,
        reason: None,
        path: None,
        optional_old_self: false,
    }
}

/// Reads `("x-name" = json, …)`.
fn extend(
    key: &keys::SpannedKey,
    input: ParseStream<'_>,
    errors: &mut Errors,
) -> syn::Result<Vec<KeyMeaning>> {
    if !input.peek(syn::token::Paren) {
        let message = "`extend` is written `extend(\"x-kubernetes-map-type\" = \"atomic\")`";
        return Err(syn::Error::new(key.span, message));
    }
    let content;
    parenthesized!(content in input);
    let mut found = Vec::new();
    while !content.is_empty() {
        let name: LitStr = content.parse()?;
        content.parse::<Token![=]>()?;
        let value = keys::left_over(&content);
        let text = name.value();
        if text.starts_with("x-kubernetes-") && !EXTENSIONS.contains(&text.as_str()) {
            errors.at(name.span(), unknown("keyword", &text, EXTENSIONS));
        }
        found.push(KeyMeaning::Extend(name, value));
        let _ = content.parse::<Option<Token![,]>>();
    }
    Ok(found)
}
