mod parts {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use windlass::Dependents;
    use windlass::prelude::*;

    #[derive(Dependents)]
    #[dependents(by = super::Maps)]
    pub struct MapParts {
        config: Secret,
    }

    impl DesiredMapParts for super::Maps {
        async fn config(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
            Ok(Secret::default())
        }
    }
}

use k8s_openapi::api::core::v1::ConfigMap;
use parts::MapParts as Parts;
use windlass::Dependents;
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, dependents(Parts))]
pub struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        Parts::apply(self, map, cx).await?.action()
    }
}

fn main() {}
