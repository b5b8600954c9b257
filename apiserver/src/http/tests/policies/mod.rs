mod mutating;

use serde_json::{Value, json};

use crate::http::test_support::*;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns the spec of a policy about a resource with a validation.
fn about(group: &str, resources: &[&str], validation: Value) -> Value {
    json!({"validations": [validation], "matchConstraints": {"resourceRules": [{
        "apiGroups": [group], "apiVersions": ["v1"], "resources": resources, "operations": ["*"]}]}})
}

/// Creates the policy `p` and the binding `b`, with further members of the binding's spec.
async fn bind(client: &mut Client, spec: Value, binding: Value) {
    let policy = client.post(POLICIES, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(policy.code, 201, "{}", policy.text);
    let mut spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (name, value) in binding.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let binding = client.post(BINDINGS, json!({"metadata": {"name": "b"}, "spec": spec})).await;
    assert_eq!(binding.code, 201, "{}", binding.text);
}

/// The text of a refusal by the policy `p`.
fn refused(resource: &str, name: &str, why: &str) -> String {
    format!(
        "{resource} {name:?} is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {why}"
    )
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_policy_refuses_every_write_until_it_is_gone() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("held")).await;
    let validation = json!({"expression": "false", "message": "no", "reason": "Forbidden"});
    bind(&mut client, about("", &["configmaps"], validation), json!({})).await;
    let held = format!("{MAPS}/held");
    let change = json!({"data": {"k": "w"}});
    for (reply, name) in [
        (client.post(MAPS, map("a")).await, "a"),
        (client.post(&format!("{MAPS}?dryRun=All"), map("a")).await, "a"),
        (client.put(&held, map("held")).await, "held"),
        (client.merge(&held, change.clone()).await, "held"),
        (client.delete(&held).await, "held"),
        (client.delete(MAPS).await, "Unknown"),
    ] {
        assert_eq!((reply.code, reply.message()), (403, &*refused("configmaps", name, "no")));
        let causes = &reply.value["details"]["causes"];
        assert_eq!(causes.as_array().map(Vec::len), Some(1));
        assert!(causes[0].get("reason").is_none() && causes[0].get("field").is_none());
    }
    // Validation comes first.
    let reply = client.post(MAPS, map("A")).await;
    assert!(reply.message().starts_with("ConfigMap \"A\" is invalid"), "{}", reply.text);
    assert_eq!(client.delete(&format!("{POLICIES}/p")).await.code, 200);
    assert_eq!(client.merge(&held, change).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_changed_policy_counts_from_the_answer_to_its_change() {
    let (_server, mut client) = start().await;
    let spec = about("", &["configmaps"], json!({"expression": "true"}));
    bind(&mut client, spec, json!({})).await;
    assert_eq!(client.post(MAPS, map("a")).await.code, 201);
    let url = format!("{POLICIES}/p");
    let change = json!({"spec": {"validations": [{"expression": "object.data.k != 'v'"}]}});
    assert_eq!(client.merge(&url, change).await.code, 200);
    let reply = client.post(MAPS, map("b")).await;
    let why = "failed expression: object.data.k != 'v'";
    assert_eq!((reply.code, reply.message()), (422, &*refused("configmaps", "b", why)));
}

#[tokio::test(start_paused = true)]
async fn a_binding_may_warn_instead_of_refusing() {
    let (_server, mut client) = start().await;
    let spec = about("", &["configmaps"], json!({"expression": "false", "message": "hm"}));
    bind(&mut client, spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    let warning =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm\"";
    let made = client.post(MAPS, map("a")).await;
    assert_eq!((made.code, made.warnings()), (201, vec![warning]));
    let url = format!("{MAPS}/a");
    let changed = client.merge(&url, json!({"data": {"k": "w"}})).await;
    assert_eq!((changed.code, changed.warnings()), (200, vec![warning]));
    let deleted = client.delete(&url).await;
    assert_eq!((deleted.code, deleted.warnings()), (200, vec![warning]));
}

#[tokio::test(start_paused = true)]
async fn parameters_are_found_by_name_and_by_selector() {
    let (_server, mut client) = start().await;
    let mut limits = json!({"metadata": {"name": "limits", "labels": {"for": "secrets"}}});
    limits["data"] = json!({"prefix": "x-"});
    client.post(MAPS, limits).await;
    let validation = json!({"expression": "object.metadata.name.startsWith(params.data.prefix)",
        "messageExpression": "'not ' + string(params.data.prefix)"});
    let mut spec = about("", &["secrets"], validation);
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let by_name = json!({"name": "limits", "parameterNotFoundAction": "Deny"});
    bind(&mut client, spec, json!({"paramRef": by_name})).await;
    let missing = "failed to configure binding: no params found for policy binding with `Deny` \
                   parameterNotFoundAction";
    for (reference, expected) in [
        (by_name, "not x-"),
        (json!({"name": "gone", "parameterNotFoundAction": "Deny"}), missing),
        (json!({"name": "gone", "parameterNotFoundAction": "Allow"}), ""),
        (
            json!({"selector": {"matchLabels": {"for": "secrets"}}, "parameterNotFoundAction": "Deny"}),
            "not x-",
        ),
    ] {
        let url = format!("{BINDINGS}/b");
        let mut binding = client.get(&url).await.value;
        binding["spec"]["paramRef"] = reference;
        assert_eq!(client.put(&url, binding).await.code, 200);
        let reply = client.post(&format!("{SECRETS}?dryRun=All"), named("a")).await;
        if expected.is_empty() {
            assert_eq!(reply.code, 201, "{}", reply.text);
        } else {
            assert_eq!(reply.message(), refused("secrets", "a", expected));
        }
        assert_eq!(
            client.post(&format!("{SECRETS}?dryRun=All"), named("x-a")).await.code,
            match expected {
                "" | "not x-" => 201,
                _ => 422,
            }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_of_parameters_refuses_unless_errors_are_ignored() {
    let (_server, mut client) = start().await;
    let mut spec = about("", &["secrets"], json!({"expression": "true"}));
    spec["paramKind"] = json!({"apiVersion": "none.example/v1", "kind": "None"});
    bind(&mut client, spec, json!({})).await;
    let reply = client.post(SECRETS, named("a")).await;
    assert_eq!(
        reply.message(),
        "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure \
         policy: failed to find resource referenced by paramKind: 'none.example/v1, Kind=None'"
    );
    let ignore = json!({"spec": {"failurePolicy": "Ignore"}});
    assert_eq!(client.merge(&format!("{POLICIES}/p"), ignore).await.code, 200);
    assert_eq!(client.post(SECRETS, named("a")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn subresources_are_judged_as_what_they_show() {
    let (_server, mut client) = start().await;
    client.post(DEPLOYMENTS, deployment("d", 1)).await;
    let validation = json!({"expression": "object.spec.replicas < 5", "messageExpression":
        "object.kind + ' of ' + request.kind.group + ', ' + request.subResource"});
    bind(&mut client, about("apps", &["deployments/scale"], validation), json!({})).await;
    let url = format!("{DEPLOYMENTS}/d");
    let replicas = json!({"spec": {"replicas": 7}});
    let reply = client.merge(&format!("{url}/scale"), replicas.clone()).await;
    let expected = refused("deployments.apps", "d", "Scale of autoscaling, scale");
    assert_eq!((reply.code, reply.message()), (422, &*expected));
    assert_eq!(client.merge(&url, replicas).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_judged_as_one_and_not_as_a_deletion() {
    let (_server, mut client) = start().await;
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, pod).await;
    let validation = json!({"expression": "request.operation != 'DELETE' && request.dryRun"});
    bind(&mut client, about("", &["pods", "pods/eviction"], validation), json!({})).await;
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let url = format!("{PODS}/p/eviction");
    assert_eq!(client.post(&url, eviction.clone()).await.code, 422);
    assert_eq!(client.post(&format!("{url}?dryRun=All"), eviction).await.code, 201);
    assert_eq!(client.delete(&format!("{PODS}/p")).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_judged_in_the_version_that_the_policy_names() {
    let (_server, mut client) = start().await;
    let mut definition = widgets();
    let mut older = definition["spec"]["versions"][0].clone();
    older["name"] = json!("v1beta1");
    older["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(older);
    assert_eq!(client.post(CRDS, definition).await.code, 201);
    let validation = json!({"expression": "object.spec.size < 3", "messageExpression":
        "object.apiVersion + ' asked as ' + request.requestKind.version"});
    bind(&mut client, about("g.io", &["widgets"], validation), json!({})).await;
    let mut body = widget("a", json!({"size": 4}));
    body["apiVersion"] = json!("g.io/v1beta1");
    let reply = client.post(&WIDGETS.replace("/v1/", "/v1beta1/"), body).await;
    let expected = refused("widgets.g.io", "a", "g.io/v1 asked as v1beta1");
    assert_eq!((reply.code, reply.message()), (422, &*expected));
}

#[tokio::test(start_paused = true)]
async fn policies_do_not_judge_policies_and_reviews() {
    let (_server, mut client) = start().await;
    let mut spec = about("*", &["*"], json!({"expression": "false"}));
    spec["matchConstraints"]["resourceRules"][0]["apiVersions"] = json!(["*"]);
    bind(&mut client, spec, json!({})).await;
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(client.post(url, review).await.code, 201);
    assert_eq!(client.post("/api/v1/namespaces", named("a")).await.code, 422);
    assert_eq!(client.delete(&format!("{BINDINGS}/b")).await.code, 200);
    assert_eq!(client.post("/api/v1/namespaces", named("a")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn policies_with_broken_expressions_are_refused() {
    let (_server, mut client) = start().await;
    let spec = about("", &["secrets"], json!({"expression": "object.x =="}));
    let reply = client.post(POLICIES, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let field = &reply.value["details"]["causes"][0]["field"];
    assert_eq!((reply.code, field), (422, &json!("spec.validations[0].expression")));
    assert!(reply.message().contains("compilation failed: ERROR: <input>"), "{}", reply.text);
    let mut spec = about("", &["secrets"], json!({"expression": "true"}));
    spec["validations"] = Value::Null;
    spec["reinvocationPolicy"] = json!("Never");
    spec["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]);
    let reply = client.post(MUTATING, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    assert_eq!(
        reply.message(),
        "MutatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: \
         spec.mutations[0].jsonPatch.expression: Invalid value: \"[]\": must evaluate to \
         list(JSONPatch) but got list(dyn)"
    );
}

#[tokio::test(start_paused = true)]
async fn all_evaluations_for_one_request_have_a_budget_together() {
    let (_server, mut client) = start().await;
    for number in 0..41 {
        client.post(MAPS, map(&format!("param{number}"))).await;
    }
    let mut spec = about("", &["secrets"], json!({"expression": "true"}));
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let params = json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}});
    bind(&mut client, spec, params.clone()).await;
    assert_eq!(client.post(SECRETS, named("a")).await.code, 201);
    for number in 0..100 {
        let mut spec = params.clone();
        spec["policyName"] = json!("p");
        spec["validationActions"] = json!(["Deny"]);
        let binding = json!({"metadata": {"name": format!("b{number}")}, "spec": spec});
        assert_eq!(client.post(BINDINGS, binding).await.code, 201);
    }
    let reply = client.post(SECRETS, named("b")).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
    assert!(reply.message().contains("running out of cost budget"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn no_other_service_waits_while_policies_run() {
    use crate::auth::{Attributes, Authorizer, ByConnection, User};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Looks at the lock of addresses when a policy asks for a right.
    struct Looks(std::sync::Weak<crate::core::ServerCore>, AtomicBool);
    impl Authorizer for Looks {
        fn authorize(&self, _user: &User, wanted: &Attributes) -> Result<(), String> {
            if wanted.verb == "look" {
                let core = self.0.upgrade().unwrap();
                self.1.store(core.addresses.try_lock().is_some(), Ordering::Relaxed);
            }
            Ok(())
        }
    }
    let (server, mut client) = start().await;
    let looks =
        std::sync::Arc::new(Looks(std::sync::Arc::downgrade(&server.core), AtomicBool::new(false)));
    server.core.install(std::sync::Arc::new(ByConnection), looks.clone());
    let expression = "authorizer.group('').resource('pods').check('look').allowed()";
    bind(&mut client, about("", &["services"], json!({"expression": expression})), json!({})).await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = client.post(services, service).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert!(looks.1.swap(false, Ordering::Relaxed), "at its creation");
    let change = json!({"spec": {"type": "NodePort"}});
    assert_eq!(client.merge(&format!("{services}/s"), change).await.code, 200);
    assert!(looks.1.load(Ordering::Relaxed), "at its change");
    assert!(server.core.addresses.lock().is_empty(), "no reservation is left");
}
