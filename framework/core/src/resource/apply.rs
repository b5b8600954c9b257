//! Apply configurations: objects in which every field may be left out, for server-side apply.

use serde::Serialize;

use super::Whole;

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
    type Object: Whole;
}

#[diagnostic::do_not_recommend]
impl<K: Whole> ApplyObject for K {
    type Object = K;
}

/// The apply configuration of a type: the type's fields, each of which may be left out.
///
/// Implemented by the derives.
pub trait ApplyConfiguration: Serialize {
    /// The type that has all of the fields.
    type Type;
}
