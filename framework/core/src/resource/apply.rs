//! Apply configurations: objects in which every field may be left out, for server-side apply.

// DESIGN.md, 271: What a client applies is of the kind

use serde::Serialize;
use serde_json::{Map, Value};

use super::FullObject;

/// A value that can be applied as an object of a kind: the kind's own type, or its apply
/// configuration.
///
/// An apply owns every field that the applied object names. The kind's own type names all required
/// fields; the apply configuration, such as `WebsiteApply` of `Website`, names only those that were
/// set. Implemented for every kind, and by `#[derive(CustomResource)]` for the configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be applied as an object",
    note = "apply a kind, such as `Deployment`, or an apply configuration, such as `WebsiteApply`"
)]
pub trait ApplyObject: Serialize + Send {
    /// The kind of the applied object.
    type Object: FullObject;
}

#[diagnostic::do_not_recommend]
impl<K: FullObject> ApplyObject for K {
    type Object = K;
}

/// An intent that a client applies as an object of kind `K`: the kind's own type, its apply
/// configuration, or JSON.
///
/// JSON is not checked. A type of the caller is applied as JSON, by [`serde_json::to_value`].
///
/// `Form` is inferred: `()` for types, [`Value`] for JSON. Without the parameter the compiler would
/// take the implementations for a conflict, since `Value` could become a resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be applied as a `{K}`",
    label = "no intent for a `{K}`",
    note = "apply the kind itself, its apply configuration, such as `WebsiteApply`, or `json!({{ … }})`",
    note = "a type of your own is applied as `serde_json::to_value(…)?`"
)]
pub trait ApplyIntent<K, Form>: Serialize {}

impl<K> ApplyIntent<K, Value> for Value {}

impl<K> ApplyIntent<K, Value> for Map<String, Value> {}

// The derive implements the trait for each apply configuration: from `ApplyObject` the compiler
// would report a mismatch of associated types beside the message above.
#[diagnostic::do_not_recommend]
impl<K: FullObject> ApplyIntent<K, ()> for K {}

/// The apply configuration of a type: the type's fields, each of which may be left out.
///
/// Implemented by the derives.
pub trait ApplyConfiguration: Serialize {
    /// The type that has all of the fields.
    type Type;
}
