//! Removal of fields that a schema does not know and of nulls that are not allowed; defaults.
//!
//! Kind, API version and metadata are never touched at the root, nor in embedded resources.

use serde_json::Value;

use super::node::{Additional, SchemaNode};

/// Whether this is a field that every resource has.
pub(crate) fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// Removes unknown fields below `value` and appends their paths to `unknown`.
pub(crate) fn prune(
    value: &mut Value,
    node: Option<&SchemaNode>,
    root: bool,
    path: &str,
    unknown: &mut Vec<String>,
) {
    // Undeclared fields stay, but declared fields are pruned inside.
    if let Some(node) = node.filter(|n| n.preserve) {
        return skip(value, node, root, path, unknown);
    }
    match value {
        Value::Object(map) => {
            let embedded = root || node.is_some_and(|n| n.embedded);
            map.retain(|key, child| {
                if embedded && is_meta(key) {
                    return true;
                }
                let here = || super::cause::child(path, key);
                match node.map(|n| (n.properties.get(key), &n.additional)) {
                    Some((Some(property), _)) => {
                        prune(child, Some(property), false, &here(), unknown)
                    }
                    Some((None, Some(Additional::Schema(schema)))) => {
                        prune(child, Some(schema), false, &here(), unknown);
                    }
                    // Values without a schema: everything below is unknown in turn.
                    Some((None, Some(Additional::Any(_)))) => {
                        prune(child, None, false, &here(), unknown);
                    }
                    _ => {
                        unknown.push(here());
                        return false;
                    }
                }
                true
            });
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                let schema = node.and_then(|n| n.items.as_deref());
                prune(item, schema, false, &super::cause::index(path, i), unknown);
            }
        }
        _ => {}
    }
}

/// Prunes below `x-kubernetes-preserve-unknown-fields`: only inside of declared fields.
fn skip(value: &mut Value, node: &SchemaNode, root: bool, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                if (root || node.embedded) && is_meta(key) {
                    continue;
                }
                let here = super::cause::child(path, key);
                match (node.properties.get(key), &node.additional) {
                    (Some(property), _) => prune(child, Some(property), false, &here, unknown),
                    (None, Some(Additional::Schema(schema))) => {
                        prune(child, Some(schema), false, &here, unknown);
                    }
                    (None, Some(Additional::Any(_))) => prune(child, None, false, &here, unknown),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                if let Some(schema) = node.items.as_deref() {
                    skip(item, schema, false, &super::cause::index(path, i), unknown);
                }
            }
        }
        _ => {}
    }
}

/// Removes nulls under fields that are neither nullable nor have a default.
pub(crate) fn drop_nulls(value: &mut Value, node: Option<&SchemaNode>) {
    match value {
        Value::Object(map) => map.retain(|key, child| {
            let schema = node.and_then(|n| n.field(key));
            if child.is_null() && schema.is_some_and(|s| !s.nullable && s.default.is_none()) {
                return false;
            }
            drop_nulls(child, schema);
            true
        }),
        Value::Array(items) => {
            let schema = node.and_then(|n| n.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, schema));
        }
        _ => {}
    }
}

/// Fills in defaults, also for nulls that the schema does not allow.
pub(crate) fn default(value: &mut Value, node: &SchemaNode) {
    match value {
        Value::Object(map) => {
            // This level first: the loop below visits the inserted defaults too.
            for (name, property) in &node.properties {
                let Some(filler) = &property.default else { continue };
                match map.get(name) {
                    None => {}
                    // A null that is not allowed counts as absent.
                    Some(Value::Null) if !property.nullable => {}
                    Some(_) => continue,
                }
                map.insert(name.clone(), filler.clone());
            }
            for (key, child) in map.iter_mut() {
                if let Some(property) = node.properties.get(key) {
                    default(child, property);
                } else if let Some(Additional::Schema(schema)) = &node.additional {
                    default_null(child, schema);
                    default(child, schema);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.items.as_deref() else { return };
            for item in items {
                default_null(item, schema);
                default(item, schema);
            }
        }
        _ => {}
    }
}

/// Replaces a null that is not allowed by the default.
fn default_null(value: &mut Value, node: &SchemaNode) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or(Value::Null);
    }
}
