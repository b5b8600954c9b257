//! The roles that the manifests print are enough, and not more than needed.

use serde_json::{Value, json};
use windlass::api::Patch;
use windlass::client::Client;
use windlass::manager::{Manager, ManifestOptions};
use windlass::prelude::*;
use windlass::resource::{DynamicObject, ResourceInfo, Scope};

use crate::bench::Bench;
use crate::gadget::{gadget, operator};

/// The operator as in the manifests: a service account, watching a single namespace.
struct Account {
    name: String,
    client: Client,
}

impl Account {
    /// Creates the account, without any grant.
    fn of(bench: &Bench) -> Self {
        let namespace = bench.cluster.namespace();
        let name = format!("gadgets-{namespace}");
        let user = format!("system:serviceaccount:{namespace}:{name}");
        let group = format!("system:serviceaccounts:{namespace}");
        let groups = ["system:serviceaccounts", group.as_str(), "system:authenticated"];
        let client = bench.cluster.client_as(&user, &groups);
        Self { name, client }
    }

    fn manager(&self, bench: &Bench) -> Manager {
        operator(self.client.clone())
            .name(&self.name)
            .leader_election(&self.name)
            .namespaces([bench.cluster.namespace()])
    }

    /// Grants the roles of the manifests, each document passed through `change` first.
    async fn grant(&self, bench: &Bench, change: impl Fn(&mut DynamicObject)) {
        let options = ManifestOptions::default().namespace(bench.cluster.namespace());
        let text = self.manager(bench).manifests(&options).unwrap();
        let documents: Vec<DynamicObject> = serde_saphyr::from_multiple(&text).unwrap();
        for mut document in documents {
            if !document.api_version.starts_with("rbac.authorization.k8s.io/") {
                continue;
            }
            change(&mut document);
            let info = info_of(&document);
            let api = bench.cluster.client().dynamic(info, document.namespace());
            api.apply(document.name(), &document).force().await.unwrap();
        }
    }
}

fn info_of(object: &DynamicObject) -> ResourceInfo {
    let (group, version) = object.api_version.split_once('/').unwrap();
    let cluster = object.namespace().is_none();
    ResourceInfo {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: object.kind.clone().into(),
        plural: format!("{}s", object.kind.to_lowercase()).replace("ys", "ies").into(),
        scope: if cluster { Scope::Cluster } else { Scope::Namespaced },
    }
}

/// Takes `verbs` on `resource` out of a role.
fn without(document: &mut DynamicObject, resource: &str, verbs: &[&str]) {
    let rules = document.rest.get_mut("rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        if rule["resources"] == json!([resource]) {
            let granted = rule["verbs"].as_array_mut().unwrap();
            granted.retain(|verb| !verbs.contains(&verb.as_str().unwrap()));
        }
    }
}

#[tokio::test]
async fn an_operator_does_all_its_work_with_the_rights_that_its_manifests_print() {
    let bench = Bench::start().await;
    let account = Account::of(&bench);
    account.grant(&bench, |_| ()).await;
    let running = bench.cluster.spawn(account.manager(&bench));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench
        .eventually("the child is there", async || {
            assert!(running.is_running(), "the operator ended");
            bench.data("home").await.is_some()
        })
        .await;
    bench.change("home", json!({ "color": "blue" })).await;
    bench.children.delete("home").await.unwrap();
    running.settled().await;
    assert_eq!(bench.data("home").await.unwrap()["color"], "blue");
    bench.gadgets.delete("home").await.unwrap();
    running.settled().await;
    assert!(bench.gadgets.get_opt("home").await.unwrap().is_none(), "its finalizer is off");
    let painted = bench
        .cluster
        .client()
        .namespace::<k8s_openapi::api::events::v1::Event>(bench.cluster.namespace());
    bench
        .eventually("its events are written", async || {
            !painted.list().fields("reason=Painted").await.unwrap().items.is_empty()
        })
        .await;
    running.stop().await;
}

#[tokio::test]
async fn the_rights_do_not_reach_beyond_the_watched_namespaces() {
    let bench = Bench::start().await;
    let account = Account::of(&bench);
    account.grant(&bench, |_| ()).await;
    let other = bench.cluster.new_namespace().await;
    let own = account.client.namespace::<crate::gadget::Gadget>(bench.cluster.namespace());
    bench.eventually("the role is known", async || own.list().await.is_ok()).await;
    let error = account.client.namespace::<crate::gadget::Gadget>(&other).list().await.unwrap_err();
    assert_eq!(error.kind(), windlass::ErrorKind::Forbidden, "{error}");
    let error = own.delete("home").await.unwrap_err();
    assert!(error.to_string().contains("cannot delete resource \"gadgets\""), "{error}");
}

#[tokio::test]
async fn a_right_to_read_that_is_missing_is_named_by_readiness_and_granting_it_heals() {
    let bench = Bench::start().await;
    let account = Account::of(&bench);
    account.grant(&bench, |role| without(role, "configmaps", &["list", "watch"])).await;
    let running = bench.cluster.spawn(account.manager(&bench));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let mut said = String::new();
    bench
        .eventually("readiness names the right", async || {
            assert!(running.is_running(), "the operator ended");
            let checks = running.readiness().checks;
            let failed = checks.into_iter().find(|check| check.name == "cache configmaps");
            said = failed.filter(|check| !check.ok).map(|check| check.detail).unwrap_or_default();
            said.contains("resource \"configmaps\" in API group")
        })
        .await;
    assert!(said.contains("cannot list") || said.contains("cannot watch"), "{said}");
    assert!(said.contains(bench.cluster.namespace()), "{said}");
    assert_eq!(bench.data("home").await, None);

    account.grant(&bench, |_| ()).await;
    bench.eventually("it heals", async || bench.data("home").await.is_some()).await;
    assert!(running.readiness().is_ready(), "{:?}", running.readiness());
}

#[tokio::test]
async fn a_right_to_write_that_is_missing_keeps_the_object_in_backoff_and_granting_it_heals() {
    let bench = Bench::start().await;
    let account = Account::of(&bench);
    account.grant(&bench, |role| without(role, "configmaps", &["create", "patch"])).await;
    let running = bench.cluster.spawn(account.manager(&bench));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench
        .eventually("the reconcile fails", async || {
            assert!(running.is_running(), "the operator ended");
            running.states()[0].1.backing_off == 1
        })
        .await;
    let configmaps = account
        .client
        .namespace::<k8s_openapi::api::core::v1::ConfigMap>(bench.cluster.namespace());
    let data = json!({ "data": { "a": "1" } });
    let error = configmaps.apply("home", &data).await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("cannot patch resource \"configmaps\""), "{shown}");
    assert!(shown.contains(&account.name), "{shown}");

    account.grant(&bench, |_| ()).await;
    let touch = json!({ "spec": { "note": "touched" } });
    bench.gadgets.patch("home", Patch::Merge(touch)).await.unwrap();
    bench.eventually("it heals", async || bench.data("home").await.is_some()).await;
}
