use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    pub node: Option<String>,
    #[projection(path = "spec.nodeName")]
    pub host: Option<String>,
    #[projection(path = "metadata.name")]
    pub name: String,
    pub kind: String,
}

fn main() {}
