use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Secret)]
pub struct View {
    pub metadata: ObjectMeta,
    pub immutable: Option<String>,
}

fn main() {
    fn takes<K: windlass::resource::Resource>() {}
    takes::<View>();
}
