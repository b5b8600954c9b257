//! Literals where names of the prelude are shadowed and every lint is an error.

#![deny(warnings, missing_docs, missing_debug_implementations)]
#![deny(unused_qualifications, private_interfaces, private_bounds)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVarSource, Service};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, CustomResource, object};

/// Names that generated code must not use.
#[allow(dead_code)]
enum Shadow {
    Some,
    None,
    Option,
    Vec,
    String,
    __Keys,
}

#[allow(unused_imports)]
use Shadow::{None, Some, Vec};

/// A kind.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Site {
    metadata: ObjectMeta,
    spec: Spec,
    status: ::core::option::Option<Status>,
}

/// Private, as the types of many operators are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Spec {
    host: ::std::string::String,
    weights: ::std::option::Option<BTreeMap<::std::string::String, i64>>,
    limits: Limits,
    new: ::std::option::Option<i32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Limits {
    low: u16,
    high: Perhaps<u16>,
}

/// Another name of an option.
type Perhaps<T> = ::std::option::Option<T>;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Status {
    url: ::std::option::Option<::std::string::String>,
}

/// Names that differ from those of k8s-openapi's rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gate {
    /// A keyword.
    pub r#type: ::std::string::String,
    /// A field of another name in JSON.
    #[serde(rename = "dns")]
    pub host_name: ::std::string::String,
}

/// A type with the name of one whose `data` has bytes.
#[derive(Clone, Debug, Default)]
pub struct Secret {
    /// Texts.
    pub data: ::std::option::Option<BTreeMap<::std::string::String, ::std::string::String>>,
}

/// Checks the values.
pub fn main() {
    let secret = object!(Secret { data: { token: "a", user: "b" } });
    assert_eq!(secret.data.as_ref().map(|data| data.len()), ::core::option::Option::Some(2));
    let secret = object!(Secret { data: { "token": "a", if true { "user": "b" } } });
    assert_eq!(secret.data.map(|data| data["user"].len()), ::core::option::Option::Some(1));
    let site = object!(Site {
        spec: { host: "a", weights: { one: 1, two: 2 }, limits: { low: 3 }, new: 4 },
        ..Site::new("home", Spec::default())
    });
    assert_eq!(site.metadata.name.as_deref(), ::core::option::Option::Some("home"));
    assert_eq!(
        site.spec.weights.as_ref().map(|weights| weights["two"]),
        ::core::option::Option::Some(2)
    );
    assert_eq!((site.spec.limits.low, site.status.is_none()), (3, true));
    let gate = object!(Gate { r#type: "http", host_name: "a" });
    assert_eq!((gate.r#type.as_str(), gate.host_name.as_str()), ("http", "a"));
    let service =
        object!(Service { spec: { type: "ClusterIP", ports: [{ port: 80, targetPort: "web" }] } });
    assert!(service.spec.is_some());
    // Types that have the words of a manifest's head as fields.
    let kind = "Group";
    let binding = object!(RoleBinding {
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "a" },
        subjects: [{ kind: "User", name: "b" }, { kind, name: "c" }],
        metadata: { labels: { kind: "web", apiVersion: "1" }, ownerReferences: [
            { apiVersion: "v1", kind: "Pod", name: "d", if true { controller: true } },
        ] },
    });
    assert_eq!(
        (binding.role_ref.kind.as_str(), binding.subjects.iter().flatten().count()),
        ("Role", 2)
    );
    let source =
        object!(EnvVarSource { fieldRef: { apiVersion: "v1", fieldPath: (["a", "b"].join(".")) } });
    assert!(source.field_ref.is_some());
    let limits = Limits { low: 1, high: ::core::option::Option::None };
    let apply = SiteApply::new("home").spec(SpecApply::new().new_(5).limits(limits));
    assert!(serde_json::to_string(&apply).is_ok_and(|text| text.contains("\"new\":5")));
    // A value of the option's type, and one of the type inside.
    let limits = LimitsApply::new().low(1u16).high(2u16);
    assert!(serde_json::to_string(&limits).is_ok_and(|text| text == r#"{"high":2,"low":1}"#));
    let limits = LimitsApply::new().high(::core::option::Option::Some(3));
    assert!(serde_json::to_string(&limits).is_ok_and(|text| text == r#"{"high":3}"#));
}
