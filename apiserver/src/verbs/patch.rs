//! PATCH: JSON, merge and strategic merge patches, and server-side apply.

use serde_json::Value;

use super::decode::{self, Body, BodyFault, BodyOrigin};
use super::options::FieldValidation;
use super::update::{self, NextState, SentVersion};
use super::{ObjectResponse, VerbCall, admit, fields};
use crate::apply::{ApplyError, ApplyRequest};
use crate::core::ServerCore;
use crate::go::{self, type_name};
use crate::kinds::meta;
use crate::patch::{self, PatchError};
use crate::status::{ApiError, cause, forbidden_field, required};

pub(super) mod printed;

/// Type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// JSON patch, RFC 6902.
    Json,
    /// Merge patch, RFC 7396.
    Merge,
    /// Strategic merge patch, by the kind's merge keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// Most operations of a JSON patch; more are refused.
const MOST: usize = 10_000;

/// Checks the options that concern only patches.
pub(crate) fn check_options(form: PatchType, named: bool, force: bool) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    if form == PatchType::Apply && !named {
        causes.push(required("fieldManager", "is required for apply patch"));
    }
    if form != PatchType::Apply && force {
        causes.push(forbidden_field("force", "may not be specified for non-apply patch"));
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid_options("PatchOptions", causes)) }
}

/// Patches an object.
pub(crate) fn patch(
    core: &ServerCore,
    call: &VerbCall,
    form: PatchType,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    if form == PatchType::Apply {
        return apply(core, call, body, warnings);
    }
    update::change(core, call, |held| {
        let Some(held) = held else { return Err(call.not_found()) };
        let (mut object, named) = decoded(call, form, held, body, warnings)?;
        admit::match_namespace(call, &mut object)?;
        admit::match_name(call, &object)?;
        // Checked last: faults of the body win over a conflict of versions.
        named.check(call, held)?;
        Ok(NextState::Update(object))
    })
}

/// Returns the object that a patch makes of another, and the version that the patch names.
pub(super) fn decoded(
    call: &VerbCall,
    form: PatchType,
    held: &Value,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<(Value, SentVersion), ApiError> {
    check_patch(form, &body.value)?;
    // The change is computed again after a lost race: earlier warnings would appear twice.
    warnings.clear();
    let patched = patched(call, form, held, &body.value)?;
    let named = SentVersion::of(&patched)?;
    let faults = if form == PatchType::Json { stray(body) } else { duplicated(body) };
    let decoded = match call.options.validation {
        FieldValidation::Strict if !faults.is_empty() => Err(BodyFault::Strict(faults.join(", "))),
        FieldValidation::Warn => {
            warnings.extend(faults);
            decode::object(call, patched.clone().into(), BodyOrigin::Patched, warnings)
        }
        _ => decode::object(call, patched.clone().into(), BodyOrigin::Patched, warnings),
    };
    let object = decoded.map_err(|fault| {
        let fault = match (form, fault, fields::types(call).unconvertible(&patched)) {
            (PatchType::Strategic, BodyFault::Type(_) | BodyFault::Head(..), Some(why)) => {
                BodyFault::Type(why)
            }
            (_, fault, _) => fault,
        };
        fault.of_patch(&printed::patched(call, form, &body.value, held, &patched))
    })?;
    Ok((object, named))
}

/// Most complaints about a JSON patch.
const MOST_STRAY: usize = 100;

/// Returns the complaints about repeated fields of a patch that is an object.
fn duplicated(body: &Body) -> Vec<String> {
    body.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect()
}

/// Returns the complaints about fields of operations that are repeated or that operations do not
/// have.
fn stray(body: &Body) -> Vec<String> {
    const KNOWN: [&str; 4] = ["op", "path", "from", "value"];
    let own = |path: &&String| path.starts_with('[') && path.matches('.').count() == 1;
    let repeated = body.duplicates.iter().filter(own);
    let repeated = repeated.map(|path| format!("json patch duplicate field {path:?}"));
    let operations = body.value.as_array().into_iter().flatten().enumerate();
    let unknown = operations.flat_map(|(index, operation)| {
        let fields = operation.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| !KNOWN.contains(&name.as_str()));
        fields.map(move |(name, _)| {
            let path = format!("[{index}].{name}");
            format!("json patch unknown field {path:?}")
        })
    });
    repeated.chain(unknown).take(MOST_STRAY).collect()
}

/// Checks the type of a patch's body.
fn check_patch(form: PatchType, body: &Value) -> Result<(), ApiError> {
    match (form, body) {
        (PatchType::Json, Value::Array(operations)) if operations.len() > MOST => {
            let found = operations.len();
            let text = format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MOST}, got {found}"
            );
            Err(ApiError::too_large(text))
        }
        (PatchType::Json | PatchType::Strategic, Value::Null)
        | (PatchType::Json, Value::Array(_))
        | (PatchType::Merge | PatchType::Strategic, Value::Object(_)) => Ok(()),
        (PatchType::Json, other) => {
            let found = type_name(other);
            let text = format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
            );
            Err(ApiError::bad_request(text))
        }
        (PatchType::Merge, Value::Null) => Err(ApiError::bad_request("Invalid JSON Patch")),
        (PatchType::Strategic, other) => {
            let found = type_name(other);
            let text = format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            Err(ApiError::bad_request(text))
        }
        (_, other) => {
            let found = type_name(other);
            let text = format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            Err(ApiError::bad_request(text))
        }
    }
}

