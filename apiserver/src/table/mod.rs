//! Tables in the form of `meta.k8s.io/v1`, which `kubectl get` prints.
//!
//! Built-in kinds have the columns and cells of a real server; custom resources have those of their
//! CRD. Not implemented: columns of kinds that an operator's tests hardly list (they get name and
//! age).

mod autoscaler;
mod builtin;
mod descriptions;
mod human;
mod jsonpath;
mod network;
mod plain;
mod pod;
mod stored;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Map, Value, json};

use crate::served::{Column, Served};

use descriptions::describe;
pub use human::{duration, seconds};
pub use jsonpath::find;

/// Part of the object that each row carries: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// `PartialObjectMetadata`; the default.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

/// A column: name, type, format and priority.
type Definition = (&'static str, &'static str, &'static str, i64);

/// Renders a list, or a single object as a table of a single row.
///
/// `now_seconds` is the wall time in seconds since 1970; ages are relative to that time.
pub fn table(served: &Served, list: &Value, include: IncludeObject, now_seconds: i64) -> Value {
    let items: Vec<&Value> = match list.get("items").and_then(Value::as_array) {
        // An object may have a field `items`, too: the kind distinguishes the object from a list.
        Some(items) if list.get("kind").and_then(Value::as_str) != Some(&served.kind) => {
            items.iter().collect()
        }
        _ => vec![list],
    };
    let rows: Vec<Value> =
        items.iter().map(|item| row(served, item, include, now_seconds)).collect();
    let columns = definitions(served);
    // Upstream's printer of kinds without columns of their own makes no list where there is
    // nothing.
    let is_bare =
        !served.custom && columns.get(1).is_some_and(|column| column["name"] == "Created At");
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta(&list["metadata"]),
        "columnDefinitions": columns,
        "rows": if is_bare && rows.is_empty() { Value::Null } else { rows.into() },
    })
}

/// Returns the list metadata that a table keeps.
fn list_meta(metadata: &Value) -> Value {
    let mut out = Map::new();
    for key in ["resourceVersion", "continue", "remainingItemCount"] {
        match metadata.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(s)) if s.is_empty() => {}
            Some(value) => {
                out.insert(key.to_owned(), value.clone());
            }
        }
    }
    Value::Object(out)
}

/// Returns the column definitions of a kind.
fn definitions(served: &Served) -> Vec<Value> {
    let define = |name: &str, kind: &str, format: &str, description: &str, priority: i64| json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority});
    if !served.custom {
        return builtin::columns(served)
            .iter()
            .map(|(name, kind, format, priority)| {
                define(name, kind, format, describe(&served.kind, name), *priority)
            })
            .collect();
    }
    let own = custom_columns(served);
    let name = std::iter::once(define("Name", "string", "name", describe("", "Name"), 0));
    name.chain(own.iter().map(|c| {
        let path =
            format!("Custom resource definition column (in JSONPath format): {}", c.json_path);
        let text = if c.description.is_empty() { &path } else { &c.description };
        define(&c.name, &c.kind, &c.format, text, c.priority)
    }))
    .collect()
}

/// Returns the table of a Scale.
pub(crate) fn scale(served: &Served, scale: &Value, include: IncludeObject, now: i64) -> Value {
    let column = |name: &str, kind: &str, path: &str, description: &str| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: description.to_owned(),
        priority: 0,
        json_path: path.to_owned(),
    };
    let columns = vec![
        column("Desired", "integer", ".spec.replicas", "Number of desired replicas."),
        column("Available", "integer", ".status.replicas", "Number of observed replicas."),
        column("Age", "date", ".metadata.creationTimestamp", describe("", "Age")),
    ];
    let shown = Served { custom: true, columns, ..served.clone() };
    let metadata = json!({"resourceVersion": scale["metadata"]["resourceVersion"]});
    let list = json!({"metadata": metadata, "items": [scale]});
    let mut table = table(&shown, &list, include, now);
    if !served.custom {
        table["columnDefinitions"][0]["format"] = json!("");
        table["columnDefinitions"][3]["type"] = json!("string");
        if table["rows"][0]["cells"][1].is_null() {
            table["rows"][0]["cells"][1] = json!(0);
        }
    }
    table
}

/// Returns the printer columns of a custom resource; the age alone if the CRD has none.
fn custom_columns(served: &Served) -> Vec<Column> {
    if !served.columns.is_empty() {
        return served.columns.clone();
    }
    vec![Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".to_owned(),
    }]
}

/// Returns the row of an object.
fn row(served: &Served, item: &Value, include: IncludeObject, now: i64) -> Value {
    let cells = if served.custom {
        let name = item["metadata"]["name"].clone();
        let own = custom_columns(served).into_iter().map(|c| custom_cell(&c, item, now));
        std::iter::once(name).chain(own).collect()
    } else {
        builtin::cells(served, item, now)
    };
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": item["metadata"],
        }),
        IncludeObject::Object => whole(served, item),
    };
    let mut row = json!({"cells": cells, "object": object});
    if let Some(conditions) = builtin::conditions(served, item) {
        row["conditions"] = conditions;
    }
    row
}

/// Returns the object with kind and API version, which items of built-in lists lack.
fn whole(served: &Served, item: &Value) -> Value {
    let mut object = item.clone();
    if let Value::Object(map) = &mut object {
        map.entry("kind").or_insert_with(|| json!(served.kind));
        map.entry("apiVersion").or_insert_with(|| json!(served.api_version()));
    }
    object
}

/// Returns the cell of a printer column; null if the value does not fit the column's type.
fn custom_cell(column: &Column, item: &Value, now: i64) -> Value {
    let Some(value) = find(item, &column.json_path).into_iter().next() else { return Value::Null };
    match (column.kind.as_str(), value) {
        ("string", Value::String(s)) => json!(s),
        // Go's text for null.
        ("string", Value::Null) => json!("<no value>"),
        ("string", other) => json!(other.to_string()),
        ("integer", Value::Number(n)) => {
            // A column of integers cuts the fraction off.
            n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)).map_or(Value::Null, Value::from)
        }
        ("number", Value::Number(n)) => json!(n),
        ("boolean", Value::Bool(b)) => json!(b),
        ("date", Value::String(s)) => match seconds(s) {
            Some(then) => json!(duration(now - then)),
            None => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}
