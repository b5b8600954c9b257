//! Checks before a write: the namespace exists and is alive, the object may be deleted, and no
//! admission policy refuses the request.

mod classes;
pub(crate) mod grants;
pub(crate) mod limits;
pub(crate) mod parameters;
pub(crate) mod policies;
pub(crate) mod priority;
pub(crate) mod quota;
mod runtime_class;
pub(crate) mod size;
pub(crate) mod webhooks;

use serde_json::Value;

use super::VerbCall;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::{ApiError, FailureSubject, cause};

const NAMESPACE: &str = "namespaces";

/// Namespaces that cannot be deleted.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];

/// Checks that the namespace of a write exists, and is not terminating if a `new` object is
/// created.
pub(crate) fn namespace(
    core: &ServerCore,
    call: &VerbCall,
    new: Option<&Value>,
) -> Result<(), ApiError> {
    if !call.kind.served.namespaced || call.namespace.is_empty() {
        return Ok(());
    }
    let name = call.namespace.as_str();
    let Some(held) = core.store.get(NAMESPACE, name) else {
        return Err(ApiError::not_found(FailureSubject { group: "", kind: NAMESPACE, name }));
    };
    // Changes of present objects are allowed: finalizers must be removable.
    if new.is_some() && held.value["status"]["phase"] == "Terminating" {
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let detail = format!("namespace {name} is being terminated");
        let cause = cause("NamespaceTerminating", "metadata.namespace", detail);
        let created = new.map(|object| meta::text(object, "name")).unwrap_or_default();
        let about = FailureSubject::resource(&call.kind.served, created);
        return Err(ApiError::forbidden(about, &why).because(cause));
    }
    Ok(())
}

/// Adds the decisions of the server's own plugins to a new object.
pub(crate) fn defaults(
    core: &ServerCore,
    call: &VerbCall,
    object: &mut Value,
) -> Result<(), ApiError> {
    limits::fill_in(core, call, object);
    classes::fill_in(core, call, object);
    priority::apply(core, call, object)?;
    priority::check_class(core, call, object)?;
    // Before the runtime class, whose tolerations come behind those of every Pod.
    if call.kind.is("", "pods") && call.subresource.is_empty() {
        crate::kinds::admission::enter(&call.kind, object);
    }
    runtime_class::apply(core, call, object)
}

/// Lets the limits of the namespace, policies and then webhooks judge a request, and returns the
/// warnings of the policies. Those of webhooks are in the session of the call.
pub(crate) fn judge(
    core: &ServerCore,
    call: &VerbCall,
    operation: policies::Operation<'_>,
) -> Result<Vec<String>, ApiError> {
    match operation {
        policies::Operation::Create(object) => limits::check(core, call, None, object)?,
        policies::Operation::Update(old, object) => {
            limits::check(core, call, Some(old), object)?;
            classes::check_growth(core, call, old, object)?;
        }
        _ => {}
    }
    let warnings = policies::check(core, call, operation)?;
    webhooks::validate(core, call, operation).map_err(|error| error.warned(warnings.clone()))?;
    Ok(warnings)
}

/// Lets the mutating webhooks see a request whose object they cannot change, and then judges the
/// request.
pub(crate) fn observe(
    core: &ServerCore,
    call: &VerbCall,
    operation: policies::Operation<'_>,
) -> Result<Vec<String>, ApiError> {
    webhooks::mutate(core, call, operation)?;
    judge(core, call, operation)
}

/// Refuses to delete namespaces and priority classes that must stay.
pub(crate) fn deletion(call: &VerbCall) -> Result<(), ApiError> {
    if call.kind.is("", NAMESPACE) && IMMORTAL.contains(&call.name.as_str()) {
        return Err(ApiError::forbidden(call.about(), "this namespace may not be deleted"));
    }
    let is_class = call.kind.is("scheduling.k8s.io", "priorityclasses");
    if is_class && priority::SYSTEM.iter().any(|(name, _)| *name == call.name) {
        let why = "this is a system priority class and cannot be deleted";
        return Err(ApiError::forbidden(call.about(), why));
    }
    Ok(())
}

/// Refuses new instances of a definition that is being deleted.
pub(crate) fn definition(core: &ServerCore, call: &VerbCall, new: &Value) -> Result<(), ApiError> {
    let Some(custom) = &call.kind.custom else { return Ok(()) };
    let Some(held) = core.store.get(crate::crds::STORAGE, &custom.definition) else {
        return Ok(());
    };
    if meta::terminating(&held.value) {
        let why = "create not allowed while custom resource definition is terminating";
        let about = FailureSubject::resource(&call.kind.served, meta::text(new, "name"));
        return Err(ApiError::forbidden(about, why));
    }
    Ok(())
}

/// Checks that a body's namespace is that of the URL. An absent namespace is filled in; the
/// namespace of a cluster-wide object is dropped.
pub(crate) fn match_namespace(call: &VerbCall, object: &mut Value) -> Result<(), ApiError> {
    let given = meta::text(object, "namespace");
    let wanted = if call.kind.served.namespaced { call.namespace.as_str() } else { "" };
    if given == wanted {
        return Ok(());
    }
    if given.is_empty() {
        // Clients may leave the namespace to the URL.
        meta::set(object, "namespace", wanted.into());
    } else if wanted.is_empty() {
        meta::set(object, "namespace", Value::Null);
    } else {
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}

/// Checks that a body's name is that of the URL.
pub(crate) fn match_name(call: &VerbCall, object: &Value) -> Result<(), ApiError> {
    let given = meta::text(object, "name");
    if given.is_empty() {
        let why = format!(
            "the name of the object ({given} based on URL) was undeterminable: name must be provided",
            given = call.name
        );
        return Err(ApiError::bad_request(why));
    }
    if given != call.name {
        let why = format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            call.name
        );
        return Err(ApiError::bad_request(why));
    }
    Ok(())
}
