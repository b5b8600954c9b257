use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use windlass::webhook::{CelExpression, cel};

fn main() {
    let few: CelExpression<Deployment, bool> = cel!(ConfigMap: "object.immutable == true");
    drop(few);
}
