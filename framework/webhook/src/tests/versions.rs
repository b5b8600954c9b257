//! A kind of two versions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass_runtime::{Convertible, CustomResource, Schema};

pub(crate) mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced, versions(v1beta1::Parcel))]
    #[resource(crate = windlass_runtime)]
    pub(crate) struct Parcel {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ParcelSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    #[schema(crate = windlass_runtime)]
    pub(crate) struct ParcelSpec {
        pub(crate) grams: i64,
        pub(crate) fragile: bool,
    }
}

pub(crate) mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Parcel, crate = windlass_runtime)]
    pub(crate) struct Parcel {
        pub(crate) metadata: ObjectMeta,
        pub(crate) spec: ParcelSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[schema(crate = windlass_runtime)]
    #[convert(hub = v1::ParcelSpec, hub_only(fragile), crate = windlass_runtime)]
    pub(crate) struct ParcelSpec {
        #[convert(rename = grams, to_hub = to_hub, from_hub = from_hub)]
        pub(crate) weight: i32,
    }

    fn to_hub(weight: i32) -> i64 {
        assert!(weight != 13, "the weight is 13");
        weight.into()
    }

    fn from_hub(grams: i64) -> Result<i32, std::num::TryFromIntError> {
        grams.try_into()
    }
}