/// Applies a patch to the stored object.
fn patched(
    call: &VerbCall,
    form: PatchType,
    held: &Value,
    body: &Value,
) -> Result<Value, ApiError> {
    match form {
        // A null is decoded as an empty list of operations.
        PatchType::Json if body.is_null() => Ok(held.clone()),
        PatchType::Json => patch::json(held, body).map_err(refused),
        PatchType::Strategic => {
            // Upstream reads the patch into a map, in which 3.0 and 3 are one number.
            let mut body = body.clone();
            go::whole_numbers(&mut body);
            let patched = patch::strategic(fields::types(call), held, &body).map_err(refused);
            // The result is read into the kind's own type, so that a change of the kind by a patch
            // has no effect.
            patched.map(|mut patched| {
                for field in ["kind", "apiVersion"] {
                    if patched[field].is_string() || patched[field].is_null() {
                        patched[field] = held[field].clone();
                    }
                }
                patched
            })
        }
        PatchType::Merge | PatchType::Apply => Ok(patch::merge(held, body)),
    }
}

fn refused(error: PatchError) -> ApiError {
    if error.code == 422 {
        return ApiError::unprocessable();
    }
    ApiError::custom(error.code, error.reason, error.message)
}

/// Executes a server-side apply.
fn apply(
    core: &ServerCore,
    call: &VerbCall,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    if !call.subresource.is_empty() {
        call.find(core)?;
    }
    let mut intent = body.value.clone();
    check_intent(call, &intent)?;

    let sent = SentVersion::of(&intent)?;
    // Upstream reads the body as YAML, and writes 1.0 as 1 before Go decodes that.
    go::whole_numbers(&mut intent);
    // A precondition, and no field that the manager could own.
    meta::set(&mut intent, "resourceVersion", Value::Null);
    let now = call.now(core);
    update::change(core, call, |held| {
        warnings.clear();
        check_held(call, &intent, held, &sent)?;
        let merged = crate::apply::apply(&ApplyRequest {
            schema: fields::types(call),
            live: held,
            intent: &intent,
            manager: &call.options.manager,
            force: call.options.force,
            api_version: &call.kind.served.api_version(),
            subresource: call.tracked_subresource(),
            now: &now,
        });
        let merged = merged.map_err(refused_apply)?;
        repeated(call, body, warnings)?;
        let empty: Vec<_> = meta::empty(&merged)
            .into_iter()
            .filter(|_| call.kind.custom.is_some() && call.subresource.is_empty())
            .map(|field| (field, merged["metadata"][field].clone()))
            .collect();
        let decoded = decode::object(call, merged.clone().into(), BodyOrigin::Applied, warnings);
        let mut object = decoded.map_err(|fault| {
            // The applied object is no text, so the converter reads the object.
            let fault = match (fault, fields::types(call).unconvertible(&merged)) {
                (BodyFault::Type(_), Some(why)) if call.kind.custom.is_none() => {
                    BodyFault::Type(why)
                }
                (fault, _) => fault,
            };
            fault.of_apply(call, &intent["metadata"])
        })?;
        decode::keep_refused(&call.kind, &intent, &mut object);
        if held.is_none() && call.kind.is("", "nodes") && intent["status"].is_object() {
            // Nodes register themselves with their status.
            object["status"] = intent["status"].clone();
        }
        admit::match_namespace(call, &mut object)?;
        admit::match_name(call, &object)?;
        for (field, value) in empty {
            meta::set(&mut object, field, value);
        }
        Ok(NextState::Apply(object))
    })
}

/// Refuses an apply whose keys are repeated, or warns about them, depending on the options.
fn repeated(call: &VerbCall, body: &Body, warnings: &mut Vec<String>) -> Result<(), ApiError> {
    if body.repeated.is_empty() {
        return Ok(());
    }
    match call.options.validation {
        FieldValidation::Strict => {
            let why = decode::unmarshal_errors(&body.repeated);
            Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {why}"
            )))
        }
        FieldValidation::Warn => {
            warnings.extend(body.repeated.iter().cloned());
            Ok(())
        }
        FieldValidation::Ignore => Ok(()),
    }
}

/// Checks the type of an apply body, and its parts that name the type.
pub(super) fn check_intent(call: &VerbCall, intent: &Value) -> Result<(), ApiError> {
    if !intent.is_object() && !intent.is_null() {
        let found = type_name(intent);
        return Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    }
    if intent["metadata"].get("managedFields").is_some_and(|list| !list.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let text = |field: &str| intent.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if kind != call.kind.name() || api_version != call.kind.served.api_version() {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let text = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(ApiError::bad_request(text));
    }
    Ok(())
}

/// Checks the apply's uid and version against the stored object.
fn check_held(
    call: &VerbCall,
    intent: &Value,
    held: Option<&Value>,
    sent: &SentVersion,
) -> Result<(), ApiError> {
    let uid = meta::text(intent, "uid");
    match held {
        None if !call.subresource.is_empty() => Err(call.not_found()),
        // A uid is a precondition that no new object can meet.
        None if !uid.is_empty() => {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            Err(ApiError::conflict(call.about(), &why))
        }
        None => Ok(()),
        Some(held) if sent.is_set() => sent.check(call, held),
        Some(_) => Ok(()),
    }
}

pub(super) fn refused_apply(error: ApplyError) -> ApiError {
    let message = error.message();
    match error {
        ApplyError::Invalid { code, reason, .. } => ApiError::custom(code, reason, message),
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.into_iter();
            let causes =
                causes.map(|one| cause("FieldManagerConflict", &one.field, one.message)).collect();
            ApiError::apply_conflict(message, causes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apply_needs_a_manager_and_only_apply_may_force() {
        assert!(check_options(PatchType::Apply, true, true).is_ok());
        let error = check_options(PatchType::Apply, false, false).unwrap_err();
        assert!(
            error.message().ends_with("fieldManager: Required value: is required for apply patch")
        );
        assert!(check_options(PatchType::Merge, true, true).is_err());
    }
}
