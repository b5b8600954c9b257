//! Every form of a grant and every setting compiles, with the calls that they permit.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use windlass::api::Patch;
use windlass::controller::predicates::labels_changed;
use windlass::controller::{ControllerBuilder, Failure, ObjectTask, OnFailure, TaskContext};
use windlass::prelude::*;

const LONGEST: Duration = Duration::from_secs(60);

mod facade {
    pub use windlass as framework;
}

#[derive(Controller)]
#[controller(for = ConfigMap, crate = facade::framework)]
#[controller(can(get Secret["tls", "ca"], create Pod/eviction, get Pod/log, get create Pod/exec))]
#[controller(can(get patch Deployment/scale, patch update Deployment/status))]
#[controller(can(create ServiceAccount/token, deletecollection Pod, get Pod/"metrics"))]
#[controller(can(bind ClusterRole["view"], get "/metrics", get "pods.metrics.k8s.io"))]
#[controller(can(approve "signers.certificates.k8s.io"["example.dev/*"]))]
#[controller(can(use "securitycontextconstraints.security.openshift.io"["privileged"]))]
#[controller(can(get use ClusterRole["admin"]))]
// Names that only some kinds can have.
#[controller(can(get Role["system:Viewer_"], get PodDisruptionBudget["Web_"], get Node["a.b"]))]
pub struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _secret: Secret = cx.get("tls").await?;
        cx.evict("web-0").await?;
        let _log = cx.checked::<Pod>().log("web-0").tail(3).text().await?;
        let deployments = cx.checked::<Deployment>();
        let _scale = deployments.scale("web").await?;
        deployments.scale_to("web", 3).await?;
        let patch = Patch::Merge(serde_json::json!({ "status": {} }));
        let deployment = deployments.patch_status("web", patch).await?;
        deployments.replace_status(&deployment).await?;
        let _token = cx.checked::<ServiceAccount>().token_request("builder").await?;
        cx.checked::<Pod>().delete_collection().labels("app=old").await?;
        Ok(Action::done())
    }
}

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service), owns(Pod, when = labels_changed()))]
#[controller(resync = "never", reconcile_timeout = LONGEST, outcome_condition = "Ready")]
#[controller(retry(at_most = 3, base = "1s", cap = LONGEST, then_every = "1h"), workers = 2)]
#[controller(debounce(quiet = "500ms", most = "5s"), rate_limit(most = 10, within = "1h"))]
#[controller(loop_guard(most = 9, within = "1m", spacing = "2s"), report_every_failure)]
#[controller(timer(every = "1m", name = "probe"), timer(every = "2m", name = "deep", idle = "1s"))]
#[controller(cancel_superseded, track_changes, task_per_object, with = Self::more)]
pub struct Settings<T: Send + Sync + 'static>(T);

impl<T: Send + Sync + 'static> Settings<T> {
    fn more(builder: ControllerBuilder<Self>) -> ControllerBuilder<Self> {
        builder.track_changes_within(1 << 20)
    }
}

impl<T: Send + Sync + 'static> Reconciler for Settings<T> {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _pods = cx.store_of::<Pod>().len();
        Ok(Action::done())
    }
}

impl<T: Send + Sync + 'static> OnFailure for Settings<T> {
    async fn failed(&self, _: &Failure, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl<T: Send + Sync + 'static> ObjectTask for Settings<T> {
    async fn run(&self, _: TaskContext<Self>) -> Result<()> {
        Ok(())
    }
}

pub fn main() {
    let role = |rules: Vec<windlass::rbac::Rule>| -> Vec<String> {
        let text = |rule: &windlass::rbac::Rule| {
            let verbs: Vec<&str> = rule.verbs.iter().copied().collect();
            let names: Vec<&str> = rule.names.iter().map(String::as_str).collect();
            let urls: Vec<&str> = rule.urls.iter().map(String::as_str).collect();
            let (group, resource) = (&rule.group, &rule.resource);
            format!("{} {group}/{resource}{}{names:?}", verbs.join(","), urls.join(","))
        };
        rules.iter().map(text).collect()
    };
    let of_maps = role(Maps::builder().build(Maps).rules());
    for rule in [
        r#"get /secrets["ca", "tls"]"#,
        "create /pods/eviction[]",
        "get /pods/log[]",
        "create,get /pods/exec[]",
        "get,patch apps/deployments/scale[]",
        "patch,update apps/deployments/status[]",
        "create /serviceaccounts/token[]",
        "deletecollection /pods[]",
        "get /pods/metrics[]",
        r#"bind rbac.authorization.k8s.io/clusterroles["view"]"#,
        "get //metrics[]",
        "get metrics.k8s.io/pods[]",
        r#"approve certificates.k8s.io/signers["example.dev/*"]"#,
        r#"use security.openshift.io/securitycontextconstraints["privileged"]"#,
        r#"get,use rbac.authorization.k8s.io/clusterroles["admin"]"#,
        r#"get rbac.authorization.k8s.io/roles["system:Viewer_"]"#,
        r#"get policy/poddisruptionbudgets["Web_"]"#,
        r#"get /nodes["a.b"]"#,
    ] {
        assert!(of_maps.iter().any(|one| one == rule), "{rule} not in {of_maps:#?}");
    }
    // The rest is implied by the kind and by Events.
    assert_eq!(of_maps.len(), 18 + 4, "{of_maps:#?}");
    let grants: Vec<String> =
        Maps::builder().build(Maps).grants().into_iter().map(|(text, _)| text).collect();
    for text in [
        r#"get Secret["tls", "ca"]"#,
        r#"get Pod/"metrics""#,
        "create Pod/eviction",
        "patch Deployment/scale",
        "deletecollection Pod",
        r#"bind ClusterRole["view"]"#,
        r#"get "/metrics""#,
        r#"get "pods.metrics.k8s.io""#,
        r#"approve "signers.certificates.k8s.io"["example.dev/*"]"#,
    ] {
        assert!(grants.iter().any(|one| one == text), "{text} not in {grants:#?}");
    }
    let _ = Settings::<()>::builder().build(Settings(()));
}
