//! A loop without values.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { containers: [for c { { name: c } }] } });
}
