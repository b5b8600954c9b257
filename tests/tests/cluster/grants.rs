//! An operator in a test has exactly the rights of `can(…)`: other requests are refused, the
//! refusal names the grant, and a report names the grants that nothing used.

use std::sync::{Arc, Mutex};

use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{self, ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use serde_json::{Value, json};
use windlass::client::{Prepared, Verb};
use windlass::controller::{Failure, OnFailure};
use windlass::prelude::*;
use windlass::testing::RunningOperator;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

/// A request, and whether the grants below permit it.
struct Probe {
    method: Method,
    path: String,
    body: Value,
    permitted: bool,
}

/// Returns the grants' requests beside their nearest neighbours. No named object exists: a
/// permitted request is answered 404 or the like, any other 403.
fn probes(namespace: &str) -> Vec<Probe> {
    let core = format!("/api/v1/namespaces/{namespace}");
    let apps = format!("/apis/apps/v1/namespaces/{namespace}/deployments/absent");
    let metrics = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}");
    let (yes, no) = (true, false);
    let rows = [
        (Method::GET, format!("{core}/secrets/tls"), yes),
        (Method::GET, format!("{core}/secrets/ca"), yes),
        (Method::GET, format!("{core}/secrets/other"), no),
        (Method::GET, format!("{core}/secrets"), no),
        (Method::DELETE, format!("{core}/secrets/tls"), no),
        (Method::POST, format!("{core}/pods/absent/eviction"), yes),
        (Method::GET, format!("{core}/pods/absent/log"), yes),
        (Method::GET, format!("{core}/pods/absent"), no),
        (Method::DELETE, format!("{core}/pods/absent"), no),
        (Method::DELETE, format!("{core}/pods?labelSelector=app%3Dnone"), yes),
        (Method::POST, format!("{core}/pods"), no),
        (Method::GET, format!("{apps}/scale"), yes),
        (Method::PATCH, format!("{apps}/scale"), yes),
        (Method::PUT, format!("{apps}/scale"), no),
        (Method::PATCH, format!("{apps}/status"), yes),
        (Method::GET, format!("{apps}/status"), no),
        (Method::PATCH, apps.clone(), no),
        (Method::POST, format!("{core}/serviceaccounts/absent/token"), yes),
        (Method::POST, format!("{core}/serviceaccounts"), no),
        (Method::GET, "/metrics".to_owned(), yes),
        (Method::GET, "/metrics/slis".to_owned(), no),
        (Method::GET, "/logs/kube-apiserver.log".to_owned(), no),
        (Method::GET, format!("{metrics}/pods/absent"), yes),
        (Method::GET, format!("{metrics}/pods"), no),
    ];
    let probe = |(method, path, permitted)| Probe { method, path, body: json!({}), permitted };
    rows.into_iter().map(probe).collect()
}

/// Returns access reviews about verbs that have no request of their own.
fn reviews() -> Vec<(Value, bool)> {
    let review = |group: &str, resource: &str, verb: &str, name: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "group": group, "resource": resource, "verb": verb, "name": name,
            } },
        })
    };
    let rbac = "rbac.authorization.k8s.io";
    vec![
        (review(rbac, "clusterroles", "bind", "view"), true),
        (review(rbac, "clusterroles", "bind", "admin"), false),
        (review(rbac, "clusterroles", "escalate", "view"), false),
        (review("", "users", "impersonate", "jane"), true),
        (review("", "users", "impersonate", "john"), false),
        (review("certificates.k8s.io", "signers", "approve", "example.dev/web"), true),
        (review("certificates.k8s.io", "signers", "sign", "example.dev/web"), false),
    ]
}

#[derive(Controller)]
#[controller(for = Gadget, name = "probing", report_failures)]
#[controller(can(get Secret["tls", "ca"], create Pod/eviction, get Pod/log))]
#[controller(can(deletecollection Pod, get patch Deployment/scale, patch Deployment/status))]
#[controller(can(create ServiceAccount/token, bind ClusterRole["view"], impersonate "users"["jane"]))]
#[controller(can(approve "signers.certificates.k8s.io"["example.dev/web"], get "/metrics"))]
#[controller(can(get "pods.metrics.k8s.io"["absent"]))]
struct Probing {
    /// Probes with an unexpected answer.
    wrong: Arc<Mutex<Vec<String>>>,
    done: Arc<Mutex<usize>>,
}

impl Reconciler for Probing {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let namespace = gadget.namespace().unwrap();
        for probe in probes(namespace) {
            let mut request = prepared(probe.method.clone(), &probe.path, &probe.body);
            if probe.method == Method::PATCH {
                let merge = HeaderValue::from_static("application/merge-patch+json");
                request.headers.insert(CONTENT_TYPE, merge);
            }
            let answer = cx.client().send(request).await;
            let refused = answer.as_ref().is_err_and(windlass::Error::is_forbidden);
            if refused == probe.permitted {
                let text = format!("{} {}: {answer:?}", probe.method, probe.path);
                self.wrong.lock().unwrap().push(text);
            }
        }
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        for (review, permitted) in reviews() {
            let answer = cx.client().send(prepared(Method::POST, path, &review)).await?;
            let answer: Value = serde_json::from_slice(&answer.body)?;
            if answer["status"]["allowed"] != json!(permitted) {
                self.wrong.lock().unwrap().push(format!("{review}: {}", answer["status"]));
            }
        }
        *self.done.lock().unwrap() += 1;
        Ok(Action::done())
    }
}

