use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection]
pub struct View {
    pub metadata: ObjectMeta,
}

fn main() {
    fn takes<K: windlass::resource::Resource>() {}
    takes::<View>();
}
