//! Enumerations of built-in fields, for the descriptions of the API.
//!
//! The file was written by `tests/kube-apiserver/record-enums.py`, which explains its form. Values
//! that no enumeration has are refused by validation, not by these schemas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

/// The file.
static TEXT: &str = include_str!("enums.txt");
/// Fields of each type with the line of their enumeration.
static TYPES: LazyLock<BTreeMap<&str, Vec<(&str, &str)>>> = LazyLock::new(|| {
    let (mut types, mut current) = (BTreeMap::<_, Vec<_>>::new(), "");
    for line in TEXT.lines() {
        match line.strip_prefix('\t').and_then(|line| line.split_once('\t')) {
            Some((name, field)) => types.entry(name).or_default().push((field, current)),
            None => current = line,
        }
    }
    types
});

/// Adds the values of enumerations to the fields of a named type, and what is said of them to the
/// fields' texts.
pub(crate) fn add(name: &str, schema: &mut Value) {
    for (field, line) in TYPES.get(name).into_iter().flatten() {
        let part = [("[]", "items"), ("{}", "additionalProperties")]
            .into_iter()
            .find_map(|(mark, part)| Some((field.strip_suffix(mark)?, Some(part))));
        let (field, part) = part.unwrap_or((field, None));
        let property = schema.get_mut("properties").and_then(|all| all.get_mut(field));
        let target = match part {
            Some(part) => property.and_then(|property| property.get_mut(part)),
            None => property,
        };
        let (Some(Value::Object(target)), Some((values, text))) = (target, line.split_once('\t'))
        else {
            continue;
        };
        if let Ok(values) = serde_json::from_str(values) {
            target.insert("enum".to_owned(), values);
        }
        let said: String = serde_json::from_str(text).unwrap_or_default();
        if let Some(Value::String(description)) = target.get_mut("description") {
            description.push_str(&said);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_items_and_values_of_maps_have_their_enumerations() {
        let mut schema = json!({"properties": {
            "accessModes": {"type": "array", "items": {"type": "string"}},
            "phase": {"type": "string", "description": "Phase."},
            "allocatedResourceStatuses": {"additionalProperties": {"type": "string"}},
        }});
        add("io.k8s.api.core.v1.PersistentVolumeClaimStatus", &mut schema);
        let properties = &schema["properties"];
        assert_eq!(properties["accessModes"]["items"]["enum"][0], "ReadOnlyMany");
        assert_eq!(properties["phase"]["enum"], json!(["Bound", "Lost", "Pending"]));
        let text = properties["phase"]["description"].as_str().unwrap();
        assert!(text.starts_with("Phase.\n\nPossible enum values:\n - `\"Bound\"` "), "{text}");
        let values = &properties["allocatedResourceStatuses"]["additionalProperties"]["enum"];
        assert_eq!(values[0], "ControllerResizeInProgress");
    }

    #[test]
    fn every_enumeration_stands_at_a_field_of_a_built_in_type() {
        let mut components = BTreeMap::new();
        for (version, kind) in crate::typed::TypeSchema::builtin_kinds() {
            components
                .extend(crate::typed::TypeSchema::builtin(&version, &kind).unwrap().components());
        }
        for (name, fields) in TYPES.iter() {
            let mut schema =
                components.get(*name).unwrap_or_else(|| panic!("no type {name}")).clone();
            let before = schema.to_string().matches("\"enum\"").count();
            add(name, &mut schema);
            let added = schema.to_string().matches("\"enum\"").count() - before;
            assert_eq!(added, fields.len(), "{name}");
        }
    }
}
