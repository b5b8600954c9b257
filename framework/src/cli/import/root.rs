//! The kind: the struct, the attributes of the definition, and the head of the module.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::{Value, json};

use super::attributes::{DERIVE, SchemaAttributes, attribute};
use super::documentation::Documentation;
use super::keys::AttributeKey;
use super::literals::string;
use super::module::{SchemaNode, SchemaPosition, Types};
use super::names::{FieldName, UniqueIdentifiers, camel, pascal};
use super::places::KindFields;
use super::simplify::simplify;
use windlass_core::crd::compat::plain_numbers;
use windlass_core::resource::ResourceExt;

/// Largest number of differences at the head of a module.
const MOST_NAMED: usize = 100;
/// Warning about a description that a doc comment cannot have.
const CHANGED: &str =
    "blocks of code in its description are marked as text, and markers of kubebuilder left out";
/// Fields that every object has.
const COMMON_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prints the module of a version; returns the source with the differences from the imported
/// schema.
pub(super) fn print(
    definition: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
    exact: bool,
) -> (String, Vec<String>) {
    let mut types = Types { exact, ..Types::default() };
    let mut schema = schema_of(version);
    simplify(&mut schema, "", &mut types.warnings);
    definition_warnings(definition, version, &mut types.warnings);
    let kind = &definition.spec.names.kind;
    let name = types.names.kind(&pascal_kind(kind));
    let mut root = PrintedKind { definition, version, schema: &schema, kind, name, types };
    let source = root.print();
    (source, root.types.warnings)
}

/// Returns a kind as the name of a type: kinds are in `PascalCase` already.
fn pascal_kind(kind: &str) -> String {
    let is_plain = kind.chars().all(|c| c.is_ascii_alphanumeric())
        && kind.starts_with(|c: char| c.is_ascii_uppercase());
    if is_plain { kind.to_owned() } else { pascal(kind) }
}

/// Returns the schema of a version; an object of any fields if the version has no schema.
fn schema_of(version: &CustomResourceDefinitionVersion) -> SchemaNode {
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let mut schema = serde_json::to_value(schema).unwrap_or_default();
    plain_numbers(&mut schema);
    schema.as_object().cloned().unwrap_or_default()
}

/// Adds the parts of a definition that the derive does not have.
fn definition_warnings(
    definition: &CustomResourceDefinition,
    version: &CustomResourceDefinitionVersion,
    warnings: &mut Vec<String>,
) {
    let spec = &definition.spec;
    let others: Vec<&str> = spec
        .versions
        .iter()
        .filter(|other| other.name != version.name)
        .map(|other| other.name.as_str())
        .collect();
    match others.as_slice() {
        [] => {}
        [other] => warnings.push(format!("the version {other} is left out")),
        _ => warnings.push(format!("the versions {} are left out", others.join(", "))),
    }
    if spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy != "None") {
        warnings.push("the conversion by a webhook is left out".to_owned());
    }
    let list = format!("{}List", spec.names.kind);
    if spec.names.list_kind.as_ref().is_some_and(|kind| *kind != list) {
        warnings.push(format!("the kind of lists is {list}"));
    }
    if is_protected(&spec.group) && approval(definition).is_none() {
        warnings.push(format!(
            "API servers take the group {} with the annotation {APPROVED} only, which the definition \
             does not have: that of the types says {UNAPPROVED:?}",
            spec.group
        ));
    }
}

/// Annotation with which API servers accept a definition in a group of the Kubernetes project.
const APPROVED: &str = "api-approved.kubernetes.io";
/// Value of the annotation for a definition that the Kubernetes project has not approved.
const UNAPPROVED: &str = "unapproved, printed by windlass import";

/// The approval of a definition by the Kubernetes project.
fn approval(definition: &CustomResourceDefinition) -> Option<&str> {
    definition.metadata.annotations.as_ref()?.get(APPROVED).map(String::as_str)
}

/// A kind that is printed.
struct PrintedKind<'a> {
    definition: &'a CustomResourceDefinition,
    version: &'a CustomResourceDefinitionVersion,
    schema: &'a SchemaNode,
    kind: &'a str,
    /// Name of the struct.
    name: String,
    types: Types,
}

