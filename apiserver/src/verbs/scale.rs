//! The scale subresource: replicas of any kind, as an autoscaling/v1 Scale.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::decode::{self, Body, BodyFault, BodyOrigin};
use super::patch::{self, PatchType, refused_apply};
use super::suspend::convert;
use super::update::{self, NextState, SentVersion};
use super::{ObjectResponse, VerbCall, admit, fields};
use crate::apply::{ApplyRequest, ScaleChange, track_scale};
use crate::core::ServerCore;
use crate::kinds::{Kind, builtin, meta};
use crate::served::Cause;
use crate::status::{ApiError, FailureSubject, invalid_value};

/// Versions that Scales had before they were of `autoscaling`.
const FORMER_VERSIONS: [&str; 3] = ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

/// Paths of the fields that a kind's scale shows.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    /// Path of the selector; `None` makes the text from `spec.selector`.
    selector: Option<Vec<String>>,
}

impl Paths {
    /// Returns the paths that a definition declares, or those of built-in kinds.
    fn of(call: &VerbCall) -> Self {
        let split = |path: &str| -> Vec<String> {
            path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        match call.kind.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
            Some([spec, status, selector]) => {
                Self { spec: split(spec), status: split(status), selector: Some(split(selector)) }
            }
            None => Self {
                spec: split("spec.replicas"),
                status: split("status.replicas"),
                selector: None,
            },
        }
    }
}

/// Returns the value at a path.
fn read<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, part| value.get(part))
}

/// Sets the value at a path, and makes the objects on the way.
fn write(object: &mut Value, path: &[String], value: Value) {
    let mut held = object;
    for part in path {
        if !held.is_object() {
            *held = json!({});
        }
        held = &mut held[part.as_str()];
    }
    *held = value;
}

