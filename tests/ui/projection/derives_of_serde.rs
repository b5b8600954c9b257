use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[derive(serde::Deserialize, serde::Serialize)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    #[projection(path = spec.node_name)]
    pub node: Option<String>,
}

fn main() {}
