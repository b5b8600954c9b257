//! Tokens of service accounts: requested at the account, and identified when a request brings a
//! token.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::auth::accounts::{Claims, ObjectId};
use crate::auth::{INVALID_TOKEN, TokenUser};
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::{builtin, meta};
use crate::served::Cause;
use crate::status::{ApiError, FailureSubject, invalid_value};
use crate::storage::{self, StoredObject};
use crate::verbs::actions::shown;
use crate::verbs::admit::policies::Operation;
use crate::verbs::decode::{self, Body, BodyOrigin};
use crate::verbs::{ObjectResponse, VerbCall, admit, fields};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// Seconds that a token counts if the request names no time.
const LIFETIME: i64 = 3600;
/// Fewest seconds that a token may count.
const SHORTEST: i64 = 600;
/// Most seconds that a token may count.
const LONGEST: i64 = 1 << 32;
/// Seconds for which a terminating object's tokens still count, as upstream.
const LEEWAY: i64 = 60;

/// Returns the subject of failures about a request.
fn about(name: &str) -> FailureSubject<'_> {
    FailureSubject { group: GROUP, kind: KIND, name }
}

/// Reads a request with defaults and owners.
fn read(
    core: &ServerCore,
    call: &VerbCall,
    body: Body,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let mut kind = builtin::body_kind("authentication.k8s.io/v1", KIND);
    kind.served.namespaced = true;
    let asked = VerbCall { kind: Arc::new(kind), ..call.clone() };
    let decoded = decode::object(&asked, body, BodyOrigin::Sent, warnings);
    let mut object = decoded.map_err(|fault| fault.of_body(&asked))?;
    admit::match_namespace(&asked, &mut object)?;
    let seconds = &mut object["spec"]["expirationSeconds"];
    if seconds.is_null() {
        *seconds = json!(LIFETIME);
    }
    // Before the audiences are filled in: these come from the server, and have no owner.
    fields::track(core, &asked, None, &mut object);
    // Upstream's empty request has a null there, so the object as such gets no owner.
    let owned = "/metadata/managedFields/0/fieldsV1/f:spec/f:boundObjectRef";
    if let Some(Value::Object(fields)) = object.pointer_mut(owned) {
        fields.remove(".");
    }
    Ok(object)
}

/// Issues a token for the account that a call names.
pub(crate) fn request(
    core: &ServerCore,
    call: &VerbCall,
    body: Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let mut object = read(core, call, body, warnings)?;
    warnings.extend(admit::observe(core, call, Operation::Create(&shown(call, &object)))?);
    let account = account(core, call, &object)?;
    complete(core, call, &account.value, &mut object)?;
    let mut claims = Claims {
        namespace: call.namespace.clone(),
        account: id_of(&account.value),
        audiences: texts(&object["spec"]["audiences"]),
        issued: core.clock.seconds(),
        ..Claims::default()
    };
    let lifetime = object["spec"]["expirationSeconds"].as_i64().unwrap_or(LIFETIME);
    claims.expires = claims.issued.saturating_add(lifetime);
    bind(core, call, &object["spec"]["boundObjectRef"], &mut claims)?;
    claims.id = core.rng.uid();
    let token = core.issuer.issue(&claims);
    let token = token.ok_or_else(|| ApiError::internal("failed to generate token"))?;
    object["status"] =
        json!({"expirationTimestamp": core.clock.rfc3339_after(lifetime), "token": token});
    Ok(ObjectResponse::created(object))
}

/// Returns the account of a request, whose metadata may name it.
fn account(
    core: &ServerCore,
    call: &VerbCall,
    object: &Value,
) -> Result<Arc<StoredObject>, ApiError> {
    let name = meta::text(object, "name");
    if !name.is_empty() && name != call.name {
        let why = "must match the service account name if specified";
        let cause = invalid_value("metadata.name", &json!(name), why);
        return Err(ApiError::invalid(about(&call.name), vec![cause]));
    }
    let account = call.find(core)?;
    let (wanted, uid) = (meta::text(object, "uid"), meta::text(&account.value, "uid"));
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        );
        return Err(ApiError::conflict(about(&call.name), &why));
    }
    Ok(account)
}

/// Fills in the fields that a request leaves to the server, and checks the rest.
fn complete(
    core: &ServerCore,
    call: &VerbCall,
    account: &Value,
    object: &mut Value,
) -> Result<(), ApiError> {
    if texts(&object["spec"]["audiences"]).is_empty() {
        object["spec"]["audiences"] = json!(core.issuer.audiences());
    }
    // Null, and not left out: upstream's field has no `omitempty`.
    if object["spec"]["boundObjectRef"].is_null() {
        object["spec"]["boundObjectRef"] = Value::Null;
    }
    for (field, value) in [
        ("name", json!(call.name)),
        ("uid", account["metadata"]["uid"].clone()),
        ("creationTimestamp", json!(core.clock.rfc3339())),
    ] {
        meta::set(object, field, value);
    }
    let seconds = object["spec"]["expirationSeconds"].as_i64().unwrap_or(0);
    let why = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let causes: Vec<Cause> = vec![invalid_value("spec.expirationSeconds", &json!(seconds), why)];
    Err(ApiError::invalid(about(""), causes))
}

