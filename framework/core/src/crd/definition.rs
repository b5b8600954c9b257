//! Builds a definition from the derive macro's arguments and the schemas of the types.
//!
//! The derive passes the user's arguments as [`Definition`]; this module checks them against the
//! schema of the types, because the macro sees only names, no types: a column, a scale path or an
//! index of a field that does not exist is an error here, with the fields that exist.

mod marked;
pub(super) mod places;
#[cfg(test)]
mod tests;

pub use places::{Column, DefinitionField, Rule, Scale};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps, ServiceReference,
    WebhookClientConfig, WebhookConversion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::faults::Faults;
use super::schema::{Mark, field_schema, first_status_fault};
use crate::error::{Error, ErrorKind};

/// A function that builds a version.
pub type BuildVersion = fn() -> Result<CustomResourceDefinitionVersion, Error>;

/// Arguments of `#[resource(…)]`.
#[derive(Debug)]
pub struct Definition {
    /// API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Whether API servers serve the version.
    pub served: bool,
    /// Whether the version is named as the stored version.
    pub storage: bool,
    /// The other versions of the kind, of the hub.
    pub versions: &'static [BuildVersion],
    /// Whether the kind has other versions.
    pub is_one_of_several: bool,
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
    /// Fields by which API servers select.
    pub selectable: &'static [DefinitionField],
    /// Rules of the whole object.
    pub rules: &'static [Rule],
    /// Whether the kind is deprecated, and the warning of the API server if the kind has a special
    /// warning.
    pub deprecated: Option<Option<&'static str>>,
    /// Labels of the definition.
    pub labels: &'static [(&'static str, &'static str)],
    /// Annotations of the definition.
    pub annotations: &'static [(&'static str, &'static str)],
    /// Description.
    pub doc: &'static str,
    /// Fields beside `metadata`.
    pub fields: &'static [Field],
    /// Indexes that are JSON paths: their names and paths.
    pub index_paths: &'static [(&'static str, &'static str)],
}

impl Definition {
    /// Arguments of which none is given: generated code names the others only.
    pub const NONE: Self = Self {
        group: "",
        version: "",
        served: true,
        storage: false,
        versions: &[],
        is_one_of_several: false,
        kind: "",
        plural: "",
        singular: "",
        namespaced: false,
        short_names: &[],
        categories: &[],
        columns: &[],
        scale: None,
        selectable: &[],
        rules: &[],
        deprecated: None,
        labels: &[],
        annotations: &[],
        doc: "",
        fields: &[],
        index_paths: &[],
    };
}

/// A field of the root struct.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// Whether the field may be absent: the type is an `Option`, or an alias of `Option`.
    pub optional: fn() -> bool,
    /// Description.
    pub doc: &'static str,
    /// Schema of the field's type.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// For the status: whether the type can be read from an empty object, or serde's reason against
    /// it.
    pub in_part: Option<fn() -> Result<(), String>>,
}

impl Field {
    /// A field without a name, of any type. An associated constant instead of a function, because
    /// the compiler gives the list of fields a static place only if the list contains no calls.
    pub const NONE: Self = Self {
        name: "",
        optional: || false,
        doc: "",
        schema: |_| Schema::default(),
        in_part: None,
    };
}

/// Builds the manifest of a definition, with all versions of the kind.
///
/// # Errors
/// [`ErrorKind::Usage`]: every field that has no structural schema, every column, scale and index
/// whose field does not exist; versions that contradict each other.
pub fn crd(definition: &Definition) -> Result<CustomResourceDefinition, Error> {
    let name = format!("{}.{}", definition.plural, definition.group);
    let mut versions = vec![version(definition)?];
    for other in definition.versions {
        versions.push(other()?);
    }
    choose_storage(&mut versions, &name)?;
    let definition = assemble(definition, name, versions);
    super::verdict::validate(&definition)?;
    Ok(definition)
}

