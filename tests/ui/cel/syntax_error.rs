use k8s_openapi::api::apps::v1::Deployment;
use windlass::webhook::{CelExpression, cel};

fn main() {
    let few: CelExpression<Deployment, bool> = cel!(Deployment: "object.spec.replicas <= ");
    drop(few);
}
