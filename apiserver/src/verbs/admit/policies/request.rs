//! The request in the view of expressions, in the form of an `AdmissionReview`.

use serde_json::{Map, Value, json};

use super::Operation;
use crate::kinds::Kind;
use crate::policies::PolicyRequest;
use crate::verbs::VerbCall;
use crate::verbs::options::{DeleteOptions, Propagation};

/// Returns group, version and kind of the objects at a subresource, if they are not the resource's
/// own: `Scale`, `Eviction`.
pub(in crate::verbs::admit) fn own_type(call: &VerbCall) -> Option<(&str, &str, &str)> {
    let sub = call.kind.subresource(&call.subresource)?;
    let served = &call.kind.served;
    if sub.kind.is_empty() || sub.kind == served.kind {
        return None;
    }
    let group = if sub.version.is_empty() { &served.group } else { &sub.group };
    let version = if sub.version.is_empty() { &served.version } else { &sub.version };
    Some((group, version, &sub.kind))
}

/// Returns `request`, for a policy that wants the objects in the version of `kind`.
pub(in crate::verbs::admit) fn request(
    call: &VerbCall,
    subject: &PolicyRequest<'_>,
    operation: Operation<'_>,
    kind: &Kind,
) -> Value {
    let user = &call.user;
    json!({
        "kind": type_of(call, kind), "resource": resource_of(kind),
        "subResource": call.subresource,
        "requestKind": type_of(call, &call.kind), "requestResource": resource_of(&call.kind),
        "requestSubResource": call.subresource,
        "name": subject.name, "namespace": subject.namespace, "operation": subject.operation,
        "userInfo": {
            "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
        },
        "dryRun": call.options.dry_run,
        "options": options(call, operation),
    })
}

/// Returns the type of the objects of a request, in the version of `kind`.
fn type_of(call: &VerbCall, kind: &Kind) -> Value {
    let served = &kind.served;
    let whole = (served.group.as_str(), served.version.as_str(), served.kind.as_str());
    let (group, version, kind) = own_type(call).unwrap_or(whole);
    json!({"group": group, "version": version, "kind": kind})
}

fn resource_of(kind: &Kind) -> Value {
    let served = &kind.served;
    json!({"group": served.group, "version": served.version, "resource": served.plural})
}

/// Returns the options of the request, with the fields that were sent.
fn options(call: &VerbCall, operation: Operation<'_>) -> Value {
    let mut out = match operation {
        Operation::Create(_) => write_options(call, "CreateOptions"),
        Operation::Update(..) => write_options(call, "UpdateOptions"),
        Operation::Delete(_, options) => delete_options(options),
        Operation::Connect(_) => return Value::Null,
    };
    out.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
    if call.options.dry_run {
        out.insert("dryRun".to_owned(), json!(["All"]));
    }
    Value::Object(out)
}

fn write_options(call: &VerbCall, kind: &str) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("kind".to_owned(), json!(kind));
    let sent = [
        ("fieldManager", &call.options.sent_manager),
        ("fieldValidation", &call.options.sent_validation),
    ];
    for (field, text) in sent {
        if !text.is_empty() {
            out.insert(field.to_owned(), json!(text));
        }
    }
    out
}

fn delete_options(options: &DeleteOptions) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("kind".to_owned(), json!("DeleteOptions"));
    if let Some(seconds) = options.grace {
        out.insert("gracePeriodSeconds".to_owned(), json!(seconds));
    }
    let policy = options.propagation.map(|policy| match policy {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    });
    if let Some(policy) = policy {
        out.insert("propagationPolicy".to_owned(), json!(policy));
    }
    let mut preconditions = Map::new();
    for (field, value) in [("uid", &options.uid), ("resourceVersion", &options.version)] {
        if let Some(value) = value {
            preconditions.insert(field.to_owned(), json!(value));
        }
    }
    if !preconditions.is_empty() {
        out.insert("preconditions".to_owned(), Value::Object(preconditions));
    }
    out
}
