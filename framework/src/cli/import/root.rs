//! The kind itself: its struct, the attributes of its definition, and the head of the module.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde_json::{Value, json};

use super::attributes::{DERIVE, IMPORTS, SchemaAttributes};
use super::documentation::Documentation;
use super::literals::string;
use super::names::{camel, pascal};
use super::simplify::simplify;
use super::types::{Node, Place, Types};
use windlass_core::crd::compat::plain_numbers;
use windlass_core::resource::ResourceExt;

/// Largest number of differences at the head of a module.
const MOST_NAMED: usize = 100;
/// Warning about a description that a doc comment cannot have.
const CHANGED: &str = "blocks of code in its description are marked as text";
/// Fields that every object has.
const COMMON_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prints the module of a version; returns it with the differences from the imported schema.
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
    let mut root = Root { definition, version, schema: &schema, kind, name, types };
    let source = root.print();
    (source, root.types.warnings)
}

/// Returns a kind as the name of a type: kinds are in `PascalCase` already.
fn pascal_kind(kind: &str) -> String {
    let is_plain = kind.chars().all(|c| c.is_ascii_alphanumeric())
        && kind.starts_with(|c: char| c.is_ascii_uppercase());
    if is_plain { kind.to_owned() } else { pascal(kind) }
}

/// Returns the schema of a version; an object of any fields if it has none.
fn schema_of(version: &CustomResourceDefinitionVersion) -> Node {
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
    if !others.is_empty() {
        warnings.push(format!("the versions {} are left out", others.join(", ")));
    }
    if spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy != "None") {
        warnings.push("the conversion by a webhook is left out".to_owned());
    }
    if spec
        .names
        .list_kind
        .as_deref()
        .is_some_and(|list| list != format!("{}List", spec.names.kind))
    {
        warnings.push("the kind of lists is left out".to_owned());
    }
    if version.deprecated == Some(true) {
        warnings.push(format!("the version {} is deprecated, which is left out", version.name));
    }
    for field in version.selectable_fields.iter().flatten() {
        warnings.push(format!("the selectable field {} is left out", field.json_path));
    }
}

/// A kind that is printed.
struct Root<'a> {
    definition: &'a CustomResourceDefinition,
    version: &'a CustomResourceDefinitionVersion,
    schema: &'a Node,
    kind: &'a str,
    /// Name of the struct.
    name: String,
    types: Types,
}