/// Makes the first version, the hub, the stored one, unless another version is named.
fn choose_storage(
    versions: &mut [CustomResourceDefinitionVersion],
    name: &str,
) -> Result<(), Error> {
    let mut faults = Faults::default();
    for (place, version) in versions.iter().enumerate() {
        if versions[..place].iter().any(|before| before.name == version.name) {
            faults.add(format!("two versions are called {:?}", version.name));
        }
    }
    let stored = versions.iter().filter(|version| version.storage);
    let stored: Vec<&str> = stored.map(|version| version.name.as_str()).collect();
    if stored.len() > 1 {
        faults.add(format!("one version is stored, and {stored:?} say `storage`"));
    } else if stored.is_empty()
        && let Some(hub) = versions.first_mut()
    {
        hub.storage = true;
    }
    faults.into_result(&format!("derive the definition of {name}"))
}

/// Builds a version.
///
/// # Errors
/// As [`crd`].
pub fn version(definition: &Definition) -> Result<CustomResourceDefinitionVersion, Error> {
    let mut name = format!("{}.{}", definition.plural, definition.group);
    if definition.is_one_of_several {
        name = format!("{name} {}", definition.version);
    }
    let mut faults = Faults::default();
    let (mut schema, marks) = root_schema(definition, &mut faults);
    let version = without_schema(definition, &schema, &marks, &mut faults);
    let scale = version.subresources.as_ref().and_then(|all| all.scale.as_ref());
    scale.into_iter().for_each(|scale| places::drop_nulls(scale, &mut schema));
    for (index, path) in definition.index_paths {
        if let Err(message) = places::indexed(&schema, path) {
            faults.add(format!("index `{index}`: {message}"));
        }
    }
    let rules: Vec<Value> =
        definition.rules.iter().map(|rule| rule.validation(&schema, &mut faults)).collect();
    if !rules.is_empty() {
        schema.insert("x-kubernetes-validations".to_owned(), rules.into());
    }
    faults.into_result(&format!("derive the definition of {name}"))?;
    let schema: JSONSchemaProps =
        serde_json::from_value(Value::Object(schema)).map_err(|error| {
            let message =
                format!("cannot derive the definition of {name}: the schema does not decode");
            Error::new(ErrorKind::Usage, message).because(error)
        })?;
    Ok(CustomResourceDefinitionVersion {
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }),
        ..version
    })
}

/// The version without the schema.
fn without_schema(
    definition: &Definition,
    schema: &Map<String, Value>,
    marks: &[Mark],
    faults: &mut Faults,
) -> CustomResourceDefinitionVersion {
    let mut columns: Vec<_> =
        definition.columns.iter().map(|column| column.definition(schema, faults)).collect();
    let scale = definition.scale.as_ref().map(|scale| scale.subresource(schema, faults));
    let mut selectable: Vec<_> =
        definition.selectable.iter().map(|place| place.selectable(schema, faults)).collect();
    let of_kind = columns.len();
    for mark in marks {
        marked::add(mark, schema, (&mut columns, of_kind), &mut selectable, faults);
    }
    let status = definition
        .fields
        .iter()
        .any(|field| field.name == "status")
        // A kind with a `status` field has the subresource.
        .then(|| CustomResourceSubresourceStatus(json!({})));
    let subresources = (status.is_some() || scale.is_some())
        .then_some(CustomResourceSubresources { status, scale });
    CustomResourceDefinitionVersion {
        name: definition.version.to_owned(),
        served: definition.served,
        storage: definition.storage,
        deprecated: definition.deprecated.map(|_| true),
        deprecation_warning: definition.deprecated.flatten().map(ToOwned::to_owned),
        additional_printer_columns: (!columns.is_empty()).then_some(columns),
        selectable_fields: (!selectable.is_empty()).then_some(selectable),
        subresources,
        ..CustomResourceDefinitionVersion::default()
    }
}

