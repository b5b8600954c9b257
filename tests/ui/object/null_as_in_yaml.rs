use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { metadata: { name: "a" }, spec: { nodeName: null } });
}
