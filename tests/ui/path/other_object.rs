use k8s_openapi::api::core::v1::Pod;
use windlass::path;

fn main() {
    let path = path!(Pod: spec.node_name);
    let _ = path.get(&k8s_openapi::api::core::v1::Service::default());
}
