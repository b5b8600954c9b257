//! Sample objects of a program, which show the operator at work.

use windlass_core::error::Error;
use windlass_core::resource::{DynamicObject, FullObject, ResourceInfo, Scope};

/// An object that shows the operator at work.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "local"), allow(dead_code))]
pub(super) struct Sample {
    /// Kind of the object; selects the path of the requests.
    pub(super) info: ResourceInfo,
    /// The object with type and, for a namespaced kind, a namespace: `default` without a given
    /// namespace.
    pub(super) object: DynamicObject,
}

impl Sample {
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) for an object whose kind or JSON is not known.
    pub(super) fn of<K: FullObject>(sample: &K) -> Result<Self, Error> {
        let info =
            K::static_info().ok_or_else(|| Error::usage("the sample's kind is not known"))?;
        let no_json = |error| Error::usage("the sample cannot be written as JSON").because(error);
        let mut object = serde_json::to_value(sample).map_err(no_json)?;
        // Dynamic objects carry their type.
        object["apiVersion"] = info.api_version().into();
        object["kind"] = info.kind.to_string().into();
        let no_object =
            |error| Error::usage("the sample is not a Kubernetes object").because(error);
        let mut object: DynamicObject = serde_json::from_value(object).map_err(no_object)?;
        if info.scope == Scope::Namespaced {
            object.metadata.namespace.get_or_insert_with(|| "default".to_owned());
        }
        Ok(Self { info, object })
    }
}
