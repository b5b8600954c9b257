//! Marker types that name verbs in `can(get Pod)`.

/// A verb as a type.
///
/// Implemented by the types of this module; none of them has a value of interest.
pub trait VerbType {
    /// The verb as printed by RBAC.
    const NAME: &'static str;
}

/// Defines a type for each verb.
macro_rules! verb {
    ($($type:ident = $name:literal),*) => {$(
        #[doc = concat!("The verb `", $name, "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $type;
        impl VerbType for $type {
            const NAME: &'static str = $name;
        }
    )*};
}
verb!(
    Get = "get",
    List = "list",
    Watch = "watch",
    Create = "create",
    Update = "update",
    Patch = "patch",
    Delete = "delete",
    DeleteCollection = "deletecollection"
);
