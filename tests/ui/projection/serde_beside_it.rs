use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
#[serde(rename_all = "kebab-case")]
pub struct View {
    pub metadata: ObjectMeta,
    #[serde(rename = "spec.nodeName")]
    pub node: Option<String>,
}

fn main() {}
