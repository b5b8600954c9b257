//! Apply configurations: objects in which every field may be left out, for server-side apply.

// DESIGN.md, 271: What a client applies is of the kind

use serde::Serialize;
use serde_json::{Map, Value};

use super::FullObject;

/// A value that can be applied as an object of kind `K`: the kind's own type, or its apply
/// configuration.
///
/// An apply owns every field that the applied object names. The kind's own type names all required
/// fields; the apply configuration, such as `WebsiteApply` of `Website`, names only those that were
/// set. Implemented for every kind, and by `#[derive(CustomResource)]` for the configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be applied as an object",
    label = "no object of a kind",
    note = "apply a kind, such as `Deployment`, or an apply configuration, such as `WebsiteApply`",
    note = "the object is passed by value, one per call: `child.clone()` instead of `&child`, \
            `if let Some(child) = child {{ … }}` for an `Option`, a loop for a list"
)]
pub trait ApplyObject<K>: Serialize + Send {}

#[diagnostic::do_not_recommend]
impl<K: FullObject> ApplyObject<K> for K {}

/// The kind of no object.
#[derive(Debug)]
#[doc(hidden)]
pub enum NoKind {}

/// Implemented by no type.
#[doc(hidden)]
pub trait NoObject: Serialize + Send {}

// With a single implementation that may be meant, the compiler would take a reference or an option
// for a kind, and report the missing permission for it beside the message above.
#[diagnostic::do_not_recommend]
impl<A: NoObject> ApplyObject<NoKind> for A {}

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
    note = "a type of your own is applied as `serde_json::to_value(…)?`, and an `Option` if it has an object: \
            `if let Some(wanted) = &wanted {{ … }}`"
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