/// Puts the parts together to a manifest.
fn assemble(
    definition: &Definition,
    name: String,
    versions: Vec<CustomResourceDefinitionVersion>,
) -> CustomResourceDefinition {
    let texts = |texts: &[&str]| {
        (!texts.is_empty()).then(|| texts.iter().map(|text| (*text).to_owned()).collect())
    };
    let pairs = |pairs: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        (!pairs.is_empty()).then(|| pairs.iter().map(owned).collect())
    };
    CustomResourceDefinition {
        metadata: ObjectMeta {
            name: Some(name),
            labels: pairs(definition.labels),
            annotations: pairs(definition.annotations),
            ..ObjectMeta::default()
        },
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
            conversion: Some(conversion(definition)),
            versions,
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

/// Returns the conversion between versions. The type does not know where the operator runs: the
/// manifests and the webhook server replace the Service.
fn conversion(definition: &Definition) -> CustomResourceConversion {
    if definition.versions.is_empty() {
        return CustomResourceConversion { strategy: "None".to_owned(), webhook: None };
    }
    let service = ServiceReference {
        name: format!("{}-webhooks", definition.plural),
        namespace: "default".to_owned(),
        path: Some(conversion_path(definition.group, definition.kind)),
        port: Some(443),
    };
    CustomResourceConversion {
        strategy: "Webhook".to_owned(),
        webhook: Some(WebhookConversion {
            client_config: Some(WebhookClientConfig {
                service: Some(service),
                ..WebhookClientConfig::default()
            }),
            conversion_review_versions: vec!["v1".to_owned()],
        }),
    }
}

/// Returns the path at which a kind's objects are converted: `/convert-example-dev-cronjob`.
pub fn conversion_path(group: &str, kind: &str) -> String {
    format!("/convert-{}-{}", group.replace('.', "-"), kind.to_lowercase())
}

/// The schema of the whole object, from the schemas of the fields, and the marked fields in the
/// schema.
fn root_schema(definition: &Definition, faults: &mut Faults) -> (Map<String, Value>, Vec<Mark>) {
    let mut marks = Vec::new();
    let mut properties = Map::new();
    let mut required = Vec::new();
    // API servers have a schema of metadata of their own.
    properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    for field in definition.fields {
        let (mut schema, marked) = field_schema(field.name, field.schema, faults);
        marks.extend(marked);
        if let Some(in_part) = field.in_part {
            store_in_part(&mut schema, in_part(), faults);
        }
        let doc = description(field.doc);
        if !doc.is_empty() {
            schema.insert("description".to_owned(), doc.into());
        }
        properties.insert(field.name.to_owned(), Value::Object(schema));
        if !(field.optional)() {
            required.push(field.name);
        }
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    let doc = description(definition.doc);
    if !doc.is_empty() {
        root.insert("description".to_owned(), doc.into());
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), required.into());
    }
    (root, marks)
}

/// Makes any part of a status valid: a status is written field by field, and the first write is
/// mostly a condition. The schema below the status's fields stays as strict as the types are,
/// because each field is written whole. Defaults are removed: a field that was not written is
/// absent.
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
                 for the type, give the field `#[serde(default)]`, or make it an `Option`. A `Default` helps if serde \
                 reads back what serde writes of it: a field that is not written (`skip_serializing`, \
                 `skip_serializing_if`) needs `#[serde(default)]`"
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
            faults.note(
                ".status: an API server checks no alternatives (`#[serde(flatten)]` or an enum) of a status, which is \
                 stored in part"
                    .to_owned(),
            );
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            // A default would be stored with the first write of another field.
            property.remove("default");
        }
    }
    if let Some(why) = first_status_fault(schema) {
        faults.note(format!(
            ".status: an API server refuses a status with a condition alone, which the first write of a status mostly \
             has: {why}; a rule of a status begins with `!has(self.field) ||` for each field that it reads"
        ));
    }
}

/// Returns a documentation without the indentation that all lines share: the compiler joins the
/// lines of a documentation from a file, and leaves the indentation of doc comments.
fn description(doc: &str) -> String {
    let filled = doc.lines().filter(|line| !line.trim().is_empty());
    let shared = filled.map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    let lines = doc.lines().map(|line| line.get(shared..).unwrap_or_default().trim_end());
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}