/// Returns the Scale of an object.
pub(crate) fn scale(call: &VerbCall, object: &Value) -> Result<Value, ApiError> {
    let paths = Paths::of(call);
    let dotted = format!(".{}", paths.spec.join("."));
    let wanted = read(object, &paths.spec).and_then(Value::as_i64);
    let Some(wanted) = wanted else {
        let text = format!("the spec replicas field {dotted:?} does not exist");
        return Err(ApiError::internal(&text));
    };
    let have = read(object, &paths.status).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    // Zero is left out, as Go's `omitempty` does.
    if wanted != 0 {
        spec["replicas"] = json!(wanted);
    }
    let mut status = json!({"replicas": have});
    let selector = match &paths.selector {
        Some(path) if path.is_empty() => String::new(),
        Some(path) => read(object, path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => selector_text(&object["spec"]["selector"]),
    };
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// Returns a label selector as text: `a=b,c in (d,e)`.
fn selector_text(selector: &Value) -> String {
    let fields = selector.get("matchLabels").and_then(Value::as_object).or_else(|| {
        // Replication controllers have plain maps.
        selector.as_object().filter(|_| selector.get("matchExpressions").is_none())
    });
    let mut parts: Vec<String> = fields
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    for term in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = term["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            term["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match term["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    // Upstream prints requirements in order.
    parts.sort();
    parts.join(",")
}

/// Returns an object with the replicas of a Scale.
pub(crate) fn with_replicas(call: &VerbCall, object: &Value, scale: &Value) -> Value {
    let mut scaled = object.clone();
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    write(&mut scaled, &Paths::of(call).spec, json!(replicas));
    scaled
}

/// Executes a GET of a scale.
pub(crate) fn get(core: &ServerCore, call: &VerbCall) -> Result<ObjectResponse, ApiError> {
    let held = call.find(core)?;
    Ok(ObjectResponse::ok(scale(call, &convert::shown(core, call, &held.value)?)?))
}

/// Returns a call for the same object whose body is a Scale.
fn of_scale(call: &VerbCall) -> VerbCall {
    static KIND: LazyLock<Arc<Kind>> =
        LazyLock::new(|| Arc::new(builtin::body_kind("autoscaling/v1", "Scale")));
    VerbCall { kind: KIND.clone(), ..call.clone() }
}

/// Refuses a Scale of the groups that had one before.
fn check_version(body: &Value) -> Result<(), ApiError> {
    let version = body["apiVersion"].as_str().unwrap_or_default();
    if body["kind"] != "Scale" || !FORMER_VERSIONS.contains(&version) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the API version in the data ({version}) does not match the expected API version \
         (autoscaling/v1)"
    )))
}

/// Executes a PUT of a scale.
pub(crate) fn replace(
    core: &ServerCore,
    call: &VerbCall,
    body: Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let of_scale = of_scale(call);
    check_version(&body.value)?;
    let decoded = decode::object(&of_scale, body, BodyOrigin::Sent, warnings);
    let mut wanted = decoded.map_err(|fault| match fault {
        BodyFault::Other(error) => error,
        // The scheme of custom resources cannot name the kind that it failed to read.
        _ if call.kind.served.custom => ApiError::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        fault => fault.of_body(&of_scale),
    })?;
    // Before the look-up: a body for another object says nothing about this object.
    admit::match_namespace(call, &mut wanted)?;
    admit::match_name(call, &wanted)?;
    store(core, call, |held, _| {
        update::precondition(call, held, &wanted)?;
        Ok((wanted.clone(), SentVersion::of(&wanted)?))
    })
}

/// Executes a PATCH of a scale.
pub(crate) fn patch(
    core: &ServerCore,
    call: &VerbCall,
    form: PatchType,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    if form == PatchType::Apply && call.kind.custom.is_none() {
        return apply(core, call, body);
    }
    // Upstream refuses an apply for custom resources with these texts.
    if form == PatchType::Apply {
        patch::check_intent(&of_scale(call), &body.value)?;
        let held = call.find(core)?;
        let managed = held.value["metadata"]["managedFields"].is_array();
        let name = &call.name;
        let place = if call.namespace.is_empty() {
            name.clone()
        } else {
            format!("{}/{name}", call.namespace)
        };
        let object = if managed {
            "create manager for existing fields: failed to convert live object (/".to_owned()
        } else {
            format!("convert new object ({place}")
        };
        let text = format!(
            "failed to {object}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        );
        return Err(ApiError::unclassified(text));
    }
    let of_scale = of_scale(call);
    store(core, call, |_, present| patch::decoded(&of_scale, form, present, body, warnings))
}

/// Applies a Scale to an object of a built-in kind: the replicas are applied to the object.
fn apply(core: &ServerCore, call: &VerbCall, body: &Body) -> Result<ObjectResponse, ApiError> {
    let mut wanted = body.value.clone();
    let of_scale = of_scale(call);
    patch::check_intent(&of_scale, &wanted)?;
    let sent = SentVersion::of(&wanted)?;
    let now = core.clock.rfc3339();
    // For the types alone: the Scale is no object that could be in conflict.
    let typed = crate::apply::apply(&ApplyRequest {
        schema: fields::types(&of_scale),
        live: None,
        intent: &wanted,
        manager: &call.options.manager,
        force: true,
        api_version: "autoscaling/v1",
        subresource: None,
        now: &now,
    });
    typed.map_err(refused_apply)?;
    if meta::text(&wanted, "name").is_empty() {
        meta::set(&mut wanted, "name", call.name.clone().into());
    }
    admit::match_namespace(call, &mut wanted)?;
    admit::match_name(call, &wanted)?;
    let api_version = call.kind.served.api_version();
    let metadata = json!({"name": call.name, "namespace": call.namespace});
    let mut intent =
        json!({"apiVersion": api_version, "kind": call.kind.name(), "metadata": metadata});
    if let Some(replicas) = wanted["spec"]["replicas"].as_i64() {
        intent["spec"] = json!({"replicas": replicas});
    }
    let answer = update::change(core, call, |held| {
        let Some(held) = held else { return Err(call.not_found()) };
        if sent.is_set() {
            sent.check(call, held)?;
        }
        let merged = crate::apply::apply(&ApplyRequest {
            schema: fields::types(call),
            live: Some(held),
            intent: &intent,
            manager: &call.options.manager,
            force: call.options.force,
            api_version: &api_version,
            subresource: Some("scale"),
            now: &now,
        });
        let merged = merged.map_err(refused_apply)?;
        // Replicas that their owner gives up are 0, and nothing else of the object may change.
        let replicas = merged["spec"]["replicas"].as_i64().unwrap_or(0);
        let mut next = held.clone();
        write(&mut next, &Paths::of(call).spec, json!(replicas));
        meta::copy(&merged, &mut next, "managedFields");
        Ok(NextState::Apply(next))
    })?;
    Ok(ObjectResponse::ok(scale(call, &answer.value)?).warned(answer.warnings))
}

/// Returns the faults of a changed Scale.
fn check(call: &VerbCall, wanted: &Value, replicas: i64) -> Vec<Cause> {
    // Those of custom resources are judged with the resource.
    if call.kind.served.custom {
        return Vec::new();
    }
    let mut causes = meta::check_new(&of_scale(call).kind, wanted);
    if replicas < 0 {
        let why = "must be greater than or equal to 0";
        causes.push(invalid_value("spec.replicas", &json!(replicas), why));
    }
    causes
}

/// Changes the replicas of an object to those of the scale that `make` returns for the object and
/// its scale.
fn store(
    core: &ServerCore,
    call: &VerbCall,
    mut make: impl FnMut(&Value, &Value) -> Result<(Value, SentVersion), ApiError>,
) -> Result<ObjectResponse, ApiError> {
    let paths = Paths::of(call);
    let answer = update::change(core, call, |held| {
        let Some(held) = held else { return Err(call.not_found()) };
        // An object without replicas has no Scale to show, but the replicas may be set.
        let present = scale(call, held).unwrap_or_else(|_| json!({"metadata": held["metadata"]}));
        let (mut wanted, sent) = make(held, &present)?;
        admit::match_namespace(call, &mut wanted)?;
        admit::match_name(call, &wanted)?;
        if sent.is_set() {
            sent.check(call, held)?;
        }
        let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
        let causes = check(call, &wanted, replicas);
        if !causes.is_empty() {
            let about = FailureSubject { group: "autoscaling", kind: "Scale", name: &call.name };
            return Err(ApiError::invalid(about, causes));
        }
        let mut next = held.clone();
        write(&mut next, &paths.spec, json!(replicas));
        let change =
            ScaleChange::between(present["spec"]["replicas"].as_i64().unwrap_or(0), replicas);
        let (manager, version) = (&call.options.manager, call.kind.served.api_version());
        let next = track_scale((held, &next), &paths.spec, change, manager, &version);
        Ok(NextState::Apply(next))
    })?;
    Ok(ObjectResponse::ok(scale(call, &answer.value)?).warned(answer.warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_prints_as_text() {
        let selector = json!({"matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["x", "y"]}]});
        assert_eq!(selector_text(&selector), "a=1,b=2,c notin (x,y)");
        assert_eq!(selector_text(&json!({"app": "a"})), "app=a");
    }

    #[test]
    fn writing_makes_the_way_to_its_path() {
        let mut object = json!({});
        write(&mut object, &["spec".into(), "pool".into(), "size".into()], json!(3));
        assert_eq!(object, json!({"spec": {"pool": {"size": 3}}}));
    }
}
