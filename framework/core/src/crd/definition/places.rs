//! Parts of a definition that name fields: columns, scale, selectable fields, places of rules. Each
//! path is looked up in the schema, and the type of the field compared with the use.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceSubresourceScale, SelectableField,
};
use serde_json::{Map, Value};

use crate::crd::faults::Faults;
use crate::crd::verdict::{SELECTABLE, SELECTABLE_REASON};
use crate::resource::Segment;
use crate::resource::path::{json_path, parsed, parsed_column};

/// A reader of paths as texts.
type PathReader = fn(&str) -> Result<Vec<Segment>, String>;

/// A JSON object.
type Object = Map<String, Value>;

/// A field of the object.
#[derive(Clone, Copy, Debug)]
pub enum DefinitionField {
    /// JSON path, as written.
    Text(&'static str),
    /// Walk along Rust fields, which the compiler has checked; returns the names in JSON.
    Fields(fn() -> Result<Vec<Segment>, String>),
}

impl DefinitionField {
    /// Returns the segments, and the notation of columns.
    fn resolved(self, read: PathReader) -> Result<(Vec<Segment>, String), String> {
        match self {
            Self::Text(text) => Ok((read(text)?, text.to_owned())),
            Self::Fields(walk) => {
                let segments = walk()?;
                let path = json_path(&segments);
                Ok((segments, path))
            }
        }
    }

    /// Returns the path and the schema of the field, `None` where the schema is open; a place
    /// without a field becomes a fault.
    fn found(
        self,
        (what, read): (&str, PathReader),
        schema: &Object,
        faults: &mut Faults,
    ) -> (String, Option<Object>) {
        let found = self.resolved(read).and_then(|(segments, path)| {
            let field = look_up(schema, &segments, &path, Lists::Marked)?;
            Ok((path, field))
        });
        found.unwrap_or_else(|message| {
            faults.add(format!("{what}: {message}"));
            (String::new(), None)
        })
    }

    /// As [`found`](Self::found), for a field whose type is among `types`.
    fn of_type(
        self,
        what: &str,
        types: &[&str],
        reason: &str,
        schema: &Object,
        faults: &mut Faults,
    ) -> String {
        let (path, field) = self.found((what, parsed), schema, faults);
        let found = field.as_ref().and_then(|field| field.get("type")).and_then(Value::as_str);
        if let Some(found) = found.filter(|found| !types.contains(found)) {
            faults.add(format!("{what}: `{path}` is of type {found}; {reason}"));
        }
        path
    }

    /// Builds a selectable field; a path without a field, or to a field of another type, becomes a
    /// fault.
    pub(super) fn selectable(self, schema: &Object, faults: &mut Faults) -> SelectableField {
        let json_path = self.of_type("selectable", SELECTABLE, SELECTABLE_REASON, schema, faults);
        SelectableField { json_path }
    }
}

/// A column of `kubectl get`.
#[derive(Debug)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// The field.
    pub path: DefinitionField,
    /// Type; `None` for the type of the field.
    pub kind: Option<&'static str>,
    /// Format.
    pub format: Option<&'static str>,
    /// Priority; 0 is always shown.
    pub priority: i32,
    /// Description.
    pub description: Option<&'static str>,
}

impl Column {
    /// A column of which nothing is given.
    pub const NONE: Self = Self {
        name: "",
        path: DefinitionField::Text(""),
        kind: None,
        format: None,
        priority: 0,
        description: None,
    };

    /// Builds the column; without a field, or with a type that the field cannot have, it becomes a
    /// fault.
    pub(super) fn definition(
        &self,
        schema: &Object,
        faults: &mut Faults,
    ) -> CustomResourceColumnDefinition {
        let what = format!("column `{}`", self.name);
        let (path, field) = self.path.found((&what, parsed_column), schema, faults);
        if path.contains(r"\\") {
            faults.add(format!("{what}: kubectl has no form for the backslash in `{path}`"));
        }
        let found = field.as_ref().and_then(|field| field.get("type")).and_then(Value::as_str);
        if let (Some(kind), Some(found)) = (self.kind, found)
            && !can_show(kind, found)
        {
            faults.add(format!(
                "{what}: `{path}` is of type {found}, and a column of type {kind} shows nothing of \
                 it; leave out `type`, which then follows from the field"
            ));
        }
        warn_of_ages(&what, &path, self.kind, field.as_ref(), faults);
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            type_: self.kind.unwrap_or_else(|| column_type(&path, field.as_ref())).to_owned(),
            json_path: path,
            format: self.format.map(ToOwned::to_owned),
            priority: (self.priority != 0).then_some(self.priority),
            description: self.description.map(ToOwned::to_owned),
        }
    }
}

/// Warns of a column of ages whose field is a text that need not be a time.
pub(super) fn warn_of_ages(
    place: &str,
    path: &str,
    kind: Option<&str>,
    field: Option<&Object>,
    faults: &mut Faults,
) {
    let text = |key: &str| field.and_then(|field| field.get(key)).and_then(Value::as_str);
    if kind == Some("date") && text("type") == Some("string") && text("format") != Some("date-time")
    {
        faults.warn(format!(
            "{place}: kubectl shows `<invalid>` for each text of `{path}` that is not a time; give the field the type \
             `ApiTime`, or `#[schema(format = \"date-time\")]`"
        ));
    }
}

