//! Reviews: questions about users and rights, sent by POST and never stored.
//!
//! The answers come from the installed authenticator and authorizer, so they agree with the
//! treatment of requests.

use serde_json::{Map, Value, json};

use super::decode::{self, Body, BodyOrigin};
use super::patch::printed;
use super::{ObjectResponse, VerbCall, admit, fields};
use crate::auth::{Attributes, User};
use crate::core::ServerCore;
use crate::names;
use crate::served::Cause;
use crate::status::{ApiError, FailureSubject, cause, forbidden_field, invalid_value, required};

/// Answers a review of the call's kind.
pub(crate) fn review(
    core: &ServerCore,
    call: &VerbCall,
    body: Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let decoded = decode::object(call, body, BodyOrigin::Sent, warnings);
    let mut object = decoded.map_err(|fault| fault.of_body(call))?;
    admit::match_namespace(call, &mut object)?;
    // Tracked as sent: the answer has the owners of the question.
    fields::track(core, call, None, &mut object);
    let status = match call.kind.served.kind.as_str() {
        "TokenReview" => token(core, &object["spec"])?,
        "SelfSubjectReview" => {
            // The answer repeats nothing of the question, as upstream.
            object["metadata"] = json!({"creationTimestamp": core.clock.rfc3339()});
            json!({"userInfo": info(&call.user)})
        }
        "SelfSubjectAccessReview" => {
            let more = selectors(&object["spec"]).into_iter().chain(named(call, &object, false));
            check(&object["spec"], more.collect())?;
            access(core, &call.user, &object["spec"])
        }
        "SubjectAccessReview" => {
            let more =
                missing_subject(&object["spec"]).into_iter().chain(selectors(&object["spec"]));
            check(&object["spec"], more.chain(named(call, &object, false)).collect())?;
            access(core, &subject(&object["spec"]), &object["spec"])
        }
        "LocalSubjectAccessReview" => local(core, call, &object)?,
        "SelfSubjectRulesReview" => {
            let answer = rules(core, &call.user, &object["spec"])?;
            object["metadata"] = json!({});
            object["spec"] = json!({});
            answer
        }
        _ => return Err(ApiError::method()),
    };
    object["status"] = status;
    Ok(ObjectResponse::created(object))
}

