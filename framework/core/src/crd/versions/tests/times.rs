//! Objects with times at the end of the year 9999, which no typed field can hold.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_macros::{Convertible, CustomResource, Schema};

use super::*;

mod v1 {
    use super::*;

    /// A ban.
    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced, versions(v1beta1::Ban))]
    pub(crate) struct Ban {
        pub metadata: ObjectMeta,
        pub spec: BanSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub(crate) struct BanSpec {
        pub since: Time,
        pub until: Option<Time>,
        pub note: String,
    }
}

mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Ban)]
    pub(crate) struct Ban {
        pub metadata: ObjectMeta,
        pub spec: BanSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BanSpec)]
    pub(crate) struct BanSpec {
        pub since: Time,
        #[convert(rename = until)]
        pub ends: Option<Time>,
        pub note: String,
    }
}

const NEVER: &str = "9999-12-31T23:59:59Z";

#[test]
fn a_time_that_no_typed_field_holds_is_converted_and_stays_as_it_is() {
    let versions = Versions::of::<v1::Ban>().unwrap();
    let object = json!({
        "apiVersion": "example.dev/v1beta1", "kind": "Ban",
        "metadata": { "name": "a", "creationTimestamp": NEVER },
        "spec": { "since": "9999-12-31T12:00:00Z", "ends": NEVER, "note": NEVER },
    });
    let hub = versions.convert(object.clone(), "v1").unwrap();
    let spec = json!({ "since": "9999-12-31T12:00:00Z", "until": NEVER, "note": NEVER });
    assert_eq!((&hub["spec"], &hub["metadata"]), (&spec, &object["metadata"]));
    assert_eq!(versions.convert(hub, "v1beta1").unwrap(), object);
}

#[test]
fn the_fault_beside_such_a_time_is_named() {
    let versions = Versions::of::<v1::Ban>().unwrap();
    let object = json!({
        "apiVersion": "example.dev/v1beta1", "kind": "Ban", "metadata": { "name": "a" },
        "spec": { "since": NEVER, "note": 4711 },
    });
    let error = versions.convert(object, "v1").unwrap_err().to_string();
    assert!(error.contains(".spec.note: invalid type: integer, expected a string"), "{error}");
    assert!(!error.contains("4711"), "{error}");
}
