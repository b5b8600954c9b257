//! Answers to markers of Go's generators in doc comments: kubebuilder's, and those of Kubernetes
//! itself, which stand at the same places in Go and would have no effect here.

use syn::{Attribute, Expr, ExprLit, Lit};

use crate::errors::Errors;
use crate::schema::meant;

/// Markers without a prefix that stand before a value.
const WITH_VALUE: &[&str] =
    &["listType", "listMapKey", "mapType", "structType", "default", "groupName", "versionName"];

/// Markers without a prefix that stand alone.
const ALONE: &[&str] = &["optional", "required", "nullable", "enum", "genclient"];

/// Markers whose keys are spelled alike.
const SAME: &[(&str, &str)] = &[
    ("default", "default = 3"),
    ("example", "example = 3"),
    ("Format", "format = \"uri\""),
    ("Title", "title = \"…\""),
    ("title", "title = \"…\""),
    ("immutable", "immutable"),
    ("unionMember", "one_of(a, b)` on the type"),
    ("zeroOrOneOfMember", "at_most_one_of(a, b)` on the type"),
];

/// Markers with another answer than a key.
const OTHERS: &[(&str, &str)] = &[
    ("nullable", "an `Option` may be null without a key; else write `nullable`"),
    ("groupName", "the kind has `#[resource(group = …)]`"),
    ("versionName", "the kind has `#[resource(version = …)]`"),
    ("rbac", "rights are written `can(…)` on the controller"),
    ("webhook", "a webhook is a handler of `windlass::webhook`"),
    ("skipversion", "leave the type out of `versions(…)`"),
    ("genclient", "clients take every kind: leave it out"),
    ("deepcopy-gen", "`Clone` is derived: leave it out"),
    ("openapi-gen", "the schema is derived: leave it out"),
];

/// The item that has the doc comment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentedItem<'a> {
    /// Answers that come before those of this derive.
    pub(crate) own: &'a [(&'a str, &'a str)],
    /// Whether the item takes the keys that the other answers name.
    pub(crate) has_keys: bool,
}

impl<'a> DocumentedItem<'a> {
    /// An item that takes keys.
    pub(crate) fn with_keys(own: &'a [(&'a str, &'a str)]) -> Self {
        Self { own, has_keys: true }
    }
}

/// Checks that a doc comment has no rules for another tool, which would have no effect.
pub(crate) fn markers(attributes: &[Attribute], subject: DocumentedItem<'_>, errors: &mut Errors) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Ok(pair) = attribute.meta.require_name_value() else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { continue };
        for message in text.value().lines().filter_map(|line| marker(line, subject)) {
            errors.at(text.span(), message);
        }
    }
}

/// Returns the answer to a marker in a line of a doc comment,
/// `+kubebuilder:validation:Minimum=1`; `None` for other lines.
fn marker(line: &str, subject: DocumentedItem<'_>) -> Option<String> {
    let marker = line.trim().strip_prefix('+')?;
    // The value stands behind the first `=`, and arguments stand behind the name.
    let whole = marker.split(['=', ' ', '(']).next()?.trim_end_matches(':');
    let name = whole.strip_prefix("kubebuilder:").or_else(|| whole.strip_prefix("k8s:"));
    let name = name.or_else(|| {
        let has_value = marker[whole.len()..].starts_with('=');
        let is_alone = marker == whole && ALONE.contains(&whole);
        (is_alone || has_value && WITH_VALUE.contains(&whole)).then_some(whole)
    })?;
    let (is_item, name) = match name.strip_prefix("validation:items:") {
        Some(name) => (true, name),
        None => (false, name.strip_prefix("validation:").unwrap_or(name)),
    };
    // `XValidation:rule`, `pruning:PreserveUnknownFields`
    let meant = name.split(':').find_map(|word| answer(word, subject));
    let meant = meant.unwrap_or_else(|| {
        "keys of a field or type stand in `#[schema(…)]`, those of a kind in `#[resource(…)]`"
            .to_owned()
    });
    let place = if is_item { " in `each(…)`" } else { "" };
    Some(format!(
        "`+{whole}` is a marker for Go, and would be part of the description only: {meant}{place}"
    ))
}