/// Whether API servers print a value of this type in a column of this type.
pub(super) fn can_show(column: &str, value: &str) -> bool {
    match column {
        "integer" | "number" => matches!(value, "integer" | "number"),
        "boolean" => value == "boolean",
        "date" => value == "string",
        _ => true,
    }
}

/// Type of a column: kubectl shows dates as ages and compares nothing, so everything that is no
/// number, boolean or date is text.
pub(super) fn column_type(path: &str, field: Option<&Object>) -> &'static str {
    if path == ".metadata.creationTimestamp" || path == ".metadata.deletionTimestamp" {
        return "date";
    }
    let text = |key: &str| field.and_then(|field| field.get(key)).and_then(Value::as_str);
    match (text("type"), text("format")) {
        (Some("string"), Some("date-time")) => "date",
        (Some("integer"), _) => "integer",
        (Some("number"), _) => "number",
        (Some("boolean"), _) => "boolean",
        _ => "string",
    }
}

/// Fields of the scale subresource.
#[derive(Debug)]
pub struct Scale {
    /// The wanted replicas.
    pub spec: DefinitionField,
    /// The current replicas.
    pub status: DefinitionField,
    /// The selector, as text.
    pub selector: Option<DefinitionField>,
}

impl Scale {
    /// Builds the scale subresource; places without a field, or of another type, become faults.
    pub(super) fn subresource(
        &self,
        schema: &Object,
        faults: &mut Faults,
    ) -> CustomResourceSubresourceScale {
        let mut count = |place: DefinitionField| {
            let reason = "`scale` counts replicas by a whole number";
            place.of_type("scale", &["integer"], reason, schema, faults)
        };
        let (spec, status) = (count(self.spec), count(self.status));
        let reason = "the selector of `scale` is a text";
        CustomResourceSubresourceScale {
            spec_replicas_path: spec,
            status_replicas_path: status,
            label_selector_path: self
                .selector
                .map(|place| place.of_type("scale", &["string"], reason, schema, faults)),
        }
    }
}

/// Takes `nullable` from the fields of a scale. An API server refuses an object with a null there
/// (`<nil> is of the type <nil>, expected int64`), and serde writes null for an option; without
/// `nullable` the server drops the null.
pub(super) fn drop_nulls(scale: &CustomResourceSubresourceScale, schema: &mut Object) {
    let selector = scale.label_selector_path.as_deref();
    let paths = [scale.spec_replicas_path.as_str(), scale.status_replicas_path.as_str()];
    for path in paths.into_iter().chain(selector) {
        let field =
            path.split('.').filter(|name| !name.is_empty()).try_fold(&mut *schema, member_mut);
        if let Some(field) = field {
            field.remove("nullable");
        }
    }
}

/// The schema of a listed field.
fn member_mut<'a>(schema: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    schema.get_mut("properties")?.get_mut(name)?.as_object_mut()
}

/// A rule of the whole object, in CEL.
#[derive(Debug)]
pub struct Rule {
    /// The expression.
    pub rule: &'static str,
    /// Message of the refusal.
    pub message: Option<&'static str>,
    /// Expression of the message.
    pub message_expression: Option<&'static str>,
    /// Reason in the answer of the API server.
    pub reason: Option<&'static str>,
    /// The field that the refusal names.
    pub path: Option<DefinitionField>,
    /// Whether the rule holds for new objects, too.
    pub optional_old_self: bool,
}

impl Rule {
    /// A rule of which nothing is given.
    pub const NONE: Self = Self {
        rule: "",
        message: None,
        message_expression: None,
        reason: None,
        path: None,
        optional_old_self: false,
    };

    /// Builds the rule; a place without a field becomes a fault.
    pub(super) fn validation(&self, schema: &Object, faults: &mut Faults) -> Value {
        let mut rule = Object::new();
        rule.insert("rule".to_owned(), self.rule.into());
        let texts = [
            ("message", self.message),
            ("messageExpression", self.message_expression),
            ("reason", self.reason),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                rule.insert(key.to_owned(), text.into());
            }
        }
        if let Some(place) = self.path {
            let (path, _) = place.found((&format!("rule `{}`", self.rule), parsed), schema, faults);
            rule.insert("fieldPath".to_owned(), path.into());
        }
        if self.optional_old_self {
            rule.insert("optionalOldSelf".to_owned(), true.into());
        }
        Value::Object(rule)
    }
}

/// Type in JSON of the field at `path`; `None` where the schema leaves the type open.
///
/// # Errors
/// There is no such field.
pub fn field_type_at(schema: &Object, path: &str) -> Result<Option<String>, String> {
    let field = look_up(schema, &parsed(path)?, path, Lists::Marked)?;
    let name = field.as_ref().and_then(|field| field.get("type")).and_then(Value::as_str);
    Ok(name.map(ToOwned::to_owned))
}

