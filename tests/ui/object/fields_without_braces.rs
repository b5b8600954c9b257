//! A field behind the name of another, as two lines of YAML in one.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let name = "nginx";
    let _ = object!(Deployment { metadata: name: name.to_owned(), spec: { replicas: 2 } });
}
