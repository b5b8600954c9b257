//! Rights of operators in tests: the printed Role of each, and the report of their use.
//!
//! An operator that a cluster spawns acts as a separate service account, to which exactly the roles
//! of the manifests are bound. A listener of the operator's client records every request that the
//! API server answered, on the embedded and on the real server alike.

// DESIGN.md, 137: `TestCluster` runs operators under their printed Role

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use windlass_apiserver::ApiServer;
use windlass_client::client::{
    Client, ClientConfig, ObservedRequest, Prepared, RequestObserver, Verb,
};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::Rule;
use windlass_runtime::manager::{Manager, ManifestOptions};

const RBAC: &str = "rbac.authorization.k8s.io";
/// Time after which a real API server certainly evaluates new roles.
const EVALUATED: Duration = Duration::from_secs(10);
/// Time between two looks at that.
const PAUSE: Duration = Duration::from_millis(20);
/// Most distinct requests in an operator's record; of further requests only those that differ by
/// more than the name of the object.
const KEPT: usize = 4096;
/// Most requests in a record altogether.
const KEPT_AT_ALL: usize = 2 * KEPT;

/// Use of an operator's grants in a test, from
/// [`RunningOperator::grant_report`](super::RunningOperator::grant_report).
///
/// Only grants of `can(…)` are reported as unused: those of owned and watched kinds belong
/// together. A test uses only a part of an operator; [`and`](Self::and) combines the reports of
/// several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantReport {
    /// Grants that no request used, in the form of `can(…)`: `get Secret["tls"]`. A verb each.
    pub unused: Vec<String>,
    /// Grants that a request needed and the operator does not have, as `can(…)` would have them.
    pub missing: Vec<String>,
}

impl GrantReport {
    /// Whether every grant was used and none was missing.
    pub fn is_tight(&self) -> bool {
        self.unused.is_empty() && self.missing.is_empty()
    }

    /// Combines the reports of two tests: a grant is unused if neither test used it, and missing if
    /// either test missed it.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.unused.retain(|grant| other.unused.contains(grant));
        self.missing.extend(other.missing.iter().cloned());
        self.missing.sort();
        self.missing.dedup();
        self
    }
}

impl fmt::Display for GrantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_tight() {
            return f.write_str("every grant was used, and none was missing");
        }
        let can = |grants: &[String]| format!("can({})", grants.join(", "));
        if !self.unused.is_empty() {
            write!(f, "no request used {}", can(&self.unused))?;
        }
        if !self.missing.is_empty() {
            let beside = if self.unused.is_empty() { "" } else { "; " };
            write!(f, "{beside}requests needed {} of `#[controller(…)]`", can(&self.missing))?;
        }
        Ok(())
    }
}

/// A request in the terms of RBAC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UsedRight {
    verb: String,
    group: String,
    /// Plural, maybe with a subresource; empty for a path that is no resource.
    resource: String,
    name: String,
    /// The path, for a request without a resource.
    url: String,
}

/// Listener that records the requests of an operator.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Requests, each with the target of the grant; true if RBAC refused the request.
    requests: Mutex<BTreeMap<UsedRight, (String, bool)>>,
}

impl RequestObserver for Record {
    fn answered(&self, request: ObservedRequest<'_>) {
        let mut used = UsedRight::of(&request);
        let target = request.kind.map_or_else(|| used.target(), ToOwned::to_owned);
        if let Some(verb) = request.refused {
            used.verb = verb.to_owned();
        } else if request.is_apply {
            // It is not visible whether the apply created, so the apply counts as both.
            let created = UsedRight { verb: "create".to_owned(), ..used.clone() };
            self.keep(created, target.clone(), false);
        }
        self.keep(used, target, request.refused.is_some());
    }
}

impl Record {
    /// Keeps a request, if among the first or different from those by more than the name.
    fn keep(&self, used: UsedRight, target: String, refused: bool) {
        let mut requests = self.requests.lock();
        if let Some(entry) = requests.get_mut(&used) {
            entry.1 |= refused;
            return;
        }
        let is_alike = |(before, (_, was_refused)): (&UsedRight, &(String, bool))| {
            *was_refused == refused
                && (&before.verb, &before.group, &before.resource, &before.url)
                    == (&used.verb, &used.group, &used.resource, &used.url)
        };
        let count = requests.len();
        if count < KEPT || count < KEPT_AT_ALL && !requests.iter().any(is_alike) {
            requests.insert(used, (target, refused));
        }
    }