impl OnFailure for Probing {
    async fn failed(&self, failure: &Failure, _: &Context<Self>) -> Result<()> {
        self.wrong.lock().unwrap().push(failure.to_string());
        Ok(())
    }
}

/// Returns a request for that path, with the path's query.
fn prepared(method: Method, path: &str, body: &Value) -> Prepared {
    let verb = match method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Get,
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let has_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
    let mut request = Prepared::new(verb, method, path.to_owned(), format!("probe {path}"));
    if let Some((key, value)) = query.split_once('=') {
        request.push_parameter(key.to_owned(), value.replace("%3D", "="));
    }
    if has_body {
        request.body = body.to_string().into();
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request
}

#[tokio::test]
async fn an_operator_in_a_test_may_do_what_it_asks_for_and_nothing_else() {
    let bench = Bench::start().await;
    let (wrong, done) = (Arc::default(), Arc::default());
    let probing = Probing { wrong: Arc::clone(&wrong), done: Arc::clone(&done) };
    let manager = Manager::new(bench.cluster.client()).controller(probing);
    let running = bench.cluster.spawn(manager);
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench
        .eventually("the probes are through", async || {
            *done.lock().unwrap() > 0 || !wrong.lock().unwrap().is_empty()
        })
        .await;
    let wrong = wrong.lock().unwrap().clone();
    assert!(wrong.is_empty(), "{wrong:#?}");
    running.stop().await;
}

/// Labels of ConfigMaps.
#[derive(windlass::Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
struct MapLabels {
    metadata: ObjectMeta,
}

type Credentials = Secret;

/// A controller that uses a part of its grants, and reads beyond them.
#[derive(Controller)]
#[controller(for = Gadget, name = "sloppy", report_failures)]
#[controller(can(list MapLabels, delete Credentials["z", "a"], update v1::Node))]
#[controller(can(get list Secret, get Pod["web-0"], patch Deployment/scale, get Deployment/scale))]
struct Sloppy {
    told: Arc<Mutex<Vec<String>>>,
    /// Whether the requests beyond the grants are left out.
    decent: bool,
}

impl Reconciler for Sloppy {
    type Object = Gadget;

    async fn reconcile(&self, _: &Gadget, cx: &Context<Self>) -> Result {
        cx.get_opt::<Secret>("tls").await?;
        cx.get_opt::<Pod>("web-0").await?;
        match cx.checked::<Deployment>().scale_to("web", 2).await {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        if !self.decent {
            // Refused for lack of the right, or for the absent account.
            let token = cx.api::<ServiceAccount>().token_request("builder").await;
            assert!(token.is_err());
            cx.client().all::<ClusterRole>().get("view").await?;
        }
        Ok(Action::done())
    }
}

impl OnFailure for Sloppy {
    async fn failed(&self, failure: &Failure, _: &Context<Self>) -> Result<()> {
        self.told.lock().unwrap().push(failure.to_string());
        Ok(())
    }
}

async fn sloppy(bench: &Bench, decent: bool) -> (RunningOperator, Arc<Mutex<Vec<String>>>) {
    let told = Arc::default();
    let controller = Sloppy { told: Arc::clone(&told), decent };
    let manager = Manager::new(bench.cluster.client()).controller(controller);
    let running = bench.cluster.spawn(manager);
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    (running, told)
}

#[tokio::test]
async fn a_refused_request_names_the_grant_as_it_is_written() {
    let bench = Bench::start().await;
    let (running, told) = sloppy(&bench, false).await;
    bench.eventually("the failure is told", async || !told.lock().unwrap().is_empty()).await;
    let text = told.lock().unwrap()[0].clone();
    assert!(text.contains("add `can(get ClusterRole)`"), "{text}");
    assert!(text.contains("`can(get ClusterRole[\"view\"])` for this name"), "{text}");
    assert!(text.contains("to `#[controller(…)]`"), "{text}");
    assert!(text.contains("cannot get resource \"clusterroles\""), "{text}");
    let report = running.grant_report();
    let missing = ["create ServiceAccount/token", "get ClusterRole"];
    assert_eq!(report.missing, missing, "{report}");
    assert!(report.to_string().contains("requests needed can(create ServiceAccount/token, "));
    running.stop_anyway().await;
}

#[tokio::test]
async fn a_report_names_the_grants_that_no_request_used() {
    let bench = Bench::start().await;
    let (running, told) = sloppy(&bench, true).await;
    running.settled().await;
    assert!(told.lock().unwrap().is_empty(), "{told:?}");
    let report = running.grant_report();
    let unused = [
        r#"delete Credentials["z", "a"]"#,
        "get Deployment/scale",
        "list MapLabels",
        "list Secret",
        "update v1::Node",
    ];
    assert_eq!(report.unused, unused, "{report}");
    assert!(report.missing.is_empty(), "{report}");
    assert_eq!(report.to_string(), format!("no request used can({})", unused.join(", ")));
    running.stop().await;
}

#[tokio::test]
async fn an_operator_with_all_rights_is_told_the_grants_that_its_role_would_lack() {
    let bench = Bench::start().await;
    let told = Arc::default();
    let controller = Sloppy { told: Arc::clone(&told), decent: false };
    // The rights of the administrator: nothing is refused.
    let manager = Manager::new(bench.cluster.client())
        .controller_configured(controller, |builder| builder.without_resync());
    let running = bench.cluster.spawn_unrestricted(manager);
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench
        .eventually("the role is read", async || {
            running.grant_report().missing.iter().any(|grant| grant == "get ClusterRole")
        })
        .await;
    running.stop_anyway().await;
}