impl PrintedKind<'_> {
    /// Prints the whole module.
    fn print(&mut self) -> String {
        // The derive adds a type of this name.
        self.types.names.kind(&format!("{}Apply", self.name));
        let mut fields = String::new();
        let names = self.fields(&mut fields);
        let mut body = String::new();
        let docs = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let docs = Documentation::of(docs);
        if docs.is_changed() {
            self.types.warnings.push(format!("the object: {CHANGED}"));
        }
        docs.print("", &mut body);
        body.push_str("#[derive(CustomResource, Clone, Debug, PartialEq)]\n");
        self.attributes(&names, &mut body);
        body.push_str(&format!("pub struct {} {{\n    pub metadata: ObjectMeta,\n", self.name));
        body.push_str(&fields);
        body.push_str("}\n");
        for item in &self.types.source {
            body.push_str(&format!("\n{item}"));
        }
        format!("{}{}{body}", self.head(), self.imports())
    }

    /// Returns the comment at the head.
    fn head(&self) -> String {
        let mut head = format!(
            "// Rust types of {}, version {}, printed by `windlass import`.\n",
            self.definition.name(),
            self.version.name
        );
        let mut notes = Vec::new();
        let count = |number: usize, one: &str, several: &str| match number {
            1 => format!("1 {one} (`--exact` prevents it)"),
            number => format!("{number} {several} (`--exact` prevents it)"),
        };
        let (nullable, formats) = self.types.loosened;
        if nullable > 0 {
            let one = "optional field accepts null as well";
            notes.push(count(nullable, one, "optional fields accept null as well"));
        }
        if formats > 0 {
            let one = "number gets the format of its Rust type";
            notes.push(count(formats, one, "numbers get the format of their Rust type"));
        }
        let warnings = &self.types.warnings;
        notes.extend(warnings.iter().take(MOST_NAMED).cloned());
        if warnings.len() > MOST_NAMED {
            notes.push(format!("{} more", warnings.len() - MOST_NAMED));
        }
        if !notes.is_empty() {
            head.push_str("//\n// Differences from the imported definition:\n");
        }
        for note in notes {
            head.push_str(&format!("// - {}\n", note.replace(['\n', '\r'], " ")));
        }
        head.push('\n');
        head
    }

    /// Returns the imports.
    fn imports(&self) -> String {
        let uses = self.types.uses;
        let mut imports = Vec::new();
        if uses.btree_map {
            imports.push("use std::collections::BTreeMap;\n");
        }
        imports.push("use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;");
        if uses.int_or_string {
            imports.push("use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;");
        }
        let has_types = !self.types.source.is_empty();
        if has_types {
            imports.push("use serde::{Deserialize, Serialize};");
        }
        match (uses.json_map, uses.value) {
            (true, _) => imports.push("use serde_json::{Map, Value};"),
            (false, true) => imports.push("use serde_json::Value;"),
            (false, false) => {}
        }
        if uses.time {
            imports.push("use windlass::resource::ApiTime;");
        }
        imports.push(match has_types {
            true => "use windlass::{CustomResource, Schema};",
            false => "use windlass::CustomResource;",
        });
        format!("{}\n\n", imports.join("\n"))
    }

    /// Prints `#[resource(…)]`; `fields` are those beside the metadata.
    fn attributes(&mut self, fields: &[FieldName], out: &mut String) {
        let spec = &self.definition.spec;
        let names = &spec.names;
        let mut parts = vec![
            AttributeKey::value("group", string(&spec.group)),
            AttributeKey::value("version", string(&self.version.name)),
            AttributeKey::word(if spec.scope == "Cluster" { "cluster" } else { "namespaced" }),
        ];
        if self.name != self.kind {
            parts.push(AttributeKey::value("kind", string(self.kind)));
        }
        parts.push(AttributeKey::value("plural", string(&names.plural)));
        let singular = names.singular.as_deref().unwrap_or_default();
        if !singular.is_empty() && singular != self.kind.to_lowercase() {
            parts.push(AttributeKey::value("singular", string(singular)));
        }
        for (key, list) in [("short", &names.short_names), ("category", &names.categories)] {
            match list.as_deref().unwrap_or_default() {
                [] => {}
                [one] => parts.push(AttributeKey::value(key, string(one))),
                several => parts.push(AttributeKey::value(key, format_args!("{several:?}"))),
            }
        }
        if !self.version.served {
            parts.push(AttributeKey::value("served", false));
        }
        parts.extend(self.deprecated());
        let metadata = &self.definition.metadata;
        let mut annotations = kept(metadata.annotations.as_ref());
        if is_protected(&spec.group) {
            annotations.entry(APPROVED).or_insert(UNAPPROVED);
        }
        for (key, texts) in [("label", kept(metadata.labels.as_ref())), ("annotation", annotations)]
        {
            let pairs =
                texts.iter().map(|(name, text)| AttributeKey::value(&string(name), string(text)));
            parts.extend(pairs.map(|pair| AttributeKey::call(key, vec![pair])));
        }
        out.push_str(&format!("{}\n", attribute("", "resource", parts)));
        self.status();
        let (version, schema, types) = (self.version, self.schema, &mut self.types);
        for key in (KindFields { version, schema, fields, types }).keys() {
            out.push_str(&format!("{}\n", attribute("", "resource", vec![key])));
        }
    }

    /// Returns `deprecated`, with the warning if the version has one.
    fn deprecated(&self) -> Option<AttributeKey> {
        self.version.deprecated.filter(|is_deprecated| *is_deprecated)?;
        Some(match &self.version.deprecation_warning {
            Some(warning) => AttributeKey::value("deprecated", string(warning)),
            None => AttributeKey::word("deprecated"),
        })
    }

    /// Compares the status subresource with the status.
    fn status(&mut self) {
        let has_status = self.has_property("status");
        let subresources = self.version.subresources.as_ref();
        let is_separate = subresources.is_some_and(|all| all.status.is_some());
        if has_status && !is_separate {
            let text = "the status becomes a subresource, as each derived status is";
            self.types.warnings.push(text.to_owned());
        } else if is_separate && !has_status {
            let text = "the status subresource is left out: the schema has no status";
            self.types.warnings.push(text.to_owned());
        }
    }

    fn has_property(&self, name: &str) -> bool {
        self.schema.get("properties").is_some_and(|all| all.get(name).is_some())
    }

    /// Prints the fields beside the metadata, and the types that they need; returns their names.
    fn fields(&mut self, out: &mut String) -> Vec<FieldName> {
        let properties =
            self.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let known = ["type", "properties", "required", "description", "x-kubernetes-validations"];
        for key in self.schema.keys().filter(|key| !known.contains(&key.as_str())) {
            self.types.warnings.push(format!("the object: `{key}` is left out"));
        }
        if properties.get("metadata").is_some_and(|metadata| {
            metadata.as_object().is_some_and(|all| all.keys().any(|key| key != "type"))
        }) {
            self.types.warnings.push(".metadata: its schema is left out".to_owned());
        }
        let own = |json: &String| format!("{}{}", self.name, pascal(json));
        self.types.root_names = properties.keys().map(own).collect();
        let mut names = UniqueIdentifiers::default();
        let mut fields = Vec::new();
        // A field in Rust has this name already.
        names.field("metadata");
        for (json, schema) in
            properties.iter().filter(|(name, _)| !COMMON_FIELDS.contains(&name.as_str()))
        {
            let Value::Object(schema) = schema else { continue };
            let identifier = names.field(json);
            let required = self.schema.get("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|all| all.iter().any(|name| name == json));
            fields.push(self.field(json, &identifier, schema, is_required, out));
        }
        fields
    }

    /// Prints a field.
    fn field(
        &mut self,
        json: &str,
        identifier: &str,
        schema: &SchemaNode,
        is_required: bool,
        out: &mut String,
    ) -> FieldName {
        let is_status = json == "status";
        let docs = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut docs = Documentation::of(docs);
        let is_struct = schema.get("properties").is_some_and(|all| *all != json!({}));
        let place = SchemaPosition {
            path: format!(".{json}"),
            name: format!("{}{}", self.name, pascal(json)),
            level: 1,
            // A field of the kind has no attribute for a description, and the field's type has.
            is_documented: docs.is_changed() && is_struct,
            is_root_field: true,
            is_status,
        };
        if is_status && is_required {
            self.types.warnings.push(".status: it is not required, as no status is".to_owned());
        }
        let mut rust = self.field_type(schema, &place);
        if place.is_documented {
            docs = Documentation::default();
        } else if docs.is_changed() {
            self.types.warnings.push(format!("{}: {CHANGED}", place.path));
        }
        docs.print("    ", out);
        if camel(identifier) != json {
            out.push_str(&format!("    #[serde(rename = {json:?})]\n"));
        }
        if !is_required || is_status {
            if schema.get("nullable") != Some(&Value::Bool(true)) && !is_status {
                if self.types.exact {
                    // The fields of the kind have no attributes.
                    let path = &place.path;
                    self.types
                        .warnings
                        .push(format!("{path}: it accepts null as well, as it is optional"));
                } else {
                    self.types.loosened.0 += 1;
                }
            }
            rust = format!("Option<{rust}>");
        }
        out.push_str(&format!("    pub {identifier}: {rust},\n"));
        FieldName { json: json.to_owned(), identifier: identifier.to_owned(), rust }
    }

    /// Returns the type of a field of the kind. Such a field has no attributes, so a type that
    /// misses keywords is wrapped.
    fn field_type(&mut self, schema: &SchemaNode, place: &SchemaPosition) -> String {
        let shape = self.types.shape(schema, place);
        let mut keywords = shape.missing(schema);
        let is_struct = self.types.printed(&shape.rust).is_some_and(|it| it.variants.is_empty());
        if let Some(default) = schema.get("default").filter(|_| !is_struct) {
            keywords.insert("default".to_owned(), default.clone());
        }
        if keywords.is_empty() && shape.each.is_empty() && shape.covered.is_some() {
            return shape.rust;
        }
        let name = self.types.names.kind(&place.name);
        let default = shape.default.as_ref().map_or("", |_| "Default, ");
        let derive = DERIVE.replace("Debug, ", &format!("Debug, {default}"));
        let names = self.types.fields_of(&shape.rust);
        let (class, each) = (shape.class, shape.each);
        let attributes =
            SchemaAttributes { class, names, each, keywords, ..SchemaAttributes::default() };
        let source = match attributes.lines("    ").as_slice() {
            [one] if !one.contains('\n') && one.len() + name.len() + shape.rust.len() < 80 => {
                format!("pub struct {name}({} pub {});\n", one.trim_start(), shape.rust)
            }
            lines => {
                let lines = lines.join("\n");
                format!("pub struct {name}(\n{lines}\n    pub {},\n);\n", shape.rust)
            }
        };
        self.types.source.push(format!("#[derive({derive})]\n{source}"));
        name
    }
}

/// Domains of labels and annotations that tools write at each installation.
const OF_TOOLS: [&str; 5] = [
    "kubectl.kubernetes.io",
    "helm.sh",
    "meta.helm.sh",
    "controller-gen.kubebuilder.io",
    "windlass.dev",
];

/// Returns the labels or annotations of a definition, but those of tools.
fn kept(all: Option<&BTreeMap<String, String>>) -> BTreeMap<&str, &str> {
    let is_kept = |name: &str| {
        let domain = name.split_once('/').map_or("", |(domain, _)| domain);
        !OF_TOOLS.contains(&domain) && name != "app.kubernetes.io/managed-by"
    };
    let all = all.into_iter().flatten().filter(|(name, _)| is_kept(name));
    all.map(|(name, text)| (name.as_str(), text.as_str())).collect()
}

/// Whether the group belongs to the Kubernetes project, whose definitions need an annotation.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owned| group == *owned || group.ends_with(&format!(".{owned}")))
}