/// Adds the object that a token is bound to, and the node of a Pod.
fn bind(
    core: &ServerCore,
    call: &VerbCall,
    wanted: &Value,
    claims: &mut Claims,
) -> Result<(), ApiError> {
    if !wanted.is_object() {
        return Ok(());
    }
    let text = |key: &str| wanted[key].as_str().unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let (resource, slot) = match (group, kind) {
        ("", "Pod") => ("pods", &mut claims.pod),
        ("", "Secret") => ("secrets", &mut claims.secret),
        ("", "Node") => ("nodes", &mut claims.node),
        _ => {
            let text = format!("cannot bind token to object of type {group}/{short}, Kind={kind}");
            return Err(ApiError::bad_request(text));
        }
    };
    let namespace = if resource == "nodes" { "" } else { call.namespace.as_str() };
    let held = core.store.get(resource, &storage::key(namespace, name));
    let held = held
        .ok_or_else(|| ApiError::not_found(FailureSubject { group: "", kind: resource, name }))?;
    let spec = &held.value["spec"];
    if resource == "pods" && spec["serviceAccountName"] != call.name.as_str() {
        let text = format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name
        );
        return Err(ApiError::bad_request(text));
    }
    let (asked, id) = (text("uid"), id_of(&held.value));
    if !asked.is_empty() && asked != id.uid {
        let why = format!(
            "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(FailureSubject { group: "", kind, name }, &why));
    }
    *slot = Some(id);
    if resource == "pods" {
        claims.node = node_of(core, spec);
    }
    Ok(())
}

/// Returns the node of a Pod, without a uid if there is no such node.
fn node_of(core: &ServerCore, spec: &Value) -> Option<ObjectId> {
    let name = spec["nodeName"].as_str().filter(|name| !name.is_empty())?;
    let known = core.store.get("nodes", name).map(|node| id_of(&node.value));
    Some(known.unwrap_or_else(|| ObjectId { name: name.to_owned(), uid: String::new() }))
}

/// Returns the account's user of a bearer token; `None` for a text that is no token of an account.
///
/// # Errors
/// The reason why the token does not count, in the words of token reviews.
pub(crate) fn identify(
    core: &ServerCore,
    token: &str,
    audiences: &[String],
) -> Result<Option<TokenUser>, String> {
    // Upstream asks several authenticators, one of which does not know the token at all.
    let listed = |why: String| format!("[{INVALID_TOKEN}, {why}]");
    let read = core.issuer.read(token, audiences, core.clock.seconds()).map_err(listed)?;
    let Some(claims) = read else { return Ok(None) };
    check(core, &claims).map_err(listed)?;
    let meant = claims.audiences.iter().filter(|own| audiences.contains(own));
    let audiences = meant.cloned().collect();
    Ok(Some(TokenUser { user: claims.user().authenticated(), audiences }))
}

/// Checks that the account of a token and the bound object still exist.
fn check(core: &ServerCore, claims: &Claims) -> Result<(), String> {
    let (namespace, account) = (claims.namespace.as_str(), &claims.account);
    let name = &account.name;
    let Some(held) = core.store.get("serviceaccounts", &storage::key(namespace, name)) else {
        return Err(format!("serviceaccounts {name:?} not found"));
    };
    let uid = meta::text(&held.value, "uid");
    if uid != account.uid {
        let claimed = &account.uid;
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if has_ended(core, &held.value) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    // The node of a Pod is reported, and not checked: the Pod alone decides.
    let node = claims.node.as_ref().filter(|_| claims.pod.is_none());
    for (kind, resource, namespace, bound) in [
        ("secret", "secrets", namespace, claims.secret.as_ref()),
        ("pod", "pods", namespace, claims.pod.as_ref()),
        ("node", "nodes", "", node),
    ] {
        let Some(bound) = bound else { continue };
        let held = core.store.get(resource, &storage::key(namespace, &bound.name));
        let gone = || "service account token has been invalidated".to_owned();
        let held = held.filter(|held| !has_ended(core, &held.value)).ok_or_else(gone)?;
        let (uid, claimed) = (meta::text(&held.value, "uid"), &bound.uid);
        if uid != claimed {
            return Err(format!(
                "{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})"
            ));
        }
    }
    Ok(())
}

/// Whether an object has been terminating for so long that the object's tokens count no more.
fn has_ended(core: &ServerCore, object: &Value) -> bool {
    let since = clock::parse(meta::text(object, "deletionTimestamp"));
    since.is_some_and(|since| since < core.clock.seconds().saturating_sub(LEEWAY))
}

fn id_of(object: &Value) -> ObjectId {
    let text = |key: &str| meta::text(object, key).to_owned();
    ObjectId { name: text("name"), uid: text("uid") }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
