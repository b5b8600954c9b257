//! Reviews: questions about users and rights, sent by POST and never stored.
//!
//! The answers come from the installed authenticator and authorizer, so they agree with the
//! treatment of requests.

use serde_json::{Map, Value, json};

use super::decode::Body;
use super::{Call, ObjectResponse};
use crate::auth::{Attributes, User};
use crate::core::Core;
use crate::served::Cause;
use crate::status::{About, ApiError, invalid_value};

/// Answers a review of the call's kind.
pub(crate) fn review(core: &Core, call: &Call, body: Body) -> Result<ObjectResponse, ApiError> {
    let mut object = body.value;
    // Answered like an empty review: its kind reports the missing fields.
    if !object.is_object() {
        object = json!({});
    }
    object["apiVersion"] = json!(call.kind.served.api_version());
    object["kind"] = json!(call.kind.served.kind);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let status = match call.kind.served.kind.as_str() {
        "TokenReview" => token(core, &object["spec"])?,
        "SelfSubjectReview" => {
            object["metadata"]["creationTimestamp"] = json!(core.clock.rfc3339());
            json!({"userInfo": info(&call.user)})
        }
        "SelfSubjectAccessReview" => access(core, &call.user, &object["spec"])?,
        "SubjectAccessReview" => access(core, &subject(&object["spec"])?, &object["spec"])?,
        "LocalSubjectAccessReview" => local(core, call, &object["spec"])?,
        "SelfSubjectRulesReview" => {
            let answer = rules(core, &call.user, &object["spec"])?;
            // The answer does not repeat the question, as upstream.
            object["spec"] = json!({});
            answer
        }
        _ => return Err(ApiError::method()),
    };
    object["status"] = status;
    Ok(ObjectResponse::created(object))
}

/// Returns the 422 for a field of a review.
fn invalid(group: &str, field: &str, value: &Value, detail: &str) -> ApiError {
    let causes: Vec<Cause> = vec![invalid_value(field, value, detail)];
    ApiError::invalid(About { group, kind: "", name: "" }, causes)
}

const AUTHORIZATION: &str = "authorization.k8s.io";

/// Returns a user's attributes as reviews show them.
fn info(user: &User) -> Value {
    let mut out = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        out["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}

fn token(core: &Core, spec: &Value) -> Result<Value, ApiError> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let text = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(text));
    }
    Ok(match core.authenticator().token(token) {
        Some(user) => json!({"authenticated": true, "user": info(&user)}),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Returns the user of a review about another user.
fn subject(spec: &Value) -> Result<User, ApiError> {
    let user = User {
        name: text(spec, "user"),
        groups: texts(&spec["groups"]),
        uid: text(spec, "uid"),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    };
    if user.name.is_empty() && user.groups.is_empty() {
        let text = "at least one of user or group must be specified";
        return Err(invalid(AUTHORIZATION, "spec.user", &json!(""), text));
    }
    Ok(user)
}

/// Reviews access within one namespace, which must be that of the URL.
fn local(core: &Core, call: &Call, spec: &Value) -> Result<Value, ApiError> {
    let user = subject(spec)?;
    if spec["nonResourceAttributes"].is_object() {
        let text = "disallowed on this kind of request";
        let value = &spec["nonResourceAttributes"];
        return Err(invalid(AUTHORIZATION, "spec.nonResourceAttributes", value, text));
    }
    let namespace = &spec["resourceAttributes"]["namespace"];
    // The right to ask was checked for the namespace of the URL.
    if namespace.as_str().unwrap_or_default() != call.namespace {
        let field = "spec.resourceAttributes.namespace";
        return Err(invalid(AUTHORIZATION, field, namespace, "must match metadata.namespace"));
    }
    access(core, &user, spec)
}

/// Reviews whether the user may do the described request.
fn access(core: &Core, user: &User, spec: &Value) -> Result<Value, ApiError> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let wanted = match (resource.is_object(), path.is_object()) {
        (true, false) => Attributes {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            path: String::new(),
        },
        (false, true) => Attributes {
            verb: text(path, "verb"),
            path: text(path, "path"),
            ..Attributes::default()
        },
        (both, _) => {
            let (field, value) = match both {
                true => ("spec.nonResourceAttributes", path),
                false => ("spec.resourceAttributes", &Value::Null),
            };
            let detail = match both {
                true => "cannot be specified in combination with resourceAttributes",
                false => {
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified"
                }
            };
            return Err(invalid(AUTHORIZATION, field, value, detail));
        }
    };
    let (allowed, reason) = match core.authorizer().explain(user, &wanted) {
        Ok(reason) => (true, reason),
        Err(reason) => (false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    Ok(status)
}

/// Returns all rules that hold for the user in a namespace.
fn rules(core: &Core, user: &User, spec: &Value) -> Result<Value, ApiError> {
    let namespace = text(spec, "namespace");
    if namespace.is_empty() {
        let text = "no namespace on request";
        return Err(ApiError::bad_request(text));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in core.authorizer().rules(user, &namespace) {
        let pick = |keys: &[&str]| -> Value {
            let found = keys.iter().filter_map(|key| {
                rule.get(*key).filter(|v| !v.is_null()).map(|v| ((*key).to_owned(), v.clone()))
            });
            Value::Object(found.collect::<Map<_, _>>())
        };
        if rule["resources"].is_array() {
            resources.push(pick(&["verbs", "apiGroups", "resources", "resourceNames"]));
        }
        if rule["nonResourceURLs"].is_array() {
            paths.push(pick(&["verbs", "nonResourceURLs"]));
        }
    }
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}
