use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    pub spce: Option<PodSpec>,
}

fn main() {
    fn takes<K: windlass::resource::Resource>() {}
    takes::<View>();
}
