//! Keys whose values are fields of the object: `column(…)`, `scale(…)`, `selectable(…)`, and the
//! place of a `rule(…)`.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, WithSpan, set};
use crate::path::PathStep;

/// Keys of `column(…)`.
pub(crate) const COLUMN_KEYS: &[&str] =
    &["name", "path", "type", "format", "priority", "description"];
/// Keys of `scale(…)`.
pub(crate) const SCALE_KEYS: &[&str] = &["spec", "status", "selector"];
/// Keys of `rule(…)`.
pub(crate) const RULE_KEYS: &[&str] =
    &["message", "message_expression", "reason", "path", "optional_old_self"];

const COLUMN_HINTS: &[(&str, &str)] = &[
    (
        "jsonPath",
        "write the field, as in `column(\"Host\", spec.host)`, or `path = \".spec.host\"`",
    ),
    (
        "json_path",
        "write the field, as in `column(\"Host\", spec.host)`, or `path = \".spec.host\"`",
    ),
    ("type_", "write `type = \"integer\"`"),
    (
        "JSONPath",
        "write the field, as in `column(\"Host\", spec.host)`, or `path = \".spec.host\"`",
    ),
];
const SCALE_HINTS: &[(&str, &str)] = &[
    ("specpath", "write `scale(spec.replicas, status.replicas)`"),
    ("statuspath", "write `scale(spec.replicas, status.replicas)`"),
    ("status_replicas_path", "write `scale(spec.replicas, status.replicas)`"),
    ("statusReplicasPath", "write `scale(spec.replicas, status.replicas)`"),
    ("spec_replicas_path", "write `scale(spec.replicas, status.replicas)`"),
    ("specReplicasPath", "write `scale(spec.replicas, status.replicas)`"),
    ("label_selector_path", "write `selector = status.selector`"),
    ("labelSelectorPath", "write `selector = status.selector`"),
    ("selectorpath", "write `selector = status.selector`"),
];
const RULE_HINTS: &[(&str, &str)] = &[
    (
        "rule",
        "the rule itself comes first, without a key: `rule(\"self.spec.min <= self.spec.max\")`",
    ),
    ("fieldPath", "write `path = spec.host`"),
    ("field_path", "write `path = spec.host`"),
    ("messageExpression", "write `message_expression = \"…\"`"),
    ("optionalOldSelf", "write `optional_old_self`"),
];

/// Whether a value without a key comes next: a text, or fields.
fn is_place(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let has_name = ahead.call(Ident::parse_any).is_ok();
    input.peek(LitStr)
        // A JSON path without quotation marks, and a reference: the fault says so.
        || input.peek(Token![.])
        || input.peek(Token![&])
        || input.peek(syn::token::Paren)
        || has_name
            && (ahead.is_empty()
                || ahead.peek(Token![,])
                || ahead.peek(Token![.])
                || ahead.peek(Token![?])
                || ahead.peek(Token![::])
                || ahead.peek(syn::token::Bracket))
}

/// `column("Host", spec.host)`
#[derive(Debug)]
pub(super) struct ColumnAttr {
    pub(super) key: SpannedKey,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) name: Option<WithSpan<String>>,
    pub(super) place: Option<PathStep>,
    pub(super) kind: Option<WithSpan<String>>,
    pub(super) format: Option<WithSpan<String>>,
    pub(super) priority: Option<WithSpan<i32>>,
    pub(super) description: Option<WithSpan<String>>,
}