    /// Compares the recorded requests with the grants of `can(…)`, and with `allowed`, the rules of
    /// the printed roles.
    pub(super) fn report(&self, grants: &[(String, Rule)], allowed: &[AllowedRule]) -> GrantReport {
        let requests = self.requests.lock();
        let is_used = |rule: &Rule| {
            let rule = AllowedRule::of(rule);
            requests.iter().any(|(used, (_, refused))| !refused && rule.permits(used))
        };
        let unused = grants.iter().filter(|(_, rule)| !is_used(rule));
        let is_missing = |used: &UsedRight, refused: bool| {
            // Every client may read the paths of discovery.
            refused || used.url.is_empty() && !allowed.iter().any(|rule| rule.permits(used))
        };
        let missing = requests.iter().filter(|(used, (_, refused))| {
            // The `create` of an apply is a guess.
            let is_guess = used.verb == "create" && !refused && !used.name.is_empty();
            !is_guess && is_missing(used, *refused)
        });
        let mut missing: Vec<String> =
            missing.map(|(used, (target, _))| format!("{} {target}", used.verb)).collect();
        missing.sort();
        missing.dedup();
        let mut unused: Vec<String> = unused.map(|(text, _)| text.clone()).collect();
        unused.sort();
        unused.dedup();
        GrantReport { unused, missing }
    }
}

impl UsedRight {
    /// Reads verb and target of a request.
    fn of(request: &ObservedRequest<'_>) -> Self {
        let url = |url: &str| Self {
            verb: request.method.to_ascii_lowercase(),
            group: String::new(),
            resource: String::new(),
            name: String::new(),
            url: url.to_owned(),
        };
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return url(request.path),
        };
        let rest = match rest {
            // A namespace itself, or a subresource of a namespace.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => rest,
            ["namespaces", _, rest @ ..] => rest,
            rest => rest,
        };
        let (plural, name, sub) = match rest {
            [] => return url(request.path),
            [plural] => (plural, "", None),
            [plural, name] => (plural, *name, None),
            [plural, name, sub, ..] => (plural, *name, Some(sub)),
        };
        let resource = sub.map_or_else(|| (*plural).to_owned(), |sub| format!("{plural}/{sub}"));
        let name = if name.is_empty() && matches!(request.verb, "list" | "watch") {
            selected_name(request.field_selector.unwrap_or_default()).to_owned()
        } else {
            percent_decode_str(name).decode_utf8_lossy().into_owned()
        };
        Self {
            verb: request.verb.to_owned(),
            group: group.to_owned(),
            resource,
            name,
            url: String::new(),
        }
    }

    /// Returns the target in the form of `can(…)`, for a resource without a Rust type.
    fn target(&self) -> String {
        if !self.url.is_empty() {
            return format!("{:?}", self.url);
        }
        let (plural, sub) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let group = if self.group.is_empty() { "" } else { "." };
        let slash = if sub.is_empty() { "" } else { "/" };
        format!("\"{plural}{group}{}{slash}{sub}\"", self.group)
    }
}

/// Returns the name that a field selector demands, or the empty text. API servers authorize a list
/// or a watch of a single name as a request for that name (`RequestInfo` of upstream's
/// `apiserver`).
fn selected_name(selector: &str) -> &str {
    let mut terms = selector.split(',').filter_map(|term| term.strip_prefix("metadata.name="));
    terms.next().map_or("", |name| name.trim_start_matches('='))
}

/// A rule of a printed role.
#[derive(Clone, Debug)]
pub(super) struct AllowedRule {
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    urls: Vec<String>,
    verbs: Vec<String>,
}

