use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
pub struct View {
    pub metadata: ObjectMeta,
    #[projection(label = "app")]
    pub app: Option<String>,
    #[projection(annotation = "example.dev/note")]
    pub note: String,
    #[projection(annotation = "example.dev/other", path = "spec.nodeName")]
    pub node: Option<String>,
}

fn main() {}
