//! Agreement of serde, definitions and an API server about generated types and values: on the
//! embedded server by default, on a real kube-apiserver with `WINDLASS_TEST_SERVER=real`.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::api::Api;
use windlass::crd::{StructuralSchema, structural_schema};
use windlass::resource::{DynamicObject, ResourceInfo, Scope};
use windlass::rng::Rng;
use windlass::testing::TestCluster;
use windlass::testing::check::judge::{CheckTarget, ValueCounts, judge};
use windlass::wire::Undecodable;

#[allow(
    dead_code,
    unused_imports,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    reason = "generated"
)]
mod generated {
    use super::Shape;

    mod prelude {
        pub(super) use std::collections::{BTreeMap, BTreeSet};
        pub(super) use std::net::{IpAddr, Ipv4Addr};
        pub(super) use std::num::{NonZeroI32, NonZeroU16};
        pub(super) use std::time::Duration;

        pub(super) use k8s_openapi::api::core::v1::{
            EnvVar, LocalObjectReference, PodTemplateSpec, ResourceRequirements, Toleration,
        };
        pub(super) use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
        pub(super) use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
        pub(super) use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
        pub(super) use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
        pub(super) use schemars::JsonSchema;
        pub(super) use serde::{Deserialize, Serialize};
        pub(super) use serde_json::Value;
        pub(super) use windlass::Schema;
        pub(super) use windlass::resource::{ApiDuration, ApiTime};

        pub(super) use super::super::{Item, as_text};
        pub(super) use crate::hexadecimal;
    }

    include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

    pub(super) fn all() -> Vec<Shape> {
        shapes()
    }
}

/// The conversion of a text of the letters `a` to `f`.
macro_rules! hexadecimal {
    ($ty:ident) => {
        impl TryFrom<String> for $ty {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                let is_good = text.chars().all(|c| matches!(c, 'a'..='f'));
                if is_good { Ok(Self(text)) } else { Err("another letter than a to f") }
            }
        }

        impl From<$ty> for String {
            fn from(value: $ty) -> Self {
                value.0
            }
        }
    };
}
use hexadecimal;

/// An item of a list with keys.
#[derive(Serialize, serde::Deserialize, windlass::Schema)]
struct Item {
    name: String,
    more: Option<i32>,
}

/// Numbers that are written as texts.
#[allow(dead_code, reason = "few generated types have no field that names the module")]
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(super) fn serialize<S: Serializer>(number: &u16, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Values for each type.
const VALUES: usize = 24;
/// Types in a definition, which stays small enough for a server.
const IN_ONE: usize = 25;

/// A generated type.
struct Shape {
    name: &'static str,
    /// Whether serde and the schema have the same conditions.
    is_exact: bool,
    schema: fn() -> Result<StructuralSchema, windlass::Error>,
    decode: fn(&Value) -> Result<Value, String>,
}

impl Shape {
    fn of<T: JsonSchema + Serialize + DeserializeOwned>(
        name: &'static str,
        is_exact: bool,
    ) -> Self {
        Self { name, is_exact, schema: structural_schema::<T>, decode: decode::<T> }
    }
}

/// Reads and writes a value as the value's type does.
fn decode<T: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, String> {
    let decoded = T::deserialize(value)
        .map_err(|error| Undecodable::explain_value::<T>(value, &error).to_string())?;
    serde_json::to_value(&decoded).map_err(|error| error.to_string())
}

/// A definition whose spec has a field for each type.
fn definition(number: usize, fields: &BTreeMap<&str, Value>) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": { "name": format!("shapes{number}.shapes.windlass.dev") },
        "spec": {
            "group": "shapes.windlass.dev",
            "scope": "Namespaced",
            "names": {
                "kind": format!("Shapes{number}"),
                "listKind": format!("Shapes{number}List"),
                "plural": format!("shapes{number}"),
                "singular": format!("shape{number}")
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": fields } }
                } }
            }]
        }
    }))
    .unwrap()
}

/// Creates a definition and waits until the definition is served.
async fn served(
    cluster: &TestCluster,
    number: usize,
    definition: &CustomResourceDefinition,
) -> Api<DynamicObject> {
    let definitions: Api<CustomResourceDefinition> = cluster.client().all();
    definitions.create(definition).await.unwrap();
    let info = ResourceInfo {
        group: "shapes.windlass.dev".into(),
        version: "v1".into(),
        kind: format!("Shapes{number}").into(),
        plural: format!("shapes{number}").into(),
        scope: Scope::Namespaced,
    };
    let api = cluster.client().dynamic(info, Some(cluster.namespace()));
    let clock = cluster.client().environment().clock.clone();
    for _ in 0..500 {
        if api.list().await.is_ok() {
            break;
        }
        clock.sleep(std::time::Duration::from_millis(20)).await;
    }
    api
}

/// Writes a value as a dry run, and returns the value that the server would store.
async fn store(
    api: Api<DynamicObject>,
    number: usize,
    field: &'static str,
    value: Value,
) -> Result<Value, String> {
    let object = json!({
        "apiVersion": "shapes.windlass.dev/v1",
        "kind": format!("Shapes{number}"),
        "metadata": { "name": "value" },
        "spec": { field: value }
    });
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let stored = api.create(&object).dry_run().await.map_err(|error| error.to_string())?;
    let mut stored = serde_json::to_value(&stored).unwrap();
    match stored["spec"].as_object_mut().and_then(|fields| fields.remove(field)) {
        Some(stored) => Ok(stored),
        None => Err("the server drops the value".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn serde_definitions_and_the_server_agree_or_a_warning_names_the_place() {
    let cluster = TestCluster::start().await;
    let shapes = generated::all();
    let (mut total, mut failures) = (ValueCounts::default(), Vec::new());
    for (number, shapes) in shapes.chunks(IN_ONE).enumerate() {
        let schemas: Vec<_> =
            shapes.iter().map(|shape| (shape, (shape.schema)().unwrap())).collect();
        let fields =
            schemas.iter().map(|(shape, schema)| (shape.name, schema.schema.clone())).collect();
        let api = served(&cluster, number, &definition(number, &fields)).await;
        for (shape, schema) in &schemas {
            let target = CheckTarget {
                schema: &schema.schema,
                warnings: &schema.warnings,
                decode: &shape.decode,
                store: &|value| Box::pin(store(api.clone(), number, shape.name, value)),
                examples: &[],
                is_exact: shape.is_exact,
            };
            let tally = judge(&target, Rng::seeded(number as u64).fork(shape.name), VALUES).await;
            total.values += tally.values;
            total.stored += tally.stored;
            total.unchecked += tally.unchecked;
            // Enums without a tag are generated, and serde confuses some variants.
            total.misread.extend(tally.misread);
            let lost = tally.lost.into_iter();
            total.lost.extend(lost.map(|text| format!("{}: {text}", shape.name)));
            if let Some(first) = tally.differences.first() {
                let count = tally.differences.len();
                failures.push(format!(
                    "{}: {count} differences\n  {first}\n  {:?}\n  {}",
                    shape.name, schema.warnings, schema.schema
                ));
            }
        }
    }
    println!(
        "{} types, {} values, {} stored, {} of them with a warning; {} that serde itself misreads, {} lost fields",
        shapes.len(),
        total.values,
        total.stored,
        total.unchecked,
        total.misread.len(),
        total.lost.len()
    );
    total.lost.iter().for_each(|text| println!("{text}"));
    assert!(total.stored * 4 > total.values, "too few values are stored to judge");
    assert!(failures.is_empty(), "{} types differ:\n{}", failures.len(), failures.join("\n"));
}
