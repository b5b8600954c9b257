//! Verdicts on definitions, objects and policies, as kube-apiserver would give them: a JSON
//! document in each line of the input and of the output.
//!
//! - `{"schema": …, "objects": […], "updates": [[new, old], …]}` gives
//!   `{"created": […], "checks": [[…], …], "updates": [[…], …]}`, with the causes of the refusals.
//!   A definition that is refused judges no object.
//! - `{"policies": [{"name": …, "spec": …, "actions": […], "checks": [{"request": …, "object": …,
//!   "old": …, "params": …}, …]}, …]}` gives `{"policies": [{"created": […], "checks": [{"denial":
//!   [code, message], "warnings": […]}, …]}, …]}`.
//!   The user of a request may do all if they are an administrator, and nothing otherwise.
//!
//! `cargo run -p windlass-cel --example judge < definitions.jsonl`;
//! `tests/kube-apiserver/fuzz-cel.py` compares the verdicts with those of the real server.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_cel::admission::{Attributes, Binding, Policy, ValidationAction, check_policy};
use windlass_cel::eval::{
    Authorization, AuthorizationRequest, Authorizer, Decision, ResourceAttributes, UserInfo,
    authorizer_value, request_resource_value,
};
use windlass_cel::rules::{Validator, Violation, check_definition};

fn causes(violations: &[Violation]) -> Value {
    let cause = |violation: &Violation| json!({"reason": violation.reason.name(), "field": violation.path.as_str(), "message": violation.body()});
    violations.iter().map(cause).collect()
}

fn items<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    document[name].as_array().into_iter().flatten()
}

fn text(document: &Value, name: &str) -> String {
    document[name].as_str().unwrap_or_default().to_owned()
}

/// Decides as a new server does: administrators may do all.
#[derive(Debug)]
struct Administrators;

impl Authorizer for Administrators {
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> Authorization {
        let is_allowed = request.user.groups.iter().any(|group| group == "system:masters");
        let decision = if is_allowed { Decision::Allow } else { Decision::NoOpinion };
        Authorization { decision, reason: String::new(), error: None }
    }
}

fn judged_policy(case: &Value) -> Value {
    let (name, spec) = (text(case, "name"), &case["spec"]);
    let created = check_policy(&name, spec);
    if !created.is_empty() {
        return json!({"created": causes(&created), "checks": []});
    }
    let action = |action: &Value| match action.as_str() {
        Some("Warn") => ValidationAction::Warn,
        Some("Audit") => ValidationAction::Audit,
        _ => ValidationAction::Deny,
    };
    let actions: Vec<ValidationAction> = items(case, "actions").map(action).collect();
    let (policy, binding) = (Policy::new(spec), Binding::new(&name, &name).actions(actions));
    let checks: Vec<Value> =
        items(case, "checks").map(|check| judged_request(&policy, &binding, check)).collect();
    json!({"created": [], "checks": checks})
}

fn judged_request(policy: &Policy, binding: &Binding, check: &Value) -> Value {
    let request = &check["request"];
    let (info, kind) = (&request["userInfo"], &request["resource"]);
    let groups = items(info, "groups").filter_map(Value::as_str).map(str::to_owned);
    let user =
        UserInfo { name: text(info, "username"), groups: groups.collect(), ..UserInfo::default() };
    let resource = ResourceAttributes {
        group: text(kind, "group"),
        resource: text(kind, "resource"),
        namespace: text(request, "namespace"),
        name: text(request, "name"),
        ..ResourceAttributes::default()
    };
    let resource = request_resource_value(Arc::new(Administrators), user.clone(), resource);
    let authorizer = authorizer_value(Arc::new(Administrators), user);
    let present = |name: &str| check.get(name).filter(|value| !value.is_null());
    let mut attributes = Attributes::new(request).authorizer(&authorizer, &resource);
    attributes = present("object").into_iter().fold(attributes, Attributes::object);
    attributes = present("old").into_iter().fold(attributes, Attributes::old_object);
    attributes = present("params").into_iter().fold(attributes, Attributes::params);
    let enforcement = binding.enforce(&policy.evaluate(&attributes));
    let denial = enforcement.denial.map(|denial| json!([denial.code, denial.message]));
    json!({"denial": denial, "warnings": enforcement.warnings})
}

fn judged(document: &Value) -> Value {
    if document.get("policies").is_some() {
        let policies: Vec<Value> = items(document, "policies").map(judged_policy).collect();
        return json!({"policies": policies});
    }
    let schema = &document["schema"];
    let created = check_definition(schema);
    let (mut checks, mut updates) = (Vec::new(), Vec::new());
    if created.is_empty() {
        let validator = Validator::new(schema);
        for object in items(document, "objects") {
            checks.push(causes(&validator.validate(object, None).violations));
        }
        for update in items(document, "updates") {
            let report = validator.validate(&update[0], Some(&update[1]));
            updates.push(causes(&report.violations));
        }
    }
    json!({"created": causes(&created), "checks": checks, "updates": updates})
}

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let document: Value = serde_json::from_str(&line?).map_err(io::Error::other)?;
        writeln!(output, "{}", judged(&document))?;
        output.flush()?;
    }
    Ok(())
}
