//! A name that the kind does not have.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let _ = object!(Deployment { spek: { replicas: 1 } });
}
