use k8s_openapi::api::core::v1::Pod;
use windlass::path;

fn main() {
    let _ = path!(Pod: spec.containers[-1].image);
}