/// Returns the 422 for the fields of a review.
fn invalid(causes: Vec<Cause>) -> ApiError {
    ApiError::invalid(FailureSubject { group: AUTHORIZATION, kind: "", name: "" }, causes)
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

/// Reviews a bearer token, for the audiences of the question or for the server.
fn token(core: &ServerCore, spec: &Value) -> Result<Value, ApiError> {
    let token = text(spec, "token");
    if token.is_empty() {
        let text = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(text));
    }
    let mut audiences = texts(&spec["audiences"]);
    if audiences.is_empty() {
        audiences = core.issuer.audiences();
    }
    Ok(match core.authenticator().token(&token, &audiences) {
        Ok(found) => json!({
            "authenticated": true, "user": info(&found.user), "audiences": found.audiences,
        }),
        Err(why) => json!({"user": {}, "error": why}),
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Returns the user of a review about another user.
fn subject(spec: &Value) -> User {
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(spec, "user"),
        groups: texts(&spec["groups"]),
        uid: text(spec, "uid"),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

/// Returns the fault of a review that names neither a user nor a group.
fn missing_subject(spec: &Value) -> Vec<Cause> {
    let user = subject(spec);
    let named = !user.name.is_empty() || !user.groups.is_empty();
    let why = "at least one of user or group must be specified";
    if named { Vec::new() } else { vec![invalid_value("spec.user", &json!(""), why)] }
}

/// Returns the attributes of a path in Go's spelling: upstream prints a type without JSON names.
fn path_text(path: &Value) -> Value {
    json!({"Path": text(path, "path"), "Verb": text(path, "verb")})
}

/// Checks that a review asks about either a resource or a path; `more` are faults of the review's
/// user.
fn check(spec: &Value, more: Vec<Cause>) -> Result<(), ApiError> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut causes = Vec::new();
    match (resource.is_object(), path.is_object()) {
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            causes.push(invalid_value("spec.nonResourceAttributes", &path_text(path), why));
        }
        (false, false) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(invalid_value("spec.resourceAttributes", &Value::Null, why));
        }
        _ => {}
    }
    causes.extend(more);
    if causes.is_empty() { Ok(()) } else { Err(invalid(causes)) }
}

/// Reviews access within a namespace, which must be that of the URL.
fn local(core: &ServerCore, call: &VerbCall, object: &Value) -> Result<Value, ApiError> {
    let spec = &object["spec"];
    let mut more = missing_subject(spec);
    more.extend(selectors(spec));
    more.extend(named(call, object, true));
    let namespace = text(&spec["resourceAttributes"], "namespace");
    // The right to ask was checked for the namespace of the URL.
    if spec["resourceAttributes"].is_object() && namespace != call.namespace {
        let (field, value) = ("spec.resourceAttributes.namespace", json!(namespace));
        more.push(invalid_value(field, &value, "must match metadata.namespace"));
    }
    let path = &spec["nonResourceAttributes"];
    if path.is_object() {
        let why = "disallowed on this kind of request";
        more.push(invalid_value("spec.nonResourceAttributes", &path_text(path), why));
    }
    check(spec, more)?;
    Ok(access(core, &subject(spec), spec))
}

/// Returns the fault of a review with metadata; one within a namespace has it.
fn named(call: &VerbCall, object: &Value, is_local: bool) -> Option<Cause> {
    let mut metadata = object["metadata"].clone();
    let fields = metadata.as_object_mut()?;
    fields.remove("managedFields");
    if is_local {
        fields.remove("namespace");
    }
    fields.retain(|_, value| !value.is_null());
    if fields.is_empty() {
        return None;
    }
    let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
    // With the fields in the order of the Go structure.
    let shown = printed::metadata(&call.kind.types, object);
    Some(cause("FieldValueInvalid", "metadata", format!("Invalid value: {shown}: {why}")))
}

/// Returns the faults of the selectors to which a review about a list is restricted.
fn selectors(spec: &Value) -> Vec<Cause> {
    let resource = &spec["resourceAttributes"];
    let mut causes = Vec::new();
    for field in ["labelSelector", "fieldSelector"] {
        let (selector, at) = (&resource[field], format!("spec.resourceAttributes.{field}"));
        if !selector.is_object() {
            continue;
        }
        let raw = text(selector, "rawSelector");
        let list = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
        match (raw.is_empty(), list.is_empty()) {
            (false, false) => {
                let why = "may not specified at the same time as requirements";
                causes.push(invalid_value(&format!("{at}.rawSelector"), &raw.into(), why));
            }
            (true, true) => {
                let why =
                    format!("when {at} is specified, requirements or rawSelector is required");
                causes.push(required(&format!("{at}.requirements"), &why));
            }
            _ => {}
        }
        for (index, one) in list.iter().enumerate() {
            let at = format!("{at}.requirements[{index}]");
            requirement(one, field == "labelSelector", &at, &mut causes);
        }
    }
    causes
}

/// Appends the faults of a requirement of a selector; newer operators may be unknown here.
fn requirement(one: &Value, is_label: bool, at: &str, causes: &mut Vec<Cause>) {
    let key = text(one, "key");
    if key.is_empty() && !is_label {
        causes.push(required(&format!("{at}.key"), "must be specified"));
    }
    let values = one["values"].as_array().map_or(&[][..], Vec::as_slice);
    match text(one, "operator").as_str() {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(required(&format!("{at}.values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(forbidden_field(&format!("{at}.values"), why));
        }
        _ => {}
    }
    if !is_label {
        return;
    }
    let faults = names::qualified(&key).into_iter();
    causes.extend(faults.map(|why| invalid_value(&format!("{at}.key"), &one["key"], &why)));
    for (index, value) in values.iter().enumerate() {
        let faults = names::label_value(value.as_str().unwrap_or_default()).into_iter();
        causes
            .extend(faults.map(|why| invalid_value(&format!("{at}.values[{index}]"), value, &why)));
    }
}

/// Reviews whether the user may do the described request.
fn access(core: &ServerCore, user: &User, spec: &Value) -> Value {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let wanted = if resource.is_object() {
        Attributes {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            path: String::new(),
        }
    } else {
        Attributes { verb: text(path, "verb"), path: text(path, "path"), ..Attributes::default() }
    };
    let (allowed, reason) = match core.authorizer().explain(user, &wanted) {
        Ok(reason) => (true, reason),
        Err(reason) => (false, reason),
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    status
}

/// Returns all rules that hold for the user in a namespace.
fn rules(core: &ServerCore, user: &User, spec: &Value) -> Result<Value, ApiError> {
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
