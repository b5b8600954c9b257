//! OpenAPI documents, limited to the parts that clients read.
//!
//! kubectl looks up a kind's operations (does PATCH take `fieldValidation`, is strategic merge
//! allowed?) and the kind's schema (merge keys for apply, fields for explain). Left out: parameters
//! that no client looks for. Version 3 has a document for each group and version, version 2 a
//! single one.

mod binary;
mod heads;
#[cfg(test)]
mod tests;
mod v2;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use heads::Head;

use crate::served::Served;
use crate::typed::{TypeSchema, descriptions, enums};

/// Prefix of the names of shared types.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Returns `/openapi/v3`: the URL of each group and version's document, with a hash of the
/// contents.
pub fn v3_index(served: &[Served]) -> Value {
    let versions: BTreeMap<String, (&str, &str)> = served
        .iter()
        .map(|one| (key(&one.group, &one.version), (one.group.as_str(), one.version.as_str())))
        .collect();
    let paths: Map<String, Value> = versions
        .into_iter()
        .map(|(key, (group, version))| {
            let hash = v3_hash(served, group, version).unwrap_or_default();
            let url = v3_url(group, version, &hash);
            (key, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// Returns the hash of a group and version's document; `None` if no part is served.
pub(crate) fn v3_hash(served: &[Served], group: &str, version: &str) -> Option<String> {
    let mut of = served.iter().filter(|s| s.group == group && s.version == version).peekable();
    of.peek()?;
    let mut hash = Sha256::new();
    // The hash changes exactly when a resource of the document changes: clients fetch the document
    // again only then.
    of.for_each(|one| hash.update(fingerprint(one)));
    Some(hash.finalize().iter().map(|b| format!("{b:02X}")).collect())
}

/// Returns the URL of a group and version's document with a hash of the contents.
pub(crate) fn v3_url(group: &str, version: &str, hash: &str) -> String {
    format!("/openapi/v3/{}?hash={hash}", key(group, version))
}

/// Returns the document of a group and version; `None` if no part is served.
pub fn v3_document(served: &[Served], group: &str, version: &str) -> Option<Value> {
    let mut document = Document::default();
    for one in served.iter().filter(|s| s.group == group && s.version == version) {
        document.add(one);
    }
    // Nothing of the group and version is served.
    if document.paths.is_empty() {
        return None;
    }
    document.add_shared();
    document.describe();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": document.paths,
        "components": {"schemas": document.schemas},
    }))
}

/// Returns a document of version 3 in protobuf, for clients that request that form.
pub(crate) fn v3_protobuf(document: &Value) -> Vec<u8> {
    binary::v3(document)
}

/// Returns the document of version 2.
pub(crate) fn v2_document(served: &[Served]) -> Value {
    v2::document(served)
}

/// Returns the document of version 2 in protobuf.
pub(crate) fn v2_protobuf(document: &Value) -> Vec<u8> {
    binary::v2(document)
}

/// Returns the path of a group and version below `/openapi/v3`.
fn key(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Returns all data of a resource that the document depends on.
fn fingerprint(one: &Served) -> String {
    format!("{one:?}\n")
}

/// Returns the name of a custom resource's schema: the group backwards, then version and kind.
fn custom_name(one: &Served, kind: &str) -> String {
    let mut parts: Vec<&str> = one.group.split('.').rev().collect();
    parts.extend([one.version.as_str(), kind]);
    parts.join(".")
}

/// Returns a reference to a named schema.
fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Returns group, version and kind as the documents write them.
fn gvk(one: &Served, kind: &str) -> Value {
    json!({"group": one.group, "version": one.version, "kind": kind})
}

/// A document under construction.
#[derive(Default)]
struct Document {
    paths: Map<String, Value>,
    schemas: BTreeMap<String, Value>,
}

impl Document {
    /// Adds the paths and schemas of a resource.
    fn add(&mut self, one: &Served) {
        let name = self.schema(one, &one.kind);
        let list = self.schema(one, &one.list_kind);
        let base = format!("/{}", key(&one.group, &one.version));
        let scope = if one.namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("{base}{scope}/{}", one.plural);
        let item = format!("{collection}/{{name}}");
        let has = |verb: &str| one.verbs.iter().any(|v| v == verb);
        let names = OperationNames { one, kind: &one.kind, schema: &name, list: &list, suffix: "" };
        let mut put = |path: String, actions: &[(&str, &str)]| {
            let actions: Vec<_> = actions.iter().filter(|(verb, _)| has(verb)).collect();
            if actions.is_empty() {
                return;
            }
            let mut operations = Map::new();
            for (verb, method) in actions {
                operations.insert((*method).to_owned(), names.operation(verb));
            }
            operations.insert("parameters".to_owned(), path_parameters(&path));
            self.paths.insert(path, Value::Object(operations));
        };
        put(collection, &[("list", "get"), ("create", "post"), ("deletecollection", "delete")]);
        put(
            item.clone(),
            &[("get", "get"), ("update", "put"), ("patch", "patch"), ("delete", "delete")],
        );
        if one.namespaced {
            put(format!("{base}/{}", one.plural), &[("list", "get")]);
        }
        for sub in &one.subresources {
            self.add_sub(one, sub, &item);
        }
    }

    /// Adds the path of a subresource.
    fn add_sub(&mut self, one: &Served, sub: &crate::served::Subresource, item: &str) {
        let schema = if sub.kind == one.kind {
            self.schema(one, &one.kind)
        } else {
            let group = if sub.group.is_empty() { &one.group } else { &sub.group };
            let api = if group.is_empty() {
                sub.version.clone()
            } else {
                format!("{group}/{}", sub.version)
            };
            match TypeSchema::builtin(&api, &sub.kind) {
                Some(schema) => self.builtin(&schema),
                None => format!("{META}.Status"),
            }
        };
        let names = OperationNames {
            one,
            kind: &sub.kind,
            schema: &schema,
            list: &schema,
            suffix: &sub.name,
        };
        let methods = [("get", "get"), ("update", "put"), ("patch", "patch"), ("create", "post")];
        let mut operations = Map::new();
        for (verb, method) in methods.iter().filter(|(verb, _)| sub.verbs.iter().any(|v| v == verb))
        {
            let mut operation = names.operation(verb);
            if !sub.group.is_empty() {
                operation["x-kubernetes-group-version-kind"] =
                    json!({"group": sub.group, "version": sub.version, "kind": sub.kind});
            }
            operations.insert((*method).to_owned(), operation);
        }
        let path = format!("{item}/{}", sub.name);
        operations.insert("parameters".to_owned(), path_parameters(&path));
        self.paths.insert(path, Value::Object(operations));
    }

    /// Adds the schema of a kind and returns the name of the schema.
    fn schema(&mut self, one: &Served, kind: &str) -> String {
        if one.custom {
            return self.custom(one, kind);
        }
        let Some(schema) = TypeSchema::builtin(&one.api_version(), kind) else {
            let name = custom_name(one, kind);
            let schema =
                json!({"type": "object", "x-kubernetes-group-version-kind": [gvk(one, kind)]});
            self.schemas.entry(name.clone()).or_insert(schema);
            return name;
        };
        let name = self.builtin(&schema);
        if let Some(schema) = self.schemas.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([gvk(one, kind)]);
        }
        name
    }

    /// Adds a built-in type with all types that it needs, and returns its name.
    fn builtin(&mut self, schema: &TypeSchema) -> String {
        for (name, schema) in schema.components() {
            self.schemas.entry(name).or_insert(schema);
        }
        schema.openapi_name().unwrap_or_default().to_owned()
    }

    /// Adds the schema of a custom kind or of the kind's list, and returns the schema's name.
    fn custom(&mut self, one: &Served, kind: &str) -> String {
        let name = custom_name(one, kind);
        let (mut schema, head) = if kind == one.kind {
            let own = one.schema.as_deref().cloned().unwrap_or_else(|| json!({"type": "object"}));
            (own, Head::Object)
        } else {
            let items = reference(&custom_name(one, &one.kind));
            (heads::list(kind, one, &items), Head::List)
        };
        heads::complete(&mut schema);
        if let Value::Object(map) = &mut schema {
            heads::add_head(map, head);
            map.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk(one, kind)]));
            if !one.selectable.is_empty() {
                let paths = one.selectable.iter().map(|path| path.trim_start_matches('.'));
                let paths: Vec<Value> = paths.map(|path| json!({"fieldPath": path})).collect();
                map.insert("x-kubernetes-selectable-fields".to_owned(), paths.into());
            }
        }
        self.schemas.insert(name.clone(), schema);
        name
    }

    /// Adds the documentation of built-in types.
    fn describe(&mut self) {
        for (name, schema) in &mut self.schemas {
            descriptions::describe(name, schema);
            enums::add(name, schema);
        }
    }

    /// Adds the schemas that every document refers to.
    fn add_shared(&mut self) {
        // Any kind would do: the shared types of metadata are taken from that kind.
        for kind in ["ConfigMap", "ConfigMapList"] {
            let Some(schema) = TypeSchema::builtin("v1", kind) else { continue };
            for (name, schema) in schema.components() {
                if name.starts_with(META) {
                    self.schemas.entry(name).or_insert(schema);
                }
            }
        }
        for kind in ["Status", "DeleteOptions"] {
            let schema = TypeSchema::builtin("v1", kind);
            self.schemas.extend(schema.iter().flat_map(|s| s.components()));
        }
        for kind in ["ObjectMeta", "ListMeta", "DeleteOptions", "Status", "Patch"] {
            let schema = || json!({"type": "object"});
            self.schemas.entry(format!("{META}.{kind}")).or_insert_with(schema);
        }
    }
}

