//! The website operator's types and controller, as the documentation shows them.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::controller::predicates::{field_changed, generation_changed, labels_changed};
use windlass::controller::{Action, Context, Finalize, Reconciler, Result};
use windlass::rbac::{Can, Owns, verbs};
use windlass::resource::ObjectKey;
use windlass::store::{Cached, Index};
use windlass::{Controller, CustomResource};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
#[resource(column(name = "Host", path = ".spec.host"))]
#[index(by_host = spec.host, by_certificate = spec.certificate)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: WebsiteSpec,
    pub status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteSpec {
    /// Host name that the site answers to.
    pub host: String,
    #[schemars(range(min = 1, max = 50))]
    pub replicas: i32,
    /// Secret that holds the certificate.
    pub certificate: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteStatus {
    pub replicas: i32,
}

#[derive(Controller)]
#[controller(for = Website, owns(Deployment, Service), finalizer = "example.dev/dns", can(get Pod))]
#[controller(watches(Secret, index = Website::BY_CERTIFICATE))]
#[controller(when = generation_changed().or(labels_changed()))]
#[controller(watches(ConfigMap, by = sites_of, when = field_changed(&["data", "host"])), name = "sites", workers = 8, can(list Pod))]
struct Sites {
    every: Duration,
}

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, _: &Website, _: &Context<Self>) -> Result<Action> {
        Ok(Action::requeue_after(self.every))
    }
}

impl Finalize for Sites {
    async fn cleanup(&self, _: &Website, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn sites_of(_: &Cached<ConfigMap>) -> Vec<ObjectKey> {
    Vec::new()
}

fn granted<C>()
where
    C: Owns<Deployment> + Owns<Service> + Can<verbs::Get, Pod> + Can<verbs::List, Pod>,
    C: Can<verbs::Watch, Deployment>
        + Can<verbs::Get, Secret>
        + Can<verbs::Get, ConfigMap>
        + Can<verbs::List, Website>,
{
}

pub fn main() {
    granted::<Sites>();
    let index: Index<Website, String> = Website::BY_HOST;
    assert_eq!(index.name(), "by_host");
    let builder = <Sites as windlass::controller::Controller>::builder();
    let controller = builder.build(Sites { every: Duration::from_secs(300) });
    assert_eq!(controller.name(), "sites");
    let rules = controller.rules();
    let allows = |group: &str, resource: &str, verb: &str| {
        rules.iter().any(|rule| {
            rule.group == group && rule.resource == resource && rule.verbs.contains(verb)
        })
    };
    assert!(allows("", "pods", "list") && !allows("", "pods", "delete"));
    assert!(allows("apps", "deployments", "patch") && allows("", "secrets", "watch"));
    assert!(allows("example.dev", "websites", "patch"));
}
