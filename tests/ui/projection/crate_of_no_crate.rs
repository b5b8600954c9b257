use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, crate = nonexistent)]
pub struct PodNode {
    metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    node: Option<String>,
}

fn main() {}