/// Returns a parameter.
fn parameter(name: &str, place: &str, kind: &str) -> Value {
    let mut out = json!({"name": name, "in": place, "schema": {"type": kind, "uniqueItems": true}});
    if place == "path" {
        out["required"] = json!(true);
    }
    out
}

/// Returns the parameters that all operations of a path share.
fn path_parameters(path: &str) -> Value {
    let mut out = Vec::new();
    for name in ["name", "namespace"] {
        if path.contains(&format!("{{{name}}}")) {
            out.push(parameter(name, "path", "string"));
        }
    }
    out.push(parameter("pretty", "query", "string"));
    Value::Array(out)
}

/// Names of a resource or subresource, from which the operations are written.
struct OperationNames<'a> {
    one: &'a Served,
    kind: &'a str,
    schema: &'a str,
    list: &'a str,
    suffix: &'a str,
}

impl OperationNames<'_> {
    /// Returns the operation of a verb.
    fn operation(&self, verb: &str) -> Value {
        let (word, action) = match verb {
            "create" => ("create", "post"),
            "update" => ("replace", "put"),
            "get" => ("read", "get"),
            "deletecollection" => ("deleteCollection", "deletecollection"),
            other => (other, other),
        };
        let answer = match verb {
            "list" => self.list.to_owned(),
            "delete" | "deletecollection" => format!("{META}.Status"),
            _ => self.schema.to_owned(),
        };
        let content = json!({"schema": reference(&answer)});
        let ok = json!({"description": "OK", "content": {"application/json": content, "application/yaml": content}});
        let mut responses = json!({"200": ok, "401": {"description": "Unauthorized"}});
        let described = |text: &str| json!({"description": text, "content": ok["content"]});
        if matches!(verb, "create" | "update") || verb == "patch" && !self.one.custom {
            responses["201"] = described("Created");
        }
        if matches!(verb, "create" | "delete") {
            responses["202"] = described("Accepted");
        }
        let mut out = json!({
            "tags": [self.tag()],
            "description": self.description(verb),
            "operationId": self.id(word),
            "parameters": parameters(verb),
            "responses": responses,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(self.one, self.kind),
        });
        if let Some(body) = self.body(verb) {
            out["requestBody"] = body;
        }
        out
    }

    /// Returns the description of a verb's operation.
    fn description(&self, verb: &str) -> String {
        let kind = self.kind;
        if !self.suffix.is_empty() {
            let word = match verb {
                "get" => "read",
                "update" => "replace",
                "patch" => "partially update",
                other => other,
            };
            return format!("{word} {} of the specified {}", self.suffix, self.one.kind);
        }
        match verb {
            "create" => format!("create a {kind}"),
            "update" => format!("replace the specified {kind}"),
            "patch" => format!("partially update the specified {kind}"),
            "delete" => format!("delete a {kind}"),
            "deletecollection" => format!("delete collection of {kind}"),
            "list" if self.one.custom => format!("list objects of kind {kind}"),
            "list" => format!("list or watch objects of kind {kind}"),
            _ => format!("read the specified {kind}"),
        }
    }

    /// Returns the request body of a verb; `None` for verbs without a body.
    fn body(&self, verb: &str) -> Option<Value> {
        let any = |name: &str| json!({"*/*": {"schema": reference(name)}});
        Some(match verb {
            "create" | "update" => json!({"content": any(self.schema), "required": true}),
            "delete" | "deletecollection" => {
                json!({"content": any(&format!("{META}.DeleteOptions"))})
            }
            "patch" => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.one.custom {
                    // kubectl reads here whether a strategic merge patch is allowed.
                    types.push("application/strategic-merge-patch+json");
                }
                let schema = json!({"schema": reference(&format!("{META}.Patch"))});
                let content: Map<String, Value> =
                    types.into_iter().map(|t| (t.to_owned(), schema.clone())).collect();
                json!({"content": content, "required": true})
            }
            _ => return None,
        })
    }

    /// Returns the group in camel case, without version: `apps`, `corpusExampleCom`, `core`.
    fn camel_group(&self) -> String {
        let group = self.one.group.strip_suffix(".k8s.io").unwrap_or(&self.one.group);
        let group = if group.is_empty() { "core" } else { group };
        group
            .split(['.', '-'])
            .enumerate()
            .map(|(i, p)| if i == 0 { p.to_owned() } else { title(p) })
            .collect()
    }

    /// Returns the tag of a group and version, such as `apps_v1`.
    fn tag(&self) -> String {
        format!("{}_{}", self.camel_group(), self.one.version)
    }

    /// Returns the id of an operation, such as `readAppsV1NamespacedDeployment`.
    fn id(&self, word: &str) -> String {
        let scope = if self.one.namespaced { "Namespaced" } else { "" };
        let group = title(&self.camel_group());
        let (version, kind) = (title(&self.one.version), &self.one.kind);
        let suffix = title(self.suffix);
        match word {
            "deleteCollection" => format!("delete{group}{version}Collection{scope}{kind}"),
            word => format!("{word}{group}{version}{scope}{kind}{suffix}"),
        }
    }
}

/// Returns a text with the first letter in upper case.
fn title(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns the query parameters of a verb.
fn parameters(verb: &str) -> Vec<Value> {
    let list: &[(&str, &str)] = &[
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ];
    let write: &[(&str, &str)] =
        &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
    let delete: &[(&str, &str)] = &[
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ];
    let names = match verb {
        "list" => list.to_vec(),
        "create" | "update" => write.to_vec(),
        "patch" => [write, &[("force", "boolean")]].concat(),
        "delete" => delete.to_vec(),
        "deletecollection" => [delete, &list[1..]].concat(),
        _ => Vec::new(),
    };
    names.into_iter().map(|(name, kind)| parameter(name, "query", kind)).collect()
}
