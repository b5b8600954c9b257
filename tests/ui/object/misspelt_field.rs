//! A misspelt name is underlined, at any depth.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod {
        metadata: { name: "a" },
        spec: { containers: [{ name: "web", ports: [{ containerPrt: 80 }] }] },
    });
}