impl AllowedRule {
    /// Reads the rules of a role.
    fn of_role(role: &Value) -> Vec<Self> {
        let texts = |rule: &Value, key: &str| -> Vec<String> {
            let list = rule[key].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        let rules = role["rules"].as_array().into_iter().flatten();
        let rule = |rule: &Value| Self {
            groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
            names: texts(rule, "resourceNames"),
            urls: texts(rule, "nonResourceURLs"),
            verbs: texts(rule, "verbs"),
        };
        rules.map(rule).collect()
    }

    /// Copies a rule of a controller.
    fn of(rule: &Rule) -> Self {
        Self {
            groups: vec![rule.group.clone()],
            resources: vec![rule.resource.clone()],
            names: rule.names.iter().cloned().collect(),
            urls: rule.urls.iter().cloned().collect(),
            verbs: rule.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        }
    }

    /// Whether the rule permits the request, as RBAC decides.
    fn permits(&self, used: &UsedRight) -> bool {
        if !self.verbs.contains(&used.verb) {
            return false;
        }
        if !used.url.is_empty() {
            let is_match = |url: &String| match url.strip_suffix('*') {
                Some(start) => used.url.starts_with(start),
                None => *url == used.url,
            };
            return self.urls.iter().any(is_match);
        }
        self.groups.contains(&used.group)
            && self.resources.contains(&used.resource)
            && (self.names.is_empty() || self.names.contains(&used.name))
    }
}

/// An operator's account in a test cluster, and the printed rights.
pub(super) struct Account {
    /// Name of the user, in the form of service accounts.
    pub(super) user: String,
    pub(super) groups: Vec<String>,
    /// Roles and bindings; the bindings name the user.
    objects: Vec<Value>,
}

impl Account {
    /// Returns the account of `manager` in `namespace`; `number` distinguishes the operators of a
    /// cluster.
    ///
    /// # Errors
    /// When the manager's manifests cannot be printed.
    pub(super) fn of(manager: &Manager, namespace: &str, number: usize) -> Result<Self, Error> {
        let options = ManifestOptions::default().namespace(namespace);
        let mut objects = manager.roles(&options)?;
        // Roles of the whole cluster are shared by all tests on a real server.
        let suffix =
            if number == 0 { namespace.to_owned() } else { format!("{namespace}-{number}") };
        let account = format!("{}-{number}", manager.display_name());
        for object in &mut objects {
            for at in ["/metadata/name", "/roleRef/name"] {
                if let Some(Value::String(name)) = object.pointer_mut(at) {
                    *name = format!("{name}-{suffix}");
                }
            }
            if let Some(subject) = object.pointer_mut("/subjects/0") {
                subject["name"] = json!(account);
            }
        }
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        let user = format!("system:serviceaccount:{namespace}:{account}");
        Ok(Self { user, groups: groups.into(), objects })
    }

    /// Returns the rules of all roles.
    pub(super) fn rules(&self) -> Vec<AllowedRule> {
        self.objects.iter().flat_map(AllowedRule::of_role).collect()
    }

    /// Stores roles and bindings in the embedded server, without a request.
    ///
    /// # Errors
    /// When the server refuses an object.
    pub(super) fn store(&self, server: &ApiServer) -> Result<(), Error> {
        for object in &self.objects {
            let (plural, namespace) = place(object);
            let stored = server.create_object(RBAC, plural, namespace, object.clone());
            stored.map_err(|refused| {
                let text = format!("cannot store {} for this test: {refused:?}", object["kind"]);
                Error::new(ErrorKind::Config, text)
            })?;
        }
        Ok(())
    }

    /// Creates roles and bindings on a real server, and waits until the server evaluates them.
    /// Blocks the thread: operators are spawned by a function that is not async.
    ///
    /// # Errors
    /// Those of the requests; [`ErrorKind::Timeout`] when the server does not evaluate them.
    pub(super) fn create(&self, config: ClientConfig) -> Result<(), Error> {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| {
                Error::new(ErrorKind::Other, "cannot start a runtime for roles").because(error)
            })?;
            // Connections belong to a runtime, so the thread has a separate client.
            runtime.block_on(async { self.create_by(&Client::new(config)?).await })
        };
        // A separate thread: a runtime cannot block inside of another runtime.
        let done = std::thread::scope(|scope| scope.spawn(work).join());
        done.unwrap_or_else(|_| Err(Error::new(ErrorKind::Other, "creating roles panicked")))
    }

    async fn create_by(&self, admin: &Client) -> Result<(), Error> {
        for object in &self.objects {
            let (plural, namespace) = place(object);
            let inside = match namespace {
                "" => String::new(),
                namespace => format!("/namespaces/{namespace}"),
            };
            post(admin, format!("/apis/{RBAC}/v1{inside}/{plural}"), object).await?;
        }
        let clock = &admin.environment().clock;
        let wait = async {
            for review in self.reviews() {
                let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
                while !post(admin, path.to_owned(), &review).await?["status"]["allowed"]
                    .as_bool()
                    .unwrap_or(false)
                {
                    clock.sleep(PAUSE).await;
                }
            }
            Ok(())
        };
        clock.timeout(EVALUATED, wait).await.unwrap_or_else(|| {
            let text = format!("the API server does not evaluate the roles of {}", self.user);
            Err(Error::new(ErrorKind::Timeout, text))
        })
    }

    /// Returns an access review for each role, about the role's first rule for a resource.
    fn reviews(&self) -> Vec<Value> {
        let reviews = self.objects.iter().filter_map(|object| {
            let rule = AllowedRule::of_role(object).into_iter().find(|rule| rule.urls.is_empty())?;
            let (resource, sub) = rule.resources[0].split_once('/').unwrap_or((&rule.resources[0], ""));
            let mut attributes = json!({
                "group": rule.groups[0], "resource": resource, "subresource": sub, "verb": rule.verbs[0],
                "namespace": place(object).1,
            });
            if let Some(name) = rule.names.first() {
                attributes["name"] = json!(name);
            }
            let spec =
                json!({ "user": self.user, "groups": self.groups, "resourceAttributes": attributes });
            Some(json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
            }))
        });
        reviews.collect()
    }
}

