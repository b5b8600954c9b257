//! A base before the fields.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let base = Pod::default();
    let _ = object!(Pod { ..base, metadata: { name: "a" } });
}
