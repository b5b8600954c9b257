//! Marker types that name subresources in `can(create Pod/eviction)`.
//!
//! Only subresources with a call of a reconcile's context have a type. Others, such as `exec`, can
//! be granted, too: they appear in the printed Role, and `cx.api()` or `cx.client()` uses them.

use std::marker::PhantomData;

/// Subresource `S` of kind `K`, as the target of a grant:
/// `Can<verbs::Create, SubresourceOf<Pod, subresources::Eviction>>`.
///
/// No value of this type exists.
pub struct SubresourceOf<K, S> {
    _types: PhantomData<fn() -> (K, S)>,
}

impl<K, S> std::fmt::Debug for SubresourceOf<K, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubresourceOf")
    }
}

/// Defines a type for each subresource.
macro_rules! subresource {
    ($($type:ident = $name:literal),*) => {$(
        #[doc = concat!("The subresource `", $name, "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $type;
    )*};
}
subresource!(
    Status = "status",
    Scale = "scale",
    Log = "log",
    Eviction = "eviction",
    Token = "token"
);
