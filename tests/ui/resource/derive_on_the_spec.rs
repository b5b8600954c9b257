use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct WebsiteSpec {
    pub host: String,
}


// No other error may follow: the resource is usable in spite of the fault.
fn main() {
    fn takes<K: windlass::resource::Resource + windlass::crd::CustomResource>() {}
    takes::<WebsiteSpec>();
}
