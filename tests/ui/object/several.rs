//! Every mistake is reported, each at its place.

use k8s_openapi::api::core::v1::Service;
use windlass::object;

fn main() {
    let _ = object!(Service {
        metadata: { nam: "a" },
        spec: { clusterIP: 5, ports: [{ prt: 80, targetPort: true }] },
    });
}
