use k8s_openapi::api::core::v1::Pod;
use windlass::Controller;

#[derive(Controller)]
#[controller(for = Pod)]
struct Maps<T: Send + Sync + 'static>(T);

fn main() {}
