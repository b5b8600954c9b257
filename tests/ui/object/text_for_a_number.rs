//! A text where a number belongs.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let _ = object!(Deployment { spec: { replicas: "3" } });
}
