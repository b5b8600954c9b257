use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use windlass::Dependents;

#[derive(Dependents)]
struct Children {
    config: Secret,
    app: Deployment,
}

fn main() {}