impl Root<'_> {
    /// Prints the whole module.
    fn print(&mut self) -> String {
        let fields = self.fields();
        let is_derived = !is_protected(&self.definition.spec.group);
        let mut body = String::new();
        let docs = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let docs = Documentation::of(docs);
        if docs.is_changed() {
            self.types.warnings.push(format!("the object: {CHANGED}"));
        }
        docs.print("", &mut body);
        if is_derived {
            body.push_str("#[derive(CustomResource, Clone, Debug, PartialEq)]\n");
            self.attributes(&mut body);
        } else {
            self.types.warnings.push(
                "the derive refuses groups of the Kubernetes project: the kind has no `crd()`"
                    .to_owned(),
            );
            body.push_str("#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]\n");
            body.push_str("#[serde(rename_all = \"camelCase\")]\n");
        }
        body.push_str(&format!("pub struct {} {{\n", self.name));
        if !is_derived {
            for field in ["api_version", "kind"] {
                body.push_str(&format!(
                    "    #[serde(default = \"{}::{field}\")]\n    pub {field}: String,\n",
                    self.name
                ));
            }
        }
        body.push_str("    pub metadata: ObjectMeta,\n");
        body.push_str(&fields);
        body.push_str("}\n");
        if !is_derived {
            self.resource(&mut body);
        }
        for item in &self.types.source {
            body.push_str(&format!("\n{item}"));
        }
        format!("{}{body}", self.head(is_derived))
    }

    /// Returns the comment and the imports at the head.
    fn head(&self, is_derived: bool) -> String {
        let mut head = format!(
            "// Rust types of {}, version {}, printed by `windlass import`.\n",
            self.definition.name(),
            self.version.name
        );
        let mut notes = Vec::new();
        let (nullable, formats) = self.types.loosened;
        if nullable > 0 {
            notes.push(format!(
                "{nullable} optional fields accept null as well (`--exact` prevents it)"
            ));
        }
        if formats > 0 {
            notes.push(format!(
                "{formats} numbers get the format of their Rust type (`--exact` prevents it)"
            ));
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
        let uses = self.types.uses;
        let mut imports = Vec::new();
        if uses.map {
            imports.push("use std::collections::BTreeMap;\n");
        }
        imports.push("use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;");
        if uses.int_or_string {
            imports.push("use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;");
        }
        let has_types = !self.types.source.is_empty();
        if has_types {
            imports.extend(IMPORTS);
        } else if !is_derived {
            imports.push(IMPORTS[1]);
        }
        if uses.value {
            imports.push("use serde_json::Value;");
        }
        if is_derived {
            imports.push("use windlass::CustomResource;");
        }
        format!("{head}{}\n\n", imports.join("\n"))
    }

    /// Prints `#[resource(…)]`.
    fn attributes(&mut self, out: &mut String) {
        let spec = &self.definition.spec;
        let names = &spec.names;
        let mut parts = vec![
            format!("group = {:?}", spec.group),
            format!("version = {:?}", self.version.name),
            if spec.scope == "Cluster" { "cluster" } else { "namespaced" }.to_owned(),
        ];
        if self.name != self.kind {
            parts.push(format!("kind = {:?}", self.kind));
        }
        parts.push(format!("plural = {:?}", names.plural));
        let singular = names.singular.as_deref().unwrap_or_default();
        if !singular.is_empty() && singular != self.kind.to_lowercase() {
            parts.push(format!("singular = {singular:?}"));
        }
        for (key, list) in [("short", &names.short_names), ("category", &names.categories)] {
            match list.as_deref().unwrap_or_default() {
                [] => {}
                [one] => parts.push(format!("{key} = {one:?}")),
                several => parts.push(format!("{key} = {several:?}")),
            }
        }
        out.push_str(&format!("#[resource({})]\n", parts.join(", ")));
        self.columns(out);
        self.subresources(out);
    }

    /// Prints `column(…)` for each column whose field exists.
    fn columns(&mut self, out: &mut String) {
        for column in self.version.additional_printer_columns.iter().flatten() {
            if !has_path(self.schema, &column.json_path) {
                self.types.warnings.push(format!(
                    "the column {:?} is left out: the schema has no {}",
                    column.name, column.json_path
                ));
                continue;
            }
            let mut parts = vec![
                format!("name = {}", string(&column.name)),
                format!("path = {}", string(&column.json_path)),
                format!("type = {:?}", column.type_),
            ];
            if let Some(format) = &column.format {
                parts.push(format!("format = {format:?}"));
            }
            if let Some(priority) = column.priority.filter(|priority| *priority != 0) {
                parts.push(format!("priority = {priority}"));
            }
            if let Some(description) = &column.description {
                parts.push(format!("description = {}", string(description)));
            }
            out.push_str(&format!("#[resource(column({}))]\n", parts.join(", ")));
        }
    }

    /// Prints `scale(…)`, and compares the status subresource with the status.
    fn subresources(&mut self, out: &mut String) {
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
        let Some(scale) = subresources.and_then(|all| all.scale.as_ref()) else { return };
        let mut parts = vec![
            ("spec", scale.spec_replicas_path.as_str()),
            ("status", scale.status_replicas_path.as_str()),
        ];
        parts.extend(scale.label_selector_path.as_deref().map(|path| ("selector", path)));
        if let Some((_, path)) = parts.iter().find(|(_, path)| !has_path(self.schema, path)) {
            let text = format!("the scale subresource is left out: the schema has no {path}");
            self.types.warnings.push(text);
            return;
        }
        let parts: Vec<String> =
            parts.iter().map(|(key, path)| format!("{key} = {}", string(path))).collect();
        out.push_str(&format!("#[resource(scale({}))]\n", parts.join(", ")));
    }

    fn has_property(&self, name: &str) -> bool {
        self.schema.get("properties").is_some_and(|all| all.get(name).is_some())
    }

    /// Prints the fields beside the metadata, and the types that they need.
    fn fields(&mut self) -> String {
        let mut out = String::new();
        let properties =
            self.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let known = ["type", "properties", "required", "description"];
        for key in self.schema.keys().filter(|key| !known.contains(&key.as_str())) {
            self.types.warnings.push(format!("the object: `{key}` is left out"));
        }
        if properties.get("metadata").is_some_and(|metadata| {
            metadata.as_object().is_some_and(|all| all.keys().any(|key| key != "type"))
        }) {
            self.types.warnings.push(".metadata: its schema is left out".to_owned());
        }
        let mut names = super::names::Names::default();
        for (json, schema) in
            properties.iter().filter(|(name, _)| !COMMON_FIELDS.contains(&name.as_str()))
        {
            let Value::Object(schema) = schema else { continue };
            let identifier = names.field(json);
            if camel(&identifier) != *json {
                self.types
                    .warnings
                    .push(format!(".{json}: the field is left out: it is no name in camelCase"));
                continue;
            }
            let required = self.schema.get("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|all| all.iter().any(|name| name == json));
            self.field(json, &identifier, schema, is_required, &mut out);
        }
        out
    }

    /// Prints one field.
    fn field(
        &mut self,
        json: &str,
        identifier: &str,
        schema: &Node,
        is_required: bool,
        out: &mut String,
    ) {
        let is_status = json == "status";
        let docs = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut docs = Documentation::of(docs);
        let is_struct = schema.get("properties").is_some_and(|all| *all != json!({}));
        let place = Place {
            path: format!(".{json}"),
            name: format!("{}{}", self.name, pascal(json)),
            level: 1,
            // A field of the kind has no attribute for its description, and its type has.
            is_documented: docs.is_changed() && is_struct,
            is_root_field: true,
            is_status,
        };
        if is_status && is_required {
            self.types.warnings.push(".status: it is not required, as no status is".to_owned());
        }
        let rust = self.field_type(schema, &place);
        if place.is_documented {
            docs = Documentation::default();
        } else if docs.is_changed() {
            self.types.warnings.push(format!("{}: {CHANGED}", place.path));
        }
        docs.print("    ", out);
        let is_protected = is_protected(&self.definition.spec.group);
        if is_required && !is_status {
            out.push_str(&format!("    pub {identifier}: {rust},\n"));
            return;
        }
        if is_protected {
            out.push_str("    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n");
        }
        if schema.get("nullable") != Some(&Value::Bool(true)) && !is_status {
            self.types.loosened.0 += 1;
        }
        out.push_str(&format!("    pub {identifier}: Option<{rust}>,\n"));
    }

    /// Returns the type of a field of the kind. Such a field has no attributes, so a type that
    /// misses keywords is wrapped.
    fn field_type(&mut self, schema: &Node, place: &Place) -> String {
        let shape = self.types.shape(schema, place);
        let mut missing = shape.missing(schema);
        let is_struct = shape.covered.as_ref().is_some_and(|all| all.contains_key("properties"));
        if let Some(default) = schema.get("default").filter(|_| !is_struct) {
            missing.insert("default".to_owned(), default.clone());
        }
        if missing.is_empty() && shape.with.is_none() && shape.covered.is_some() {
            return shape.rust;
        }
        let name = self.types.names.kind(&place.name);
        let derive = if shape.has_default {
            DERIVE.replace("Debug, ", "Debug, Default, ")
        } else {
            DERIVE.into()
        };
        let mut source = format!("#[derive({derive})]\n#[serde(transparent)]\n");
        SchemaAttributes { with: None, keywords: missing, ..SchemaAttributes::default() }
            .print("", &mut source);
        let with =
            shape.with.map(|with| format!("#[schemars(with = {with:?})] ")).unwrap_or_default();
        source.push_str(&format!("pub struct {name}({with}pub {});\n", shape.rust));
        self.types.source.push(source);
        name
    }

    /// Prints the traits of a kind that the derive does not take.
    fn resource(&self, out: &mut String) {
        let spec = &self.definition.spec;
        let (name, group, version) = (&self.name, &spec.group, &self.version.name);
        let scope = if spec.scope == "Cluster" { "Cluster" } else { "Namespace" };
        out.push_str(&format!(
            "\nimpl {name} {{\n    \
                 fn api_version() -> String {{\n        \"{group}/{version}\".to_owned()\n    }}\n\n    \
                 fn kind() -> String {{\n        {kind:?}.to_owned()\n    }}\n\
             }}\n\n\
             impl k8s_openapi::Resource for {name} {{\n    \
                 const API_VERSION: &'static str = \"{group}/{version}\";\n    \
                 const GROUP: &'static str = \"{group}\";\n    \
                 const KIND: &'static str = {kind:?};\n    \
                 const VERSION: &'static str = \"{version}\";\n    \
                 const URL_PATH_SEGMENT: &'static str = {plural:?};\n    \
                 type Scope = k8s_openapi::{scope}ResourceScope;\n\
             }}\n\n\
             impl k8s_openapi::Metadata for {name} {{\n    \
                 type Ty = ObjectMeta;\n\n    \
                 fn metadata(&self) -> &ObjectMeta {{\n        &self.metadata\n    }}\n\n    \
                 fn metadata_mut(&mut self) -> &mut ObjectMeta {{\n        &mut self.metadata\n    }}\n\
             }}\n",
            kind = self.kind,
            plural = spec.names.plural,
        ));
    }
}

/// Whether the group is one of the Kubernetes project, which the derive refuses.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owned| group == *owned || group.ends_with(&format!(".{owned}")))
}

/// Whether the schema has a field at a JSON path, as the derive looks for it: through lists, and up
/// to a filter or a schema that keeps any field.
fn has_path(schema: &Node, path: &str) -> bool {
    let is_open = |node: &Node| {
        node.contains_key("x-kubernetes-preserve-unknown-fields")
            || node.contains_key("additionalProperties")
    };
    let mut here = schema;
    for (at, step) in path.split('.').skip(1).enumerate() {
        let name = step.split_once('[').map_or(step, |(name, _)| name);
        if at == 0 && name == "metadata" {
            return true;
        }
        while let Some(Value::Object(items)) = here.get("items") {
            here = items;
        }
        match here.get("properties").and_then(|all| all.get(name)) {
            Some(Value::Object(field)) => here = field,
            _ => return is_open(here),
        }
        if step.contains("[?") {
            return true;
        }
    }
    true
}
