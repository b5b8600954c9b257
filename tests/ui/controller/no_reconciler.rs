use k8s_openapi::api::core::v1::Pod;
use windlass::Controller;

#[derive(Controller)]
#[controller(for = Pod)]
struct Maps;

fn main() {}
