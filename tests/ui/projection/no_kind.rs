use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
pub struct View {
    pub metadata: ObjectMeta,
}

// No other error may follow: the projection is usable in spite of the fault.
fn main() {
    fn takes<K: windlass::resource::Resource>() {}
    takes::<View>();
    takes::<Pod>();
}
