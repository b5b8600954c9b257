use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Dependents;
use windlass::external::{CreateError, External, ExternalObject, Externals, ObservedResource};
use windlass::prelude::*;

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Children {
    #[dependent(external, scope = cluster)]
    database: Databases,
}

#[derive(Controller)]
#[controller(for = ConfigMap, dependents(Children))]
struct Maps {
    databases: Externals<Databases>,
}

impl DesiredChildren for Maps {
    fn database(&self) -> &Externals<Databases> {
        &self.databases
    }
}

struct Databases;

impl External for Databases {
    type Object = ConfigMap;
    type Handle = ();
    const FINALIZER: &'static str = "example.dev/database";

    async fn observe(&self, _: &ExternalObject<'_, ConfigMap>, _: &str) -> Result<ObservedResource<()>> {
        Ok(ObservedResource::Missing)
    }

    async fn create(&self, _: &ExternalObject<'_, ConfigMap>, _: &str) -> Result<String, CreateError> {
        Ok("d-1".to_owned())
    }

    async fn update(&self, _: &ExternalObject<'_, ConfigMap>, _: &str, _: &()) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, _: &ExternalObject<'_, ConfigMap>, _: &str, _: &()) -> Result<()> {
        Ok(())
    }
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        Children::apply(self, map, cx).await?.action()
    }
}

fn main() {}
