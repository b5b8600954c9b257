//! Builds a definition from the derive macro's arguments and the schemas of the types.
//!
//! The derive passes its arguments as [`Definition`]; this module checks them against the schema of
//! the types, because the macro sees names and not types: a column, a scale path or an index of a
//! field that does not exist is an error here, with the fields that exist.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition,
    CustomResourceDefinitionNames, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale, CustomResourceSubresourceStatus, CustomResourceSubresources,
    CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::schema::{Faults, field_schema};
use crate::error::{Error, ErrorKind};

/// Arguments of `#[resource(…)]`.
#[derive(Debug)]
pub struct Definition {
    /// API group.
    pub group: &'static str,
    /// The one version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name.
    pub plural: &'static str,
    /// Singular name.
    pub singular: &'static str,
    /// Whether the kind is namespaced, otherwise cluster-scoped.
    pub namespaced: bool,
    /// Names for kubectl.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for kubectl, such as `all`.
    pub categories: &'static [&'static str],
    /// Columns of `kubectl get`.
    pub columns: &'static [Column],
    /// The scale subresource.
    pub scale: Option<Scale>,
    /// Description.
    pub doc: &'static str,
    /// Fields beside `metadata`.
    pub fields: &'static [Field],
    /// Indexes that are JSON paths: their names and paths.
    pub index_paths: &'static [(&'static str, &'static str)],
}

/// One column of `kubectl get`.
#[derive(Debug)]
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// JSON path.
    pub path: &'static str,
    /// Type; `None` for the type of the field.
    pub kind: Option<&'static str>,
    /// Format.
    pub format: Option<&'static str>,
    /// Priority; 0 is always shown.
    pub priority: i32,
    /// Description.
    pub description: Option<&'static str>,
}

/// JSON paths of the scale subresource.
#[derive(Debug)]
pub struct Scale {
    /// JSON path of the wanted replicas.
    pub spec: &'static str,
    /// JSON path of the current replicas.
    pub status: &'static str,
    /// JSON path of the selector, as text.
    pub selector: Option<&'static str>,
}

/// One field of the root struct.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// Whether the field may be absent.
    pub optional: bool,
    /// Description.
    pub doc: &'static str,
    /// Schema of its type.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// For the status: whether its type can be read from an empty object, or serde's reason against
    /// it.
    pub in_part: Option<fn() -> Result<(), String>>,
}

/// Builds the manifest of a definition.
///
/// # Errors
/// [`ErrorKind::Usage`]: every field that has no structural schema, every column, scale and index
/// whose field does not exist.
pub fn crd(definition: &Definition) -> Result<CustomResourceDefinition, Error> {
    let name = format!("{}.{}", definition.plural, definition.group);
    let mut faults = Faults::default();
    let schema = root_schema(definition, &mut faults);
    let columns = definition.columns.iter().map(|def| column(def, &schema, &mut faults)).collect();
    for (index, path) in definition.index_paths {
        if let Err(message) = look_up(&schema, path) {
            faults.add(format!("index `{index}`: {message}"));
        }
    }
    let scale = definition.scale.as_ref().map(|def| scale(def, &schema, &mut faults));
    faults.into_result(&format!("derive the definition of {name}"))?;
    let schema: JSONSchemaProps =
        serde_json::from_value(Value::Object(schema)).map_err(|error| {
            let message =
                format!("cannot derive the definition of {name}: the schema does not decode");
            Error::new(ErrorKind::Usage, message).because(error)
        })?;
    let crd = assemble(definition, name, schema, columns, scale);
    super::verdict::validate(&crd)?;
    Ok(crd)
}

/// Puts the parts together to a manifest.
fn assemble(
    definition: &Definition,
    name: String,
    schema: JSONSchemaProps,
    columns: Vec<CustomResourceColumnDefinition>,
    scale: Option<CustomResourceSubresourceScale>,
) -> CustomResourceDefinition {
    let texts = |texts: &[&str]| {
        (!texts.is_empty()).then(|| texts.iter().map(|text| (*text).to_owned()).collect())
    };
    let status = definition
        .fields
        .iter()
        .any(|field| field.name == "status")
        // A kind with a `status` field has the subresource.
        .then(|| CustomResourceSubresourceStatus(json!({})));
    let subresources = (status.is_some() || scale.is_some())
        .then_some(CustomResourceSubresources { status, scale });
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: definition.group.to_owned(),
            scope: if definition.namespaced { "Namespaced" } else { "Cluster" }.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: definition.kind.to_owned(),
                list_kind: Some(format!("{}List", definition.kind)),
                plural: definition.plural.to_owned(),
                singular: Some(definition.singular.to_owned()),
                short_names: texts(definition.short_names),
                categories: texts(definition.categories),
            },
            conversion: Some(CustomResourceConversion {
                strategy: "None".to_owned(),
                webhook: None,
            }),
            versions: vec![CustomResourceDefinitionVersion {
                name: definition.version.to_owned(),
                served: true,
                storage: true,
                schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }),
                additional_printer_columns: (!columns.is_empty()).then_some(columns),
                subresources,
                ..CustomResourceDefinitionVersion::default()
            }],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

