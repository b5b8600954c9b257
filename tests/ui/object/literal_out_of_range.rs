//! A literal that does not fit.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod {
        spec: { containers: [{ name: "a", ports: [{ containerPort: 3_000_000_000 }] }] },
    });
}
