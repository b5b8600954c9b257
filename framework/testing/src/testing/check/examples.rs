//! Objects that a user gives, from which further ones are made.

use serde_json::Value;
use windlass_client::api::Api;
use windlass_core::crd::CustomResource;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::DynamicObject;

use super::{sent, with_head};

/// Fields of the metadata that a server sets, or that the namespace of the check replaces.
const NOT_WRITTEN: [&str; 4] = ["namespace", "resourceVersion", "uid", "generation"];

/// Returns the examples as they are written.
pub(super) fn as_json<K: CustomResource>(
    examples: impl IntoIterator<Item = K>,
) -> Result<Vec<Value>, Error> {
    let whole = |example: K| {
        let mut object = serde_json::to_value(&example).map_err(|error| {
            Error::new(ErrorKind::Usage, "cannot turn an example into JSON").because(error)
        })?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !NOT_WRITTEN.contains(&name.as_str()));
        }
        Ok(object)
    };
    examples.into_iter().map(whole).collect()
}

/// Writes each example as a dry run: a refused example is a mistake of the author, which the values
/// made from it would hide.
pub(super) async fn accepted(
    api: &Api<DynamicObject>,
    examples: &[Value],
    head: &Value,
) -> Result<(), Error> {
    for (place, example) in examples.iter().enumerate() {
        let object = with_head(example, head);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let refused = |error| {
            let message = format!(
                "cannot check {}: the API server refuses example {} (`{name}`). Change the example, or the rule that \
                 it breaks",
                head["kind"].as_str().unwrap_or_default(),
                place + 1,
            );
            Error::new(ErrorKind::Usage, message).because(error)
        };
        let object = sent(api, object).map_err(|error| {
            refused(Error::new(ErrorKind::Usage, "the example has no metadata").because(error))
        })?;
        api.create(&object).dry_run().await.map_err(refused)?;
    }
    Ok(())
}
