use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::controller::{Context, Result};
use windlass::{Controller, Dependents};

#[derive(Dependents)]
#[dependents(for = ConfigMap, by = Maps)]
struct Parts {
    login: Secret,
}

// The graph reads its kinds.
#[derive(Controller)]
#[controller(for = ConfigMap, dependents(Parts), can(list watch Secret))]
struct Maps;

impl DesiredParts for Maps {
    async fn login(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
        Ok(Secret::default())
    }
}

fn main() {}
