//! Answers to words of kubebuilder, kube-rs and schemars that this derive spells differently.

/// A word, and the key with the same meaning.
const WORDS: &[(&str, &str)] = &[
    ("listType", "list(map, keys(name))` or `set` or `atomic"),
    ("list_type", "list(map, keys(name))` or `set` or `atomic"),
    ("listMapKey", "list(map, keys(name))"),
    ("list_map_key", "list(map, keys(name))"),
    ("list_map_keys", "list(map, keys(name))"),
    ("merge_strategy", "list(map, keys(name))` or `set` or `atomic` or `map(granular)"),
    ("mapType", "map(granular)` or `map(atomic)"),
    ("structType", "map(granular)` or `map(atomic)"),
    ("validation", "rule(\"self > 0\", message = \"…\")"),
    ("validations", "rule(\"self > 0\", message = \"…\")"),
    ("XValidation", "rule(\"self > 0\", message = \"…\")"),
    ("x_validation", "rule(\"self > 0\", message = \"…\")"),
    ("x_validations", "rule(\"self > 0\", message = \"…\")"),
    ("cel", "rule(\"self > 0\", message = \"…\")"),
    ("regex", "pattern = \"^[a-z]+$\""),
    ("Pattern", "pattern = \"^[a-z]+$\""),
    ("Minimum", "min = 1"),
    ("minimum", "min = 1"),
    ("Maximum", "max = 10"),
    ("maximum", "max = 10"),
    ("ExclusiveMinimum", "exclusive_min = 0"),
    ("ExclusiveMaximum", "exclusive_max = 1"),
    ("MultipleOf", "multiple_of = 5"),
    ("MinLength", "length(min = 1)"),
    ("min_length", "length(min = 1)"),
    ("MaxLength", "length(max = 63)"),
    ("max_length", "length(max = 63)"),
    ("MinItems", "items(min = 1)"),
    ("min_items", "items(min = 1)"),
    ("MaxItems", "items(max = 10)"),
    ("max_items", "items(max = 10)"),
    ("UniqueItems", "set"),
    ("uniqueItems", "set"),
    ("unique_items", "set"),
    ("unique", "set"),
    ("MinProperties", "properties(min = 1)"),
    ("MaxProperties", "properties(max = 10)"),
    ("inner", "each(pattern = \"…\")"),
    ("printcolumn", "column(\"Host\", priority = 1)"),
    ("selectablefield", "selectable"),
    ("selectable_field", "selectable"),
    ("Schemaless", "opaque"),
    ("schemaless", "opaque"),
    ("PreserveUnknownFields", "preserve"),
    ("preserve_unknown_fields", "preserve"),
    ("EmbeddedResource", "embedded"),
    ("embedded_resource", "embedded"),
    ("XIntOrString", "int_or_string"),
    ("externalDocs", "docs = \"https://…\""),
    ("external_docs", "docs = \"https://…\""),
    ("exclusiveMinimum", "exclusive_min = 0"),
    ("exclusive_minimum", "exclusive_min = 0"),
    ("exclusiveMaximum", "exclusive_max = 1"),
    ("exclusive_maximum", "exclusive_max = 1"),
    ("multipleOf", "multiple_of = 5"),
    ("minLength", "length(min = 1)"),
    ("maxLength", "length(max = 63)"),
    ("minItems", "items(min = 1)"),
    ("maxItems", "items(max = 10)"),
    ("minProperties", "properties(min = 1)"),
    ("min_properties", "properties(min = 1)"),
    ("maxProperties", "properties(max = 10)"),
    ("max_properties", "properties(max = 10)"),
];

/// Words for keys that stand on the type.
const OF_THE_TYPE: &[(&str, &str)] = &[
    ("ExactlyOneOf", "one_of(a, b)"),
    ("exactlyOneOf", "one_of(a, b)"),
    ("exactly_one_of", "one_of(a, b)"),
    ("AtMostOneOf", "at_most_one_of(a, b)"),
    ("AtLeastOneOf", "at_least_one_of(a, b)"),
];

// DESIGN.md, 274: An index is written at the kind

/// Keys of which the derive of the kind, or serde, is the place.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "index",
        "an index belongs to the kind, whose objects it holds: `#[index(by_host = spec.host)]`",
    ),
    ("group", "a schema is for nested types: the kind has `#[resource(group = …)]`"),
    ("version", "a schema is for nested types: the kind has `#[resource(version = …)]`"),
    ("kind", "a schema is for nested types: the kind has `#[resource(kind = …)]`"),
    ("namespaced", "a schema is for nested types: the kind has `#[resource(namespaced)]`"),
    ("shortname", "short names belong to the kind: `#[resource(short = \"…\")]`"),
    ("rename", "names in JSON are serde's: `#[serde(rename = \"…\")]`"),
    ("rename_all", "names in JSON are serde's: `#[serde(rename_all = \"camelCase\")]`"),
    ("flatten", "the form in JSON is serde's: `#[serde(flatten)]`"),
    ("tag", "the form in JSON is serde's: `#[serde(tag = \"…\")]`"),
    ("untagged", "the form in JSON is serde's: `#[serde(untagged)]`"),
    ("deny_unknown_fields", "that is serde's: `#[serde(deny_unknown_fields)]`"),
    ("enum", "the allowed values are the variants of a Rust enum"),
    ("Enum", "the allowed values are the variants of a Rust enum"),
    (
        "Optional",
        "a field is optional if its type is an `Option` or it has a default; else write `optional`",
    ),
    (
        "Required",
        "a field is required unless its type is an `Option` or it has a default; else write `required`",
    ),
    ("email", "write `format = \"email\"`"),
    ("url", "write `format = \"uri\"`"),
    ("description", "the description is the doc comment"),
];

/// Returns the answer to a word that is no key here, if there is a better answer than the list of
/// keys.
pub(super) fn hint(name: &str, is_on_type: bool) -> Option<String> {
    let of_the_type = OF_THE_TYPE.iter().find(|(word, _)| *word == name && is_on_type);
    let meant = match of_the_type {
        Some((_, key)) => format!("write `{key}`"),
        None => meant(name)?,
    };
    Some(format!("there is no key `{name}` here: {meant}"))
}

/// Returns the words to write instead of a word of another tool.
pub(crate) fn meant(name: &str) -> Option<String> {
    let find = |list: &'static [(&str, &'static str)]| {
        list.iter().find(|(word, _)| *word == name).map(|(_, meant)| *meant)
    };
    if let Some(key) = find(OF_THE_TYPE) {
        return Some(format!("write `{key}` on the type"));
    }
    match (find(WORDS), find(ELSEWHERE)) {
        (Some(meant), _) => Some(format!("write `{meant}`")),
        (None, meant) => meant.map(ToOwned::to_owned),
    }
}
