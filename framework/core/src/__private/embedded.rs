//! The schema of a kind inside of another kind.

// DESIGN.md, 194: A kind inside of another brings its faults and remarks along

use std::any::TypeId;
use std::cell::RefCell;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::crd::{CustomResource, INSIDE, STRUCTURAL, faults};
use crate::error::Error;
use crate::resource::ResourceInfo;

thread_local! {
    /// Kinds whose definition is being built: kinds may contain themselves.
    static OPEN: RefCell<Vec<TypeId>> = const { RefCell::new(Vec::new()) };
}

/// Returns the schema of an embedded object of that kind: the schema of the kind's definition, as
/// an embedded resource. A kind that is nested in the same kind twice may contain anything; faults
/// and remarks of the inner definition are those of the kind around it, too, at the place of the
/// field.
pub fn embedded_schema<K: CustomResource + 'static>() -> Schema {
    embedded(TypeId::of::<K>(), K::static_info().as_ref(), K::crd)
}

/// Returns the schema of the kind with this definition. Not generic, so that this function is
/// compiled once.
fn embedded(
    id: TypeId,
    info: Option<&ResourceInfo>,
    definition: fn() -> Result<CustomResourceDefinition, Error>,
) -> Schema {
    let mut schema = if OPEN.with_borrow(|open| open.contains(&id)) {
        let warning = format!(
            ": the kind{} contains itself, which an API server cannot describe: from here on it keeps everything \
             and checks nothing",
            info.map(|info| format!(" `{}`", info.kind)).unwrap_or_default()
        );
        opaque(json!({ "warnings": [warning] }))
    } else {
        OPEN.with_borrow_mut(|open| open.push(id));
        let (definition, remarks) = faults::collect(definition);
        OPEN.with_borrow_mut(|open| open.retain(|other| *other != id));
        let texts = |is_note| -> Vec<String> {
            let of_fields =
                remarks.iter().filter(|it| it.is_note == is_note && it.text.starts_with('.'));
            of_fields.map(|it| it.text.clone()).collect()
        };
        match definition.map(structural) {
            Ok(Some(mut schema)) => {
                let mark = json!({ "warnings": texts(false), "notes": texts(true) });
                schema.insert(INSIDE.to_owned(), mark);
                schema
            }
            Ok(None) => opaque(json!({ "fault": "it has no schema" })),
            Err(error) => opaque(json!({ "fault": error.to_string() })),
        }
    };
    if let Some(info) = info {
        is_of_kind(&mut schema, &info.api_version(), &info.kind);
    }
    Schema::from(schema)
}

/// Returns the schema of the definition's only version.
fn structural(definition: CustomResourceDefinition) -> Option<Map<String, Value>> {
    let version = definition.spec.versions.into_iter().next()?;
    let schema = version.schema?.open_api_v3_schema?;
    let Ok(Value::Object(mut schema)) = serde_json::to_value(schema) else { return None };
    schema.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
    // Structural already: read again, the schema's alternatives would be those of a flattened enum.
    // Not the root, which a variant of an enum or a flattened field mixes with other fields.
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

/// Returns the schema of an object of which nothing is checked.
fn opaque(mark: Value) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
    schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    schema.insert(INSIDE.to_owned(), mark);
    schema
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

    mod older {
        use super::*;

        #[derive(CustomResource, Clone, Debug)]
        #[resource(group = "example.dev", version = "v1alpha1", namespaced)]
        pub(super) struct Mirror {
            metadata: ObjectMeta,
            address: String,
        }
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", cluster)]
    struct Migration {
        metadata: ObjectMeta,
        spec: MigrationSpec,
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1beta1", namespaced, kind = "Mirror")]
    struct NewerMirror {
        metadata: ObjectMeta,
        addresses: Vec<String>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct MigrationSpec {
        from: older::Mirror,
        by: Option<NewerMirror>,
        to: Option<Mirror>,
    }

    #[test]
    fn two_kinds_of_one_name_have_their_own_schemas() {
        let fields = spec::<Migration>();
        assert_eq!(fields["from"]["properties"]["address"]["type"], "string", "{fields:#}");
        assert_eq!(fields["by"]["properties"]["addresses"]["type"], "array", "{fields:#}");
        assert_eq!(fields["to"]["properties"]["spec"], spec_of::<Mirror>());
        assert_eq!(fields["to"]["properties"]["apiVersion"]["enum"], json!(["example.dev/v1"]));
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Broken {
        metadata: ObjectMeta,
        spec: BrokenSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct BrokenSpec {
        #[schema(pattern = "^a", default = "b")]
        name: String,
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Outer {
        metadata: ObjectMeta,
        spec: OuterSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct OuterSpec {
        template: Broken,
    }

    #[test]
    fn a_fault_of_a_kind_is_one_of_the_kind_around_it() {
        let fault = Outer::crd().unwrap_err().to_string();
        assert!(fault.contains(".spec.template: the kind inside has faults"), "{fault}");
        assert!(fault.contains(".spec.name: its default \"b\" should match '^a'"), "{fault}");
    }

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    struct Prices {
        metadata: ObjectMeta,
        spec: PricesSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
    struct PricesSpec {
        by_number: std::collections::BTreeMap<u16, u8>,
        template: Option<k8s_openapi::api::core::v1::PodTemplateSpec>,
        others: Vec<Prices>,
    }

    #[test]
    fn remarks_about_a_kind_inside_name_the_place_in_the_kind_around_it_once() {
        let warnings = crate::crd::warnings::<Prices>().unwrap();
        let of = |place: &str, text: &str| {
            let found = warnings.iter().filter(|it| it.starts_with(place) && it.contains(text));
            assert_eq!(found.count(), 1, "{place}: {text} in {warnings:#?}");
        };
        of(".spec.by_number: ", "keys of a map");
        of(".spec.others.[].spec.by_number: ", "keys of a map");
        of(".spec.others.[].spec.template: ", "stores any object here");
        of(".spec.others.[].spec.others.[]: ", "the kind `Prices` contains itself");
        assert_eq!(warnings.len(), 5, "{warnings:#?}");
        let inner =
            &spec::<Prices>()["others"]["items"]["properties"]["spec"]["properties"]["others"];
        assert_eq!(inner["items"]["properties"]["kind"]["enum"], json!(["Prices"]), "{inner:#}");
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
