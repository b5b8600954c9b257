use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use windlass::Controller;
use windlass::api::Patch;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service), can(get Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        let _secret: Secret = cx.get("a").await?;
        let _secrets: Vec<Secret> = cx.list(&windlass::resource::Selector::everything()).await?;
        cx.apply_owned(Deployment::default()).await?;
        cx.create(map).await?;
        cx.patch::<Pod>("a", Patch::Merge(serde_json::Value::Null)).await?;
        cx.delete::<Pod>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
