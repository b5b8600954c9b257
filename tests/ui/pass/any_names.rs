//! Types and fields with names that generated code might use as well.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

type Result<T> = std::result::Result<T, ()>;

/// A pattern of this name would be the constant.
#[allow(dead_code, non_upper_case_globals)]
const spec: u8 = 0;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1alpha1", cluster, kind = "Thing", plural = "stuff")]
#[index(by_object = spec.element?.object[], by_self: u8 = spec.r#type, by_all = spec.element.object)]
#[allow(non_snake_case)]
pub struct A {
    pub metadata: ObjectMeta,
    pub spec: S,
    pub map: Option<D>,
    pub field: D,
    pub name: Fields,
    pub last_seen: core::option::Option<T>,
    #[allow(non_snake_case)]
    pub externalIPs: Maybe<Vec<u8>>,
    pub f0: Option<u8>,
    pub out: Option<u8>,
}

type Maybe<T> = Option<T>;

macro_rules! plain {
    ($($name:ident)*) => {$(
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            #[serde(default)]
            element: Option<E>,
            #[serde(default)]
            r#type: u8,
        }
    )*};
}
plain!(S D T Fields);

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct E {
    object: Vec<String>,
}

macro_rules! kind {
    ($kind:ident, $spec:ty) => {
        /// Made by a macro.
        #[derive(CustomResource, Clone, Debug)]
        #[resource(group = "example.dev", version = "v1", namespaced)]
        pub struct $kind {
            pub metadata: ObjectMeta,
            pub spec: $spec,
            pub status: Option<$spec>,
        }
    };
}
kind!(Made, S);

pub fn main() -> Result<()> {
    let object = A::new("a", S::default(), D::default(), Fields::default(), None);
    let text = serde_json::to_string(&object).unwrap();
    assert!(text.contains("\"name\":{"), "{text}");
    assert!(!text.contains("lastSeen"), "{text}");
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["lastSeen"] = serde_json::json!({});
    let back: A = serde_json::from_value(value).unwrap();
    assert!(back.map.is_none() && back.last_seen.is_some());
    assert!(serde_json::from_str::<A>(&text.replacen("{", "{\"spec\":{},", 1)).is_err());
    let missing = serde_json::from_str::<A>("{}").unwrap_err().to_string();
    assert!(missing.contains("missing field"), "{missing}");
    assert_eq!(A::crd().unwrap().metadata.name.as_deref(), Some("stuff.example.dev"));
    assert_eq!(Made::crd().unwrap().spec.versions.len(), 1);
    assert_eq!(A::BY_OBJECT.name(), "by_object");
    assert_eq!(A::BY_SELF.name(), "by_self");
    Ok(())
}
