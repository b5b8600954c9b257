use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = "Pod")]
pub struct PodView {
    pub metadata: ObjectMeta,
}

fn main() {}