/// Returns the words to write instead of a part of a marker.
fn answer(word: &str, subject: DocumentedItem<'_>) -> Option<String> {
    if let Some(own) = find(subject.own, word) {
        return Some(own);
    }
    let answer = general(word)?;
    match answer.strip_prefix("write ") {
        Some(key) if !subject.has_keys => Some(format!("on a field of a nested type, write {key}")),
        _ => Some(answer),
    }
}

/// Returns the answer to a word in a list.
fn find(list: &[(&str, &str)], word: &str) -> Option<String> {
    list.iter().find(|(known, _)| *known == word).map(|(_, text)| (*text).to_owned())
}

/// Returns the answer of this derive.
fn general(word: &str) -> Option<String> {
    // Kubernetes' own markers begin with a small letter: `+k8s:maxLength`.
    let mut letters = word.chars();
    let upper = letters.next().map(|first| first.to_ascii_uppercase());
    let upper: String = upper.into_iter().chain(letters).collect();
    let same = SAME.iter().find(|(known, _)| *known == word || *known == upper);
    same.map(|(_, key)| format!("write `{key}`"))
        .or_else(|| find(OTHERS, word))
        .or_else(|| meant(word))
        .or_else(|| meant(&upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_go_are_answered_by_the_key() {
        let keys = [
            ("+kubebuilder:validation:Minimum=1", "write `min = 1`"),
            (" +kubebuilder:validation:items:MaxLength=3", "write `length(max = 63)` in `each(…)`"),
            ("+kubebuilder:default=3", "write `default = 3`"),
            ("+kubebuilder:validation:XValidation:rule=\"self > 0\"", "write `rule("),
            ("+kubebuilder:pruning:PreserveUnknownFields", "write `preserve`"),
            ("+kubebuilder:object:root=true", "those of a kind in `#[resource(…)]`"),
            ("+kubebuilder:rbac:groups=apps,resources=deployments,verbs=get", "`can(…)`"),
            ("+kubebuilder:validation:Required", "else write `required`"),
            ("+listType=map", "`+listType` is a marker for Go"),
            ("+listMapKey=name", "write `list(map, keys(name))`"),
            ("+mapType=atomic", "`map(atomic)`"),
            ("+default=1", "write `default = 3`"),
            ("+optional", "an `Option`"),
            ("+nullable", "an `Option`"),
            ("+groupName=example.dev", "`#[resource(group = …)]`"),
            ("+k8s:immutable", "write `immutable`"),
            ("+k8s:minimum=1", "write `min = 1`"),
            ("+k8s:maxLength=63", "write `length(max = 63)`"),
            ("+k8s:format=k8s-ip", "write `format = "),
            ("+k8s:deepcopy-gen=true", "leave it out"),
        ];
        for (line, key) in keys {
            let text = marker(line, DocumentedItem::with_keys(&[])).unwrap_or_default();
            assert!(text.contains(key), "{line}: {text}");
        }
    }

    #[test]
    fn other_lines_of_a_doc_comment_are_no_markers() {
        for line in [
            "",
            "The least number",
            "as +kubebuilder:default=3 in Go",
            "+ one more",
            "+1",
            "+optional in Go",
            "+default",
            "+kubebuilder",
        ] {
            assert_eq!(marker(line, DocumentedItem::with_keys(&[])), None, "{line}");
        }
    }

    #[test]
    fn the_words_of_a_kind_come_before_those_of_a_field() {
        let own = [("shortName", "write `short = \"ws\"`")];
        let text = marker("+kubebuilder:resource:shortName=ws", DocumentedItem::with_keys(&own))
            .unwrap_or_default();
        assert!(text.ends_with("write `short = \"ws\"`"), "{text}");
    }
}
