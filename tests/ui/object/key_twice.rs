//! A key of a map that is set as a word and as a text.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::object;

fn main() {
    let _ = object!(ConfigMap { data: { a: "1", "a": "2" } });
}