/// The schema of the whole object, from those of its fields.
fn root_schema(definition: &Definition, faults: &mut Faults) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    // API servers have a schema of metadata of their own.
    properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    for field in definition.fields {
        let mut schema = field_schema(field.name, field.schema, faults);
        if let Some(in_part) = field.in_part {
            store_in_part(&mut schema, in_part(), faults);
        }
        if !field.doc.is_empty() {
            schema.insert("description".to_owned(), field.doc.into());
        }
        properties.insert(field.name.to_owned(), Value::Object(schema));
        if !field.optional {
            required.push(field.name);
        }
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    if !definition.doc.is_empty() {
        root.insert("description".to_owned(), definition.doc.into());
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), required.into());
    }
    root
}

/// Makes any part of a status valid: a status is written field by field, and the first write is
/// mostly a condition. The schema below its fields stays as strict as the types are, because each
/// field is written whole. Defaults are removed: a field that was not written is absent.
fn store_in_part(
    schema: &mut Map<String, Value>,
    in_part: Result<(), String>,
    faults: &mut Faults,
) {
    if let Err(why) = in_part {
        // A schema without `required` belongs to a type that is no struct, and is written whole.
        if schema.contains_key("required") {
            faults.add(format!(
                ".status: a status is stored in part, and its type cannot be read then: {why}; derive `Default` \
                 for the type, give the field `#[serde(default)]`, or make it an `Option`"
            ));
        }
        return;
    }
    schema.remove("required");
    // Branches that require a field would refuse a part of the status, too.
    for key in ["oneOf", "anyOf"] {
        let demands = |branch: &Value| branch.get("required").is_some();
        if schema.get(key).and_then(Value::as_array).is_some_and(|all| all.iter().any(demands)) {
            schema.remove(key);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            // A default would be stored with the first write of another field.
            property.remove("default");
        }
    }
}

/// Builds a column; a path without a field becomes a fault.
fn column(
    column: &Column,
    schema: &Map<String, Value>,
    faults: &mut Faults,
) -> CustomResourceColumnDefinition {
    let field = look_up(schema, column.path).unwrap_or_else(|message| {
        faults.add(format!("column `{}`: {message}", column.name));
        None
    });
    CustomResourceColumnDefinition {
        name: column.name.to_owned(),
        json_path: column.path.to_owned(),
        type_: column.kind.unwrap_or_else(|| column_type(column.path, field.as_ref())).to_owned(),
        format: column.format.map(ToOwned::to_owned),
        priority: (column.priority != 0).then_some(column.priority),
        description: column.description.map(ToOwned::to_owned),
    }
}

/// Type of a column: kubectl shows dates as ages and compares nothing, so everything that is no
/// number, boolean or date is text.
fn column_type(path: &str, field: Option<&Map<String, Value>>) -> &'static str {
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

/// Builds the scale subresource; paths without a field become faults.
fn scale(
    scale: &Scale,
    schema: &Map<String, Value>,
    faults: &mut Faults,
) -> CustomResourceSubresourceScale {
    for path in [Some(scale.spec), Some(scale.status), scale.selector].into_iter().flatten() {
        if let Err(message) = look_up(schema, path) {
            faults.add(format!("scale: {message}"));
        }
    }
    CustomResourceSubresourceScale {
        spec_replicas_path: scale.spec.to_owned(),
        status_replicas_path: scale.status.to_owned(),
        label_selector_path: scale.selector.map(ToOwned::to_owned),
    }
}

/// The schema of the field at `path`, through lists; `None` if the schema is open there (below
/// metadata, free-form objects, and behind filters).
fn look_up(schema: &Map<String, Value>, path: &str) -> Result<Option<Map<String, Value>>, String> {
    let mut here = schema;
    let mut walked = String::new();
    for step in path.split('.').skip(1) {
        // An index or a filter may follow the name.
        let name = step.split_once('[').map_or(step, |(name, _)| name);
        // Every object has these texts, whatever the schema says.
        if walked.is_empty() && matches!(step, "kind" | "apiVersion") {
            return Ok(None);
        }
        // Lists fan out: the path continues in their items.
        while let Some(Value::Object(items)) = here.get("items") {
            here = items;
        }
        let properties = match here.get("properties") {
            Some(Value::Object(properties)) => properties,
            _ => {
                return if is_open(here) {
                    Ok(None)
                } else {
                    Err(nothing(path, &walked, name, &[]))
                };
            }
        };
        match properties.get(name) {
            Some(Value::Object(field)) => here = field,
            _ if is_open(here) => return Ok(None),
            _ => {
                let known: Vec<_> = properties.keys().map(String::as_str).collect();
                return Err(nothing(path, &walked, name, &known));
            }
        }
        if name == "metadata" && walked.is_empty() || step.contains("[?") {
            return Ok(None);
        }
        walked = format!("{walked}.{name}");
    }
    Ok(Some(here.clone()))
}

/// Whether the schema allows fields that it does not list.
fn is_open(schema: &Map<String, Value>) -> bool {
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