impl ColumnAttr {
    pub(super) fn read(key: &SpannedKey, input: ParseStream<'_>, errors: &mut Errors) -> Self {
        let mut column = Self {
            key: key.clone(),
            tried: Vec::new(),
            name: None,
            place: None,
            kind: None,
            format: None,
            priority: None,
            description: None,
        };
        let mut unnamed = Vec::new();
        let known = KeyNames::new(COLUMN_KEYS, COLUMN_HINTS);
        let other = |input: ParseStream<'_>, _: &mut Errors| {
            is_place(input).then(|| PathStep::parse(input).map(|place| unnamed.push(place)))
        };
        let tried = keys::each_item(input, known, errors, other, |key, input, errors| {
            match key.name.as_str() {
                "name" => set(&mut column.name, key, keys::text(key, input)?, errors),
                "path" => set(&mut column.place, key, PathStep::value(key, input)?, errors),
                "type" => set(&mut column.kind, key, keys::text(key, input)?, errors),
                "format" => set(&mut column.format, key, keys::text(key, input)?, errors),
                "priority" => set(&mut column.priority, key, keys::number(key, input)?, errors),
                _ => set(&mut column.description, key, keys::text(key, input)?, errors),
            }
            Ok(())
        });
        column.tried = tried;
        column.take(unnamed, errors);
        column
    }

    /// Takes the word of a column that most kinds have, such as `age`, if the kind has no field of
    /// that name.
    pub(super) fn settle(&mut self, has_field: impl Fn(&str) -> bool) {
        let Some(PathStep::Fields(path)) = &self.place else { return };
        let (word, span) = (path.text(), path.end());
        let Some((_, name, place, kind)) = USUAL.iter().find(|(known, ..)| *known == word) else {
            return;
        };
        if has_field(&word) {
            return;
        }
        let at = |value: &str| WithSpan { value: value.to_owned(), span };
        self.name.get_or_insert_with(|| at(name));
        self.kind.get_or_insert_with(|| at(kind));
        self.place = Some(PathStep::Text(at(place)));
    }

    /// Takes the values without a key: a heading, a field, or both.
    fn take(&mut self, unnamed: Vec<PathStep>, errors: &mut Errors) {
        for place in unnamed {
            match place {
                PathStep::Text(text) if self.name.is_none() && !text.value.starts_with('.') => {
                    self.name = Some(text);
                }
                place if self.place.is_none() => self.place = Some(place),
                place => {
                    let message =
                        "a column has one heading and one field: `column(\"Host\", spec.host)`";
                    errors.at(place.span(), message);
                }
            }
        }
        // The heading follows from the field, and cannot follow from a text.
        if let (None, Some(PathStep::Fields(path))) = (&self.name, &self.place)
            && !self.tried.iter().any(|tried| tried == "name")
        {
            self.name = Some(WithSpan { value: heading(&path.last_name()), span: path.end() });
        }
    }
}

/// Heading, JSON path and type of the columns that most kinds have, by their word.
pub(super) const USUAL: &[(&str, &str, &str, &str)] = &[
    ("ready", "Ready", ".status.conditions[?(@.type==\"Ready\")].status", "string"),
    ("age", "Age", ".metadata.creationTimestamp", "date"),
];

/// Returns the heading for a field: `observed_generation` becomes `Observed Generation`.
fn heading(field: &str) -> String {
    let words = field.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut chars = word.chars();
        let first = chars.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + chars.as_str()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `scale(spec.replicas, status.replicas, selector = status.selector)`
#[derive(Debug)]
pub(super) struct ScaleAttr {
    pub(super) key: SpannedKey,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) spec: Option<PathStep>,
    pub(super) status: Option<PathStep>,
    pub(super) selector: Option<PathStep>,
    /// Whether a fault is reported that says how all fields are written.
    pub(super) is_told: bool,
}

