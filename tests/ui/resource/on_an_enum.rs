use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub enum Website {
    One,
}

fn main() {}
