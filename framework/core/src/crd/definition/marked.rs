//! Columns and selectable fields that nested types ask for.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, SelectableField,
};
use serde_json::Value;

use super::places::{can_show, column_type, warn_of_ages};
use crate::crd::faults::Faults;
use crate::crd::schema::Mark;
use crate::crd::verdict::{SELECTABLE_REASON, selects_by};
use crate::resource::Segment;
use crate::resource::path::json_path;

/// A JSON object.
type Object = serde_json::Map<String, Value>;

/// Adds a marked field behind those of `#[resource(…)]`, of which there are `of_kind` columns. A
/// field and a heading that stand there already are left as they are.
pub(super) fn add(
    mark: &Mark,
    schema: &Object,
    (columns, of_kind): (&mut Vec<CustomResourceColumnDefinition>, usize),
    selectable: &mut Vec<SelectableField>,
    faults: &mut Faults,
) {
    let segments: Vec<Segment> = mark.path.iter().cloned().map(Segment::Field).collect();
    let path = json_path(&segments);
    let field = below(schema, &mark.path);
    let found = field.and_then(|field| field.get("type")).and_then(Value::as_str);
    let Some(keys) = &mark.column else {
        if let Some(found) = found.filter(|found| !selects_by(found)) {
            faults.add(format!(
                "{path}: a field of type {found} is not selectable: {SELECTABLE_REASON}"
            ));
        } else if !selectable.iter().any(|field| field.json_path == path) {
            selectable.push(SelectableField { json_path: path });
        }
        return;
    };
    if columns.iter().any(|column| column.json_path == path) {
        return;
    }
    let text = |key: &str| keys.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let name = text("name").unwrap_or_else(|| heading(mark.path.last().map_or("", |it| it)));
    let same = columns.iter().position(|column| column.name == name);
    if same.is_some_and(|place| place < of_kind) {
        return;
    }
    if let Some(other) = same.and_then(|place| columns.get(place)) {
        faults.add(format!(
            "{path}: there is a column `{name}` already, of `{}`; say which one is meant by \
             `#[resource(column(\"…\", path = \"{path}\"))]` on the kind",
            other.json_path
        ));
        return;
    }
    let kind = text("type");
    if let (Some(kind), Some(found)) = (&kind, found)
        && !can_show(kind, found)
    {
        faults.add(format!(
            "{path}: it is of type {found}, and a column of type {kind} shows nothing of it; leave out `type`"
        ));
    }
    warn_of_ages(&path, &path, kind.as_deref(), field, faults);
    let priority = keys.get("priority").and_then(Value::as_i64).unwrap_or_default();
    columns.push(CustomResourceColumnDefinition {
        name,
        type_: kind.unwrap_or_else(|| column_type(&path, field).to_owned()),
        json_path: path,
        format: text("format"),
        priority: i32::try_from(priority).ok().filter(|priority| *priority != 0),
        description: text("description"),
    });
}

/// The schema of a field.
fn below<'a>(schema: &'a Object, path: &[String]) -> Option<&'a Object> {
    path.iter().try_fold(schema, |here, name| here.get("properties")?.get(name)?.as_object())
}

/// The heading for a name in JSON: `observedGeneration` becomes `Observed Generation`.
fn heading(name: &str) -> String {
    let mut heading = String::new();
    for c in name.chars() {
        match heading.chars().last() {
            None => heading.extend(c.to_uppercase()),
            Some(last) if c.is_uppercase() && last.is_lowercase() => {
                heading.push(' ');
                heading.push(c);
            }
            Some(_) => heading.push(c),
        }
    }
    heading
}