/// Returns plural and namespace of a role or binding.
fn place(object: &Value) -> (&'static str, &str) {
    let plural = match object["kind"].as_str().unwrap_or_default() {
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "Role" => "roles",
        _ => "rolebindings",
    };
    (plural, object["metadata"]["namespace"].as_str().unwrap_or_default())
}

/// Posts an object and returns the answer.
async fn post(admin: &Client, path: String, object: &Value) -> Result<Value, Error> {
    let what = format!("create {} for a test", object["kind"].as_str().unwrap_or("an object"));
    let mut request = Prepared::new(Verb::Create, Method::POST, path, what);
    request.body = object.to_string().into();
    request
        .headers
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    let answer = admin.send(request).await?;
    serde_json::from_slice(&answer.body).map_err(|error| {
        Error::new(ErrorKind::Decode, "cannot read the answer to a role").because(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(verb: &'static str, path: &'a str) -> ObservedRequest<'a> {
        ObservedRequest {
            verb,
            method: "GET",
            path,
            field_selector: None,
            kind: None,
            is_apply: false,
            refused: None,
            body: &[],
            failed: None,
        }
    }

    #[test]
    fn a_watch_of_a_single_name_is_a_request_for_that_name() {
        let name = |verb, selector| {
            let path = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";
            let request = ObservedRequest { field_selector: Some(selector), ..request(verb, path) };
            UsedRight::of(&request).name
        };
        assert_eq!(name("watch", "metadata.name=op"), "op");
        assert_eq!(name("list", "metadata.namespace=shop,metadata.name==op"), "op");
        assert_eq!(name("watch", "metadata.name!=op"), "");
        assert_eq!(name("deletecollection", "metadata.name=op"), "");
    }

    #[test]
    fn a_path_is_read_as_the_api_server_reads_it() {
        let cases = [
            ("/api/v1/pods", "\"pods\"", ""),
            ("/api/v1/namespaces/shop/pods/web-0", "\"pods\"", "web-0"),
            ("/api/v1/namespaces/shop/pods/web-0/log", "\"pods/log\"", "web-0"),
            ("/api/v1/namespaces/shop", "\"namespaces\"", "shop"),
            ("/api/v1/namespaces/shop/status", "\"namespaces/status\"", "shop"),
            (
                "/apis/apps/v1/namespaces/shop/deployments/web/scale",
                "\"deployments.apps/scale\"",
                "web",
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%20b",
                "\"clusterroles.rbac.authorization.k8s.io\"",
                "a b",
            ),
            ("/metrics", "\"/metrics\"", ""),
            ("/apis/apps/v1", "\"/apis/apps/v1\"", ""),
        ];
        for (path, target, name) in cases {
            let used = UsedRight::of(&request("get", path));
            assert_eq!((used.target().as_str(), used.name.as_str()), (target, name), "{path}");
        }
    }

    #[test]
    fn a_request_that_comes_after_thousands_of_others_is_reported() {
        let record = Record::default();
        let path = |plural: &str, at: usize| format!("/api/v1/namespaces/a/{plural}/n{at}");
        for at in 0..2 * KEPT_AT_ALL {
            let apply = path("configmaps", at);
            let apply = ObservedRequest { is_apply: true, ..request("patch", &apply) };
            record.answered(apply);
        }
        assert_eq!(record.requests.lock().len(), KEPT, "the record is bounded");
        record.answered(request("get", &path("secrets", 1)));
        let refused = path("configmaps", 1);
        record.answered(ObservedRequest { refused: Some("delete"), ..request("delete", &refused) });
        let rule =
            |verbs: &[&'static str]| AllowedRule::of(&Rule::of_resource("configmaps", verbs));
        let report = record.report(&[], &[rule(&["create", "patch"])]);
        assert_eq!(report.missing, ["delete \"configmaps\"", "get \"secrets\""]);
    }

    #[test]
    fn reports_of_two_tests_leave_what_neither_used() {
        let one =
            GrantReport { unused: vec!["get Pod".into(), "list Pod".into()], missing: vec![] };
        let other =
            GrantReport { unused: vec!["get Pod".into()], missing: vec!["get Node".into()] };
        let both = one.and(&other);
        assert_eq!(
            both.to_string(),
            "no request used can(get Pod); requests needed can(get Node) of `#[controller(…)]`"
        );
        assert!(!both.is_tight() && GrantReport::default().is_tight());
    }
}
