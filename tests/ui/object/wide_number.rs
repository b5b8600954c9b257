//! A number that may not fit.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let replicas: i64 = 3;
    let _ = object!(Deployment { spec: { replicas: replicas } });
}
