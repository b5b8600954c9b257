//! Values of a status, which are written by updates of an object that was stored.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_client::api::Api;
use windlass_core::crd::CustomResource;
use windlass_core::error::Error;
use windlass_core::resource::DynamicObject;
use windlass_core::rng::Rng;

use super::judge::{CheckTarget, ValueCounts, judge};
use super::values::Values;
use super::{SEED, VALUES, rewritten, sent, whole_schema, with_head};

/// Generated objects of which at least one must be stored.
const ATTEMPTS: usize = 50;

/// Counts of the values of a status.
#[derive(Clone, Debug)]
pub(super) enum StatusOutcome {
    /// The kind has no status that is written apart from the object.
    None,
    /// The server stored none of the generated objects, so that there was no status to update.
    NoObject,
    /// Values were tried.
    Tried(ValueCounts),
}

/// Tries values of the status of `K` if the status is a subresource; a part of the values is made
/// from `examples`.
pub(super) async fn judge_status<K: CustomResource>(
    api: &Api<DynamicObject>,
    definition: &CustomResourceDefinition,
    whole: &CheckTarget<'_>,
    head: &Value,
    examples: &[Value],
) -> Result<StatusOutcome, Error> {
    let info = api.info();
    let version = definition.spec.versions.iter().find(|it| it.name == info.version);
    let is_apart = version.and_then(|it| it.subresources.as_ref()?.status.as_ref()).is_some();
    let Some(schema) =
        whole_schema(definition, &info.version).pointer_mut("/properties/status").map(Value::take)
    else {
        return Ok(StatusOutcome::None);
    };
    if !is_apart {
        return Ok(StatusOutcome::None);
    }
    let Some(object) = stored_object(api, whole, head).await? else {
        return Ok(StatusOutcome::NoObject);
    };
    let warnings: Vec<String> =
        whole.warnings.iter().filter_map(|warning| below_status(warning)).collect();
    let mut object = serde_json::to_value(&object).unwrap_or_default();
    // The kind's type reads the group of the kind alone, not that of the installed definition.
    object["apiVersion"] = head["apiVersion"].clone();
    let object = &object;
    let target = CheckTarget {
        schema: &schema,
        warnings: &warnings,
        decode: &|status| decode::<K>(&with_status(object, status)),
        store: &|status| {
            let is_list_for_text = has_list_for_text(&schema, &status);
            let object = with_status(object, &status);
            Box::pin(async move {
                if is_list_for_text {
                    return Err("a list where a text with a format is expected".to_owned());
                }
                store(api, object).await
            })
        },
        examples,
        is_exact: false,
    };
    let tally = judge(&target, Rng::seeded(SEED), VALUES).await;
    // Objects of the whole cluster outlive the namespace of the test.
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    api.delete(name).await?;
    Ok(StatusOutcome::Tried(tally))
}

/// Stores an object that fits the schema and the rules.
async fn stored_object(
    api: &Api<DynamicObject>,
    whole: &CheckTarget<'_>,
    head: &Value,
) -> Result<Option<DynamicObject>, Error> {
    let values = Values::new(Rng::seeded(SEED), whole.examples);
    for _ in 0..ATTEMPTS {
        let value = with_head(&values.fitting(whole.schema), head);
        if (whole.decode)(&value).is_err() {
            continue;
        }
        let Ok(object) = sent(api, value) else { continue };
        match api.create(&object).await {
            Ok(stored) => return Ok(Some(stored)),
            Err(error) if error.is_invalid() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether a list stands where the schema describes a text with a format. An API server stores such
/// a list, and the schema of a status has no bounds against that: the operator's types alone write
/// a status.
fn has_list_for_text(schema: &Value, status: &Value) -> bool {
    match status {
        Value::Array(_) if schema["type"] == "string" => schema.get("format").is_some(),
        Value::Array(items) => items.iter().any(|item| has_list_for_text(&schema["items"], item)),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let named = schema["properties"].get(name);
            has_list_for_text(named.unwrap_or(&schema["additionalProperties"]), value)
        }),
        _ => false,
    }
}

/// The object with another status.
fn with_status(object: &Value, status: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.insert("status".to_owned(), status.clone());
    }
    object
}

/// Reads and writes an object like the kind's type; returns the status.
fn decode<K: CustomResource>(object: &Value) -> Result<Value, String> {
    match rewritten::<K>(object) {
        Ok(mut written) => Ok(written["status"].take()),
        Err(reason) => Err(below_status(&reason).unwrap_or(reason)),
    }
}

/// A message about a place in the status, with the place as seen from there.
fn below_status(message: &str) -> Option<String> {
    message.strip_prefix(".status").map(str::to_owned)
}

/// Updates the status as a dry run, and returns the status that the server would store.
async fn store(api: &Api<DynamicObject>, object: Value) -> Result<Value, String> {
    let object = sent(api, object).map_err(|error| error.to_string())?;
    let write = api.replace(&object).status().dry_run();
    let stored = write.await.map_err(|error| error.to_string())?;
    let mut stored = serde_json::to_value(&stored).map_err(|error| error.to_string())?;
    Ok(stored["status"].take())
}
