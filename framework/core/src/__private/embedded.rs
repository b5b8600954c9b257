//! The schema of a kind inside of another kind.

use std::any::TypeId;
use std::cell::RefCell;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::crd::{CustomResource, STRUCTURAL};
use crate::error::Error;

thread_local! {
    /// Kinds whose definition is being built: a kind may contain itself.
    static OPEN: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Returns the schema of an embedded object of that kind: the schema of its definition, as an
/// embedded resource. A kind that is inside of itself twice, and one whose definition has faults (which
/// its own `crd()` reports), may contain anything.
pub fn embedded_schema<K: CustomResource + 'static>() -> Schema {
    embedded(TypeId::of::<K>(), K::crd)
}

/// Returns the schema of the kind with this definition. Not generic, so that it is compiled once.
fn embedded(id: TypeId, definition: fn() -> Result<CustomResourceDefinition, Error>) -> Schema {
    if OPEN.with_borrow(|open| open.contains(&id)) {
        return opaque();
    }
    OPEN.with_borrow_mut(|open| open.push(id));
    let schema = definition().ok().and_then(schema);
    OPEN.with_borrow_mut(|open| open.retain(|other| *other != id));
    schema.map_or_else(opaque, Schema::from)
}

/// Returns the schema of the definition's only version.
fn schema(definition: CustomResourceDefinition) -> Option<Map<String, Value>> {
    let version = definition.spec.versions.into_iter().next()?;
    let api_version = format!("{}/{}", definition.spec.group, version.name);
    let schema = version.schema?.open_api_v3_schema?;
    let Ok(Value::Object(mut schema)) = serde_json::to_value(schema) else { return None };
    schema.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
    is_of_kind(&mut schema, &api_version, &definition.spec.names.kind);
    // Structural already: read again, its alternatives would be those of a flattened enum. Not the root,
    // which a variant of an enum or a flattened field mixes with other fields.
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.insert(STRUCTURAL.to_owned(), true.into());
        }
    }
    schema.remove("x-kubernetes-preserve-unknown-fields");
    Some(schema)
}

/// Restricts `apiVersion` and `kind` to those that serde reads, and writes.
fn is_of_kind(schema: &mut Map<String, Value>, api_version: &str, kind: &str) {
    let fields = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(fields) = fields else { return };
    for (field, only) in [("apiVersion", api_version), ("kind", kind)] {
        fields.insert(field.to_owned(), json!({ "type": "string", "enum": [only] }));
    }
}

/// Returns the schema of an object of any kind.
fn opaque() -> Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json, to_value};
    use windlass_macros::CustomResource;

    use super::*;

    /// A site.
    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Website {
        metadata: ObjectMeta,
        spec: Spec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Spec {
        host: String,
        /// A kind inside of itself.
        next: Option<Box<Website>>,
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", cluster)]
    struct Fleet {
        metadata: ObjectMeta,
        spec: FleetSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct FleetSpec {
        template: Website,
        others: Option<Vec<Website>>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    #[serde(tag = "t")]
    enum Source {
        Git { url: u8 },
        File { path: String },
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Mirror {
        metadata: ObjectMeta,
        spec: Source,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct Flat {
        #[serde(flatten)]
        source: Source,
        count: Option<u8>,
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Copy {
        metadata: ObjectMeta,
        spec: Flat,
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", cluster)]
    struct Depot {
        metadata: ObjectMeta,
        spec: DepotSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct DepotSpec {
        /// The first one.
        mirror: Option<Mirror>,
        copies: Vec<Copy>,
        site: Site,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    #[serde(tag = "of")]
    enum Site {
        Mirror(Mirror),
        Copy(Copy),
    }

    #[test]
    fn a_kind_with_alternatives_is_embedded_as_it_is() {
        let fields = spec::<Depot>();
        for (place, inner) in [
            (&fields["mirror"], spec_of::<Mirror>()),
            (&fields["copies"]["items"], spec_of::<Copy>()),
        ] {
            assert_eq!(place["properties"]["spec"], inner);
        }
        assert_eq!(fields["mirror"]["nullable"], true);
        assert_eq!(fields["mirror"]["description"], "The first one.");
        assert_eq!(fields["site"]["properties"]["of"]["enum"], json!(["Mirror", "Copy"]));
        assert!(!fields.to_string().contains("x-windlass"), "{fields:#}");
    }

    fn spec_of<K: CustomResource>() -> Value {
        let crd = to_value(K::crd().unwrap()).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    }

    fn spec<K: CustomResource>() -> Value {
        let crd = to_value(K::crd().unwrap()).unwrap();
        let version = &crd["spec"]["versions"][0];
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].clone()
    }

    #[test]
    fn a_kind_is_embedded_in_another_with_its_schema() {
        let fields = spec::<Fleet>();
        let template = &fields["template"];
        assert_eq!(template["x-kubernetes-embedded-resource"], json!(true));
        assert_eq!(template["type"], "object");
        let host = &template["properties"]["spec"]["properties"]["host"];
        assert_eq!(host["type"], "string", "{template:#}");
        assert_eq!(fields["others"]["items"]["x-kubernetes-embedded-resource"], json!(true));
    }

    #[test]
    fn a_kind_inside_of_itself_may_contain_anything_from_the_second_time_on() {
        let next = &spec::<Website>()["next"];
        assert_eq!(next["x-kubernetes-embedded-resource"], json!(true), "{next:#}");
        let after = &next["properties"]["spec"]["properties"]["next"];
        assert_eq!(after["x-kubernetes-preserve-unknown-fields"], json!(true), "{next:#}");
    }
}
