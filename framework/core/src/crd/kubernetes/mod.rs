//! Schemas of Kubernetes types, as fields of a type that derives `Schema`.
//!
//! Small types have upstream's structure with list types (`structured`), so that the server checks
//! and merges them; large ones are kept whole and unchecked (`opaque`): a `PodTemplateSpec` would
//! make a definition of 300 KB.

// DESIGN.md, 131: Kubernetes types in a spec are small and structured, or opaque

pub(super) mod foreign;
mod opaque;
mod structured;

use std::collections::{BTreeMap, HashMap};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A Kubernetes type, or an option, list or map of such types.
pub trait KubernetesSchema {
    /// Returns its structural schema; the field that has the type adds null.
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema;

    /// Returns the schema of a list of the type. Default: replaced as a whole by server-side apply.
    fn list_schema(generator: &mut SchemaGenerator) -> Schema {
        object(json!({
            "type": "array",
            "items": Self::kubernetes_schema(generator),
            "x-kubernetes-list-type": "atomic"
        }))
    }
}

impl<T: KubernetesSchema> KubernetesSchema for Option<T> {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::kubernetes_schema(generator);
        schema.insert("nullable".to_owned(), true.into());
        schema
    }
}

impl<T: KubernetesSchema> KubernetesSchema for Box<T> {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        T::kubernetes_schema(generator)
    }
}

impl<T: KubernetesSchema> KubernetesSchema for Vec<T> {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        T::list_schema(generator)
    }
}

impl<T: KubernetesSchema> KubernetesSchema for BTreeMap<String, T> {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        map_of(T::kubernetes_schema(generator))
    }
}

impl<T: KubernetesSchema> KubernetesSchema for HashMap<String, T> {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        map_of(T::kubernetes_schema(generator))
    }
}

/// Types of std that serde parses from a text of which schemars says no more than that.
macro_rules! parsed {
    ($($ty:ident)*) => { $(
        impl KubernetesSchema for std::net::$ty {
            fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
                object(json!({ "type": "string", "x-windlass-parsed": { "type": concat!("`", stringify!($ty), "`"), "had": [] } }))
            }

            fn list_schema(generator: &mut SchemaGenerator) -> Schema {
                object(json!({ "type": "array", "items": Self::kubernetes_schema(generator) }))
            }
        }
    )* };
}
parsed! { SocketAddr SocketAddrV4 SocketAddrV6 }

/// Returns the pattern of the texts that std reads as addresses. API servers parse them as Go once
/// did, octets with leading zeros included, which std refuses.
pub(super) fn address(format: &str) -> Option<&'static str> {
    match format {
        "ipv4" => Some(r"^((0|[1-9][0-9]{0,2})\.){3}(0|[1-9][0-9]{0,2})$"),
        // The last 32 bits of an IPv6 address may be written as IPv4.
        "ipv6" => {
            Some(r"^([0-9a-fA-F]*:)+([0-9a-fA-F]*|((0|[1-9][0-9]{0,2})\.){3}(0|[1-9][0-9]{0,2}))$")
        }
        "ip" => {
            Some(r"^([0-9a-fA-F]*:)*([0-9a-fA-F]*|((0|[1-9][0-9]{0,2})\.){3}(0|[1-9][0-9]{0,2}))$")
        }
        _ => None,
    }
}

/// IP addresses, whose lists are described like those of texts.
macro_rules! addresses {
    ($($ty:ident)*) => { $(
        impl KubernetesSchema for std::net::$ty {
            fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
                <std::net::$ty>::json_schema(generator)
            }

            fn list_schema(generator: &mut SchemaGenerator) -> Schema {
                object(json!({ "type": "array", "items": Self::kubernetes_schema(generator) }))
            }
        }
    )* };
}
addresses! { Ipv4Addr Ipv6Addr IpAddr }

/// The schema of a map with such values.
fn map_of(value: Schema) -> Schema {
    object(json!({ "type": "object", "additionalProperties": value }))
}

/// The schema with these keywords.
fn object(keywords: Value) -> Schema {
    Schema::try_from(keywords).unwrap_or_default()
}
