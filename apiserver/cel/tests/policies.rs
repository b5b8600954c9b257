//! The policies of `tests/corpus`: verdicts and messages of the real kube-apiserver, replayed.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{Cause, Tally, answered, cases, causes, names};
use windlass_cel::admission::{Attributes, Binding, Policy, ValidationAction, check_policy};
use windlass_cel::eval::{
    Authorization, AuthorizationRequest, Authorizer, Decision, ResourceAttributes, UserInfo,
    authorizer_value, request_resource_value,
};

/// Name of a policy and its binding in the recorded messages.
const NAME: &str = "policy";

/// The resource that a case is about.
struct Subject {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespace: Option<&'static str>,
}

const THINGS: Subject =
    Subject { group: "corpus.example", kind: "Things", plural: "things", namespace: None };

const CONFIGMAPS: Subject =
    Subject { group: "", kind: "ConfigMap", plural: "configmaps", namespace: Some("default") };

impl Subject {
    fn of(case: &Value) -> &'static Subject {
        if case["subject"] == "configmaps" { &CONFIGMAPS } else { &THINGS }
    }

    /// An object as the server hands it to admission.
    fn object(&self, content: &Value) -> Value {
        let mut object = content.clone();
        let version =
            if self.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", self.group) };
        object["apiVersion"] = json!(version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({"name": NAME, "uid": "0c1e", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"});
        if let Some(namespace) = self.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object
    }

    fn request(&self, operation: &str) -> Value {
        json!({
            "kind": {"group": self.group, "version": "v1", "kind": self.kind},
            "resource": {"group": self.group, "version": "v1", "resource": self.plural},
            "name": NAME,
            "namespace": self.namespace.unwrap_or_default(),
            "operation": operation,
            "userInfo": {"username": "admin", "uid": "1", "groups": ["system:masters", "system:authenticated"]},
            "dryRun": true,
            "options": {"dryRun": ["All"]},
        })
    }
}

/// Decides as a new server does: administrators may do all, service accounts nothing.
#[derive(Debug)]
struct Administrators;

impl Authorizer for Administrators {
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> Authorization {
        let is_allowed = request.user.groups.iter().any(|group| group == "system:masters");
        let decision = if is_allowed { Decision::Allow } else { Decision::NoOpinion };
        Authorization { decision, reason: String::new(), error: None }
    }
}

/// The spec of a case's policy, with the constraints of the recorder.
fn spec(case: &Value) -> Value {
    let mut spec = case["policy"].clone();
    let subject = Subject::of(case);
    spec["matchConstraints"] = json!({"resourceRules": [{"apiGroups": [subject.group], "apiVersions": ["v1"],
        "resources": [subject.plural], "operations": ["CREATE", "UPDATE", "DELETE"], "resourceNames": [NAME]}]});
    if case.get("params").is_some() {
        spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    }
    spec
}

fn binding(case: &Value) -> Binding {
    let action = |action: &Value| match action.as_str() {
        Some("Warn") => ValidationAction::Warn,
        Some("Audit") => ValidationAction::Audit,
        _ => ValidationAction::Deny,
    };
    let binding = Binding::new(NAME, NAME);
    match case["actions"].as_array() {
        Some(actions) => binding.actions(actions.iter().map(action).collect::<Vec<_>>()),
        None => binding,
    }
}

/// The outcome of a check in the form of a recorded one: a denial with its code, and the warnings.
fn outcome(case: &Value, policy: &Policy, check: &Value) -> Vec<Cause> {
    let subject = Subject::of(case);
    let (object, old) = (check.get("object"), check.get("old"));
    let operation = check["operation"].as_str().unwrap_or("CREATE");
    let operation = if object.is_some() && old.is_some() { "UPDATE" } else { operation };
    let request = subject.request(operation);
    let (object, old) = (object.map(|o| subject.object(o)), old.map(|o| subject.object(o)));
    let params = case.get("params").map(|params| {
        let mut params = params.clone();
        params["metadata"] = json!({"name": "param-policy", "namespace": "default"});
        params
    });
    let namespace = json!({"metadata": {"name": "default", "labels": {"kubernetes.io/metadata.name": "default"}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    let mut attributes = Attributes::new(&request);
    attributes = object.iter().fold(attributes, |all, object| all.object(object));
    attributes = old.iter().fold(attributes, |all, old| all.old_object(old));
    attributes = params.iter().fold(attributes, |all, params| all.params(params));
    let user = UserInfo {
        name: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let resource = ResourceAttributes {
        group: subject.group.to_owned(),
        resource: subject.plural.to_owned(),
        namespace: subject.namespace.unwrap_or_default().to_owned(),
        name: NAME.to_owned(),
        ..ResourceAttributes::default()
    };
    let resource = request_resource_value(Arc::new(Administrators), user.clone(), resource);
    let authorizer = authorizer_value(Arc::new(Administrators), user);
    attributes = attributes.authorizer(&authorizer, &resource);
    if subject.namespace.is_some() {
        attributes = attributes.namespace(&namespace);
    }
    let enforcement = binding(case).enforce(&policy.evaluate(&attributes));
    let denial =
        enforcement.denial.map(|denial| (denial.code.to_string(), String::new(), denial.message));
    let warning = |text| ("warning".to_owned(), String::new(), format!("299 - \"{text}\""));
    denial.into_iter().chain(enforcement.warnings.into_iter().map(warning)).collect()
}

/// A recorded outcome in that form.
fn expected(recorded: &Value) -> Vec<Cause> {
    let code = recorded["code"].as_u64().unwrap_or(422).to_string();
    let denials = causes(recorded).into_iter().map(|(_, field, text)| (code.clone(), field, text));
    let warnings = recorded["warnings"].as_array().into_iter().flatten();
    let warning = |text: &Value| {
        ("warning".to_owned(), String::new(), text.as_str().unwrap_or_default().to_owned())
    };
    denials.chain(warnings.map(warning)).collect()
}

/// A cause with the name of the recorded policy, which has the number of the case, as that of this
/// test.
fn renamed((reason, field, message): Cause) -> Cause {
    let Some((before, after)) = message.split_once("\"policy-") else {
        return (reason, field, message);
    };
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    (reason, field, format!("{before}\"{NAME}{after}"))
}

fn replay(case: &Value, recorded: &Value, tally: &mut Tally) {
    let name = case["name"].as_str().expect("a name");
    let spec = spec(case);
    let created: Vec<Cause> = causes(&recorded["created"]).into_iter().map(renamed).collect();
    let found = answered("", &check_policy(NAME, &spec));
    tally.compare(name, &created, &found);
    if !created.is_empty() || !found.is_empty() {
        return;
    }
    let policy = Policy::new(&spec);
    let recorded = recorded["checks"].as_array().into_iter().flatten();
    for (check, recorded) in case["checks"].as_array().into_iter().flatten().zip(recorded) {
        tally.compare(name, &expected(recorded), &outcome(case, &policy, check));
    }
}

#[test]
fn policies_are_judged_as_kube_apiserver_judges_them() {
    let cases = cases("policy");
    let names = names(&cases);
    let mut tally = Tally::default();
    for (case, recorded) in &cases {
        replay(case, recorded, &mut tally);
    }
    let compared = tally.compared;
    tally.finish(&names);
    assert!(compared >= 790, "the corpus is there");
}