/// Type of the column of a path, as derived from the field.
///
/// # Errors
/// There is no such field, or a column of type `kind` shows nothing of the field.
pub fn column_type_at(schema: &Object, path: &str, kind: &str) -> Result<&'static str, String> {
    let field = look_up(schema, &parsed_column(path)?, path, Lists::Marked)?;
    let found = field.as_ref().and_then(|field| field.get("type")).and_then(Value::as_str);
    if let Some(found) = found.filter(|found| !can_show(kind, found)) {
        return Err(format!(
            "`{path}` is of type {found}, of which a column of type {kind} shows nothing"
        ));
    }
    Ok(column_type(path, field.as_ref()))
}

/// Whether a path goes through lists without a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// As the paths of indexes do.
    FanOut,
    /// By `[…]` only: kubectl finds nothing behind a list without that mark.
    Marked,
}

/// Looks up the path of an index.
///
/// # Errors
/// There is no such field.
pub(super) fn indexed(schema: &Object, path: &'static str) -> Result<(), String> {
    look_up(schema, &parsed(path)?, path, Lists::FanOut).map(drop)
}

/// The schema of the field at `path`; `None` if the schema is open there (below metadata and
/// free-form objects).
fn look_up(
    schema: &Object,
    segments: &[Segment],
    path: &str,
    lists: Lists,
) -> Result<Option<Object>, String> {
    let mut here = schema;
    for (place, segment) in segments.iter().enumerate() {
        let walked = json_path(&segments[..place]);
        let next = match segment {
            // API servers have a schema of metadata of their own.
            Segment::Field(name) if place == 0 && name == "metadata" => {
                return in_metadata(segments.get(1), path).map(|()| None);
            }
            // Every object has these texts, regardless of the schema.
            Segment::Field(name) if place == 0 && matches!(&**name, "kind" | "apiVersion") => None,
            Segment::Field(name) => {
                if lists == Lists::FanOut {
                    while let Some(Value::Object(items)) = here.get("items") {
                        here = items;
                    }
                }
                member(here, name, path, &walked)?
            }
            _ => match here.get("items").or_else(|| here.get("additionalProperties")) {
                Some(Value::Object(items)) => Some(items),
                _ if is_open(here) => None,
                // `.*` of an object: the fields may have any types.
                _ if *segment == Segment::Each && here.contains_key("properties") => None,
                _ => {
                    return Err(format!(
                        "there is no `{path}`: {} is not a list",
                        if walked.is_empty() { "the object" } else { &walked }
                    ));
                }
            },
        };
        let Some(next) = next else { return Ok(None) };
        if let Segment::Filter(filter) = segment {
            look_up(next, &filtered(filter)?, path, Lists::Marked)?;
        }
        here = next;
    }
    Ok(Some(here.clone()))
}

/// The segments of the field that a filter such as `?(@.type=="Ready")` compares.
fn filtered(filter: &str) -> Result<Vec<Segment>, String> {
    let inside = filter.trim().trim_start_matches('?').trim();
    let inside = inside.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(inside);
    let end = inside.find(['=', '!', '<', '>']).unwrap_or(inside.len());
    let field = inside[..end].trim();
    parsed(field.strip_prefix('@').unwrap_or(field))
}

/// Checks the first name below the metadata.
fn in_metadata(segment: Option<&Segment>, path: &str) -> Result<(), String> {
    const FIELDS: &[&str] = &[
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    match segment {
        Some(Segment::Field(name)) if !FIELDS.contains(&name.as_str()) => {
            Err(nothing(path, ".metadata", name, FIELDS))
        }
        _ => Ok(()),
    }
}

/// The schema of a member; `None` if the schema is open.
fn member<'a>(
    schema: &'a Object,
    name: &str,
    path: &str,
    walked: &str,
) -> Result<Option<&'a Object>, String> {
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => Some(properties),
        _ => None,
    };
    if let Some(Value::Object(field)) = properties.and_then(|properties| properties.get(name)) {
        return Ok(Some(field));
    }
    if let Some(Value::Object(value)) = schema.get("additionalProperties") {
        return Ok(Some(value));
    }
    if is_open(schema) {
        return Ok(None);
    }
    if schema.contains_key("items") {
        return Err(format!(
            "there is no `{path}`: {walked} is a list; write `{walked}[*].{name}` for each element"
        ));
    }
    let known: Vec<_> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    Err(nothing(path, walked, name, &known))
}

/// Whether the schema allows fields beyond the listed ones.
fn is_open(schema: &Object) -> bool {
    schema.contains_key("x-kubernetes-preserve-unknown-fields")
        || schema.contains_key("additionalProperties")
}

/// The error text for a path without a field.
fn nothing(path: &str, walked: &str, name: &str, known: &[&str]) -> String {
    let place = if walked.is_empty() { "the object" } else { walked };
    let known = match known {
        [] => "no fields".to_owned(),
        known => known.join(", "),
    };
    format!("there is no `{path}`: {place} has no `{name}`, it has {known} (JSON names count)")
}
