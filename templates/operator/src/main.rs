//! {{project-name}}: an operator for `{{kind}}`.

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// Keeps a ConfigMap with a message.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "{{group}}", version = "v1", namespaced)]
#[resource(column(spec.message), column(ready), column(age))]
pub struct {{kind}} {
    metadata: ObjectMeta,
    spec: {{kind}}Spec,
    status: Option<{{kind}}Status>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct {{kind}}Spec {
    /// Text in the ConfigMap.
    message: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct {{kind}}Status {
    conditions: Conditions,
}

#[derive(Controller)]
#[controller(for = {{kind}}, owns(ConfigMap))]
struct Keeper;

impl Reconciler for Keeper {
    type Object = {{kind}};

    async fn reconcile(&self, object: &{{kind}}, cx: &Context<Self>) -> Result {
        let child = object!(ConfigMap {
            metadata: { name: object.name() },
            data: { message: &object.spec.message },
        });
        cx.apply_owned(child).await?;
        cx.set_condition(met("Ready", "Applied", "")).await?;
        Ok(Action::requeue_after(Duration::from_secs(300)))
    }
}

fn operator(client: Client) -> Manager {
    Manager::new(client)
        .leader_election("{{project-name}}")
        .install::<{{kind}}>()
        .controller(Keeper)
}

fn main() -> ExitCode {
    let spec = {{kind}}Spec {
        message: "hello".to_owned(),
    };
    windlass::cli::App::new(operator)
        .package(windlass::package!())
        .sample({{kind}}::new("sample", spec))
        .main()
}

#[cfg(test)]
mod tests {
    use windlass::api::Api;
    use windlass::testing::TestCluster;

    use super::*;

    #[tokio::test]
    async fn the_message_reaches_the_config_map_and_follows_changes() {
        let cluster = TestCluster::start().await;
        cluster.install::<{{kind}}>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let objects: Api<{{kind}}> = cluster.client().namespace(cluster.namespace());
        let children: Api<ConfigMap> = cluster.client().namespace(cluster.namespace());

        let spec = {{kind}}Spec {
            message: "one".to_owned(),
        };
        objects.create(&{{kind}}::new("a", spec)).await.unwrap();
        running.settled().await;
        let mut object = objects.get("a").await.unwrap();
        object.spec.message = "two".to_owned();
        objects.replace(&object).await.unwrap();
        running.settled().await;

        let child = children.get("a").await.unwrap();
        assert_eq!(child.data.unwrap()["message"], "two");
        running.stop().await;
    }
}
