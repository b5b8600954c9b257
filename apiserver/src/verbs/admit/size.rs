//! The size of objects: an object that etcd would refuse is not stored.
//!
//! The limit of a request's body bounds only the texts that clients send: webhooks, conversions and
//! managed fields make larger objects of them.

use serde_json::Value;

use crate::kinds::{Kind, meta};
use crate::protobuf;
use crate::status::ApiError;
use crate::storage;

/// Most bytes of a request to etcd (`--max-request-bytes`).
const LARGEST: usize = 3 << 19;
/// Most bytes of a message that kube-apiserver's client of etcd sends.
const LARGEST_MESSAGE: usize = 2 << 20;
/// Bytes of a request to etcd besides key and object, about.
const ENVELOPE: usize = 64;
/// Factor by which the JSON of a value is at most larger than the value's memory: control
/// characters are escaped.
const ESCAPED: usize = 6;

/// Checks that an object may be stored under a key. Too large an object loses the managed fields
/// first, as upstream, unless it was `applied`.
pub(crate) fn fit(
    kind: &Kind,
    key: &str,
    object: &mut Value,
    applied: bool,
) -> Result<(), ApiError> {
    // Most objects are small: no text is made of them.
    if storage::size(object).saturating_mul(ESCAPED) < LARGEST {
        return Ok(());
    }
    let around = ENVELOPE + 3 * (key.len() + kind.storage.len());
    let fits = |object: &Value| match stored(kind, object) + around {
        size if size > LARGEST_MESSAGE => Err(ApiError::unclassified(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({size} vs. {LARGEST_MESSAGE})"
        ))),
        size if size > LARGEST => Err(ApiError::unclassified("etcdserver: request is too large")),
        _ => Ok(()),
    };
    let refused = fits(object);
    if refused.is_ok() || applied || object["metadata"]["managedFields"].is_null() {
        return refused;
    }
    meta::set(object, "managedFields", Value::Null);
    fits(object)
}

/// Returns the bytes of an object in etcd: custom resources and definitions are JSON, the others
/// protobuf.
fn stored(kind: &Kind, object: &Value) -> usize {
    let is_json = kind.custom.is_some() || kind.served.group == "apiextensions.k8s.io";
    let bytes = if is_json { None } else { protobuf::encode(object) };
    bytes.map_or_else(|| object.to_string().len(), |bytes| bytes.len())
}
