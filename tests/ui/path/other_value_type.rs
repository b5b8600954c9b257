use k8s_openapi::api::core::v1::Pod;
use windlass::path;

fn main() {
    let _: windlass::resource::FieldPath<Pod, i32> = path!(Pod: spec.node_name);
}
