//! Keys that keep a value: in the containers of a spelled type, and where a function reads.

#![allow(dead_code)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::check_crd;
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

/// A type without a schema, with a form of its own.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Foreign {
    api_version: String,
    kind: String,
    field: i32,
}

type Rows = Vec<Vec<Foreign>>;

#[derive(Serialize, Deserialize, Schema)]
struct Nested {
    #[schema(embedded)]
    spelled: Vec<Vec<Foreign>>,
    #[schema(embedded)]
    alias: Rows,
    #[schema(embedded)]
    lists_by_name: BTreeMap<String, Vec<Foreign>>,
    #[schema(embedded)]
    optional_lists: Vec<Option<Vec<Foreign>>>,
    #[schema(int_or_string)]
    ports: Vec<BTreeMap<String, Foreign>>,
    #[schema(int_or_string)]
    port: Vec<Foreign>,
    #[schema(embedded)]
    objects_or_null: Vec<Option<Foreign>>,
    #[schema(int_or_string)]
    ports_or_null: BTreeMap<String, Option<Foreign>>,
}

#[test]
fn containers_inside_of_containers_are_those_that_serde_reads() {
    let found = structural_schema::<Nested>().unwrap().schema["properties"].clone();
    let embedded = "x-kubernetes-embedded-resource";
    assert_eq!(found["spelled"], found["alias"]);
    for (name, items) in [("spelled", "items"), ("lists_by_name", "additionalProperties")] {
        assert_eq!(found[name][items]["type"], "array", "{name}: {:#}", found[name]);
        assert_eq!(found[name][items]["items"][embedded], true, "{name}: {:#}", found[name]);
    }
    assert_eq!(found["optional_lists"]["items"]["items"][embedded], true);
    let port = "x-kubernetes-int-or-string";
    assert_eq!(found["ports"]["items"]["additionalProperties"][port], true);
    assert_eq!(found["port"]["items"][port], true);
    assert_eq!(found["port"]["items"]["nullable"], Value::Null);
    assert_eq!(found["objects_or_null"]["items"]["nullable"], true);
    assert_eq!(found["ports_or_null"]["additionalProperties"]["nullable"], true);
    let faults = check_crd(&definition(&structural_schema::<Nested>().unwrap().schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Embedding {
    #[schema(embedded)]
    pod: Option<Pod>,
    #[schema(embedded)]
    template: Option<PodTemplateSpec>,
}

#[test]
fn a_type_without_api_version_and_kind_is_no_embedded_object() {
    let error = structural_schema::<Embedding>().unwrap_err().to_string();
    assert!(error.contains("template: `embedded` is for whole Kubernetes objects"), "{error}");
    assert!(!error.contains("pod"), "{error}");
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Foreign;

    pub(super) fn serialize<S: Serializer>(it: &Foreign, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&it.field)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Foreign, D::Error> {
        let text = String::deserialize(from)?;
        let field = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Foreign { field, ..Foreign::default() })
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct ReadByFunctions {
    #[serde(with = "as_text")]
    #[schema(opaque)]
    at: Foreign,
    #[serde(default, deserialize_with = "as_text::deserialize")]
    #[schema(opaque)]
    since: Foreign,
}

#[test]
fn an_opaque_value_that_a_function_reads_may_be_any() {
    let found = structural_schema::<ReadByFunctions>().unwrap().schema;
    let read: ReadByFunctions = serde_json::from_value(json!({ "at": "3", "since": "4" })).unwrap();
    assert_eq!((read.at.field, read.since.field), (3, 4));
    for name in ["at", "since"] {
        let field = &found["properties"][name];
        assert_eq!(field["x-kubernetes-preserve-unknown-fields"], true, "{name}: {field:#}");
        assert_eq!(field["type"], Value::Null, "{name}: {field:#}");
    }
    assert_eq!(found["required"], json!(["at"]));
    let faults = check_crd(&definition(&found), None);
    assert!(faults.is_empty(), "{faults:#?}");
}
