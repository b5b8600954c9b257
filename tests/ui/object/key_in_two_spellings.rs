//! Two keys of a map that are one name in Rust.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::object;

fn main() {
    let _ = object!(ConfigMap { data: { NAME: "a", Name: "b" } });
}