impl ScaleAttr {
    pub(super) fn read(key: &SpannedKey, input: ParseStream<'_>, errors: &mut Errors) -> Self {
        let mut scale = Self {
            key: key.clone(),
            tried: Vec::new(),
            spec: None,
            status: None,
            selector: None,
            is_told: false,
        };
        // A fault stands for its field.
        let mut unnamed: Vec<Option<PathStep>> = Vec::new();
        let known = KeyNames::new(SCALE_KEYS, SCALE_HINTS);
        let other = |input: ParseStream<'_>, _: &mut Errors| {
            is_place(input).then(|| {
                let place = PathStep::parse(input);
                unnamed.push(None);
                place.map(|place| unnamed.last_mut().map_or((), |last| *last = Some(place)))
            })
        };
        let tried = keys::each_item(input, known, errors, other, |key, input, errors| {
            let place = PathStep::value(key, input)?;
            let slot = match key.name.as_str() {
                "spec" => &mut scale.spec,
                "status" => &mut scale.status,
                _ => &mut scale.selector,
            };
            set(slot, key, place, errors);
            Ok(())
        });
        scale.tried = tried;
        scale.take(unnamed, errors);
        scale
    }

    /// Takes the fields without a key, in order.
    fn take(&mut self, unnamed: Vec<Option<PathStep>>, errors: &mut Errors) {
        let mut free = [&mut self.spec, &mut self.status].into_iter().filter(|it| it.is_none());
        for place in unnamed {
            match (free.next(), place) {
                (Some(slot), place) => *slot = place,
                (None, Some(place)) => {
                    let message = "`scale` has two counts, that of `spec` first; write the third field as `selector = status.selector`";
                    if !self.is_told {
                        errors.at(place.span(), message);
                    }
                    self.is_told = true;
                }
                (None, None) => {}
            }
        }
    }

    /// The counts, if each stands in the place of the other.
    pub(super) fn swapped(&self) -> Option<(&PathStep, &PathStep)> {
        let (first, second) = (self.spec.as_ref()?, self.status.as_ref()?);
        (first.is_below("status") && second.is_below("spec")).then_some((first, second))
    }
}

/// `rule("self.spec.min <= self.spec.max", message = "…")`
#[derive(Debug)]
pub(super) struct RuleAttr {
    pub(super) rule: WithSpan<String>,
    pub(super) message: Option<WithSpan<String>>,
    pub(super) message_expression: Option<WithSpan<String>>,
    pub(super) reason: Option<WithSpan<String>>,
    pub(super) path: Option<PathStep>,
    pub(super) optional_old_self: Option<Span>,
}

impl RuleAttr {
    /// Reads a rule; `None` is a fault that is reported.
    pub(super) fn read(
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> Option<Self> {
        let mut rule = None;
        let (mut message, mut expression, mut reason, mut path, mut old) =
            (None, None, None, None, None);
        let known = KeyNames::new(RULE_KEYS, RULE_HINTS);
        let other = |input: ParseStream<'_>, errors: &mut Errors| {
            input.peek(LitStr).then(|| {
                let text = WithSpan::text(&input.parse()?);
                if rule.is_some() {
                    let message =
                        "one `rule(…)` holds one rule: write a second `rule(…)`, or `message = \"…\"`";
                    errors.at(text.span, message);
                } else {
                    rule = Some(text);
                }
                Ok(())
            })
        };
        keys::each_item(input, known, errors, other, |key, input, errors| {
            match key.name.as_str() {
                "message" => set(&mut message, key, keys::text(key, input)?, errors),
                "message_expression" => set(&mut expression, key, keys::text(key, input)?, errors),
                "reason" => set(&mut reason, key, keys::text(key, input)?, errors),
                "path" => set(&mut path, key, PathStep::value(key, input)?, errors),
                _ => set(&mut old, key, key.span, errors),
            }
            Ok(())
        });
        let Some(rule) = rule else {
            let message = "a rule is a text of CEL: `rule(\"self.spec.min <= self.spec.max\")`";
            errors.at(key.span, message);
            return None;
        };
        Some(Self {
            rule,
            message,
            message_expression: expression,
            reason,
            path,
            optional_old_self: old,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_has_the_words_of_the_field() {
        assert_eq!(heading("host"), "Host");
        assert_eq!(heading("observed_generation"), "Observed Generation");
        assert_eq!(heading("type_"), "Type");
    }
}
