use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    pub spec: Option<Spec>,
}

#[derive(Clone, Debug)]
pub struct Spec {
    pub node_name: String,
}

fn main() {}
