//! Bodies in protobuf: requests are written, and answers are read, by the codec of the embedded
//! server.

use serde_json::Value;
use windlass_apiserver::protobuf;

/// Media type of protobuf.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// Returns a body of JSON as protobuf; `None` if the body has no such form.
pub(crate) fn written(body: &[u8]) -> Option<Vec<u8>> {
    let object: Value = serde_json::from_slice(body).ok()?;
    protobuf::encode(&object)
}

/// Turns a body of protobuf into JSON; others stay as they are.
pub(crate) fn read(body: &mut Vec<u8>) {
    if let Ok(object) = protobuf::decode(body, "", "") {
        *body = object.to_string().into_bytes();
    }
}
