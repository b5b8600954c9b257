//! Reviews: questions about users and rights, answered and not stored.
//!
//! Answers come from the installed authorizer. Tokens and rule lists need the knowledge of whoever
//! installs them; until then tokens are unknown and rule lists incomplete.

use serde_json::{Value, json};

use super::decode::Body;
use super::{Answer, Call};
use crate::auth::{Attributes, User};
use crate::core::Core;
use crate::status::ApiError;

/// Answers a review.
pub(crate) fn review(core: &Core, call: &Call, body: Body) -> Result<Answer, ApiError> {
    let mut review = body.value;
    if !review.is_object() {
        review = json!({});
    }
    review["kind"] = call.kind.name().into();
    review["apiVersion"] = call.kind.served.api_version().into();
    let status = match call.kind.name() {
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.user)}),
        "TokenReview" => json!({"user": {}, "error": "invalid bearer token"}),
        "SelfSubjectAccessReview" => access(core, &call.user, &review["spec"])?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            access(core, &subject(&review["spec"]), &review["spec"])?
        }
        "SelfSubjectRulesReview" => {
            json!({"resourceRules": [], "nonResourceRules": [], "incomplete": true})
        }
        _ => return Err(ApiError::method()),
    };
    review["status"] = status;
    Ok(Answer::created(review))
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn subject(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten().filter_map(Value::as_str);
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        groups: groups.map(str::to_owned).collect(),
        ..User::default()
    }
}

fn access(core: &Core, user: &User, spec: &Value) -> Result<Value, ApiError> {
    let resource = &spec["resourceAttributes"];
    let path = &spec["nonResourceAttributes"];
    if resource.is_object() == path.is_object() {
        let text = ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(ApiError::custom(422, "Invalid", text));
    }
    let from = if resource.is_object() { resource } else { path };
    let text = |field: &str| from[field].as_str().unwrap_or_default().to_owned();
    let wanted = Attributes {
        verb: text("verb"),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
    };
    Ok(match core.authorizer().authorize(user, &wanted) {
        Ok(()) => json!({"allowed": true}),
        Err(why) if why.is_empty() => json!({"allowed": false}),
        Err(why) => json!({"allowed": false, "reason": why}),
    })
}
