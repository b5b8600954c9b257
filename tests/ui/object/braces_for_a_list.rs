//! The item of a list without brackets around it.

use k8s_openapi::api::core::v1::{Pod, Service};
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { containers: { name: "nginx", ports: [{ containerPort: 80 }] } } });
    let _ = object!(Service { spec: { ports: { name: "web", port: 80 } } });
}
