//! The item of a list without brackets around it.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { containers: { name: "a", ports: [{ containerPort: 80 }] } } });
}
