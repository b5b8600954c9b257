//! Whether two names are of one type, for `#[derive(Controller)]`.

// DESIGN.md, 240: Entries of a controller are compared as types, whatever their names

use std::marker::PhantomData;

use crate::resource::Resource;

/// Type with the constant [`OF`](Self::OF), for derived code: that of a resource, or else that of
/// [`Unknown`], so that a type which is no resource is reported elsewhere, and once.
#[derive(Debug)]
pub struct Identity<K>(PhantomData<K>);

/// Texts, size and alignment that only one type has.
///
/// Constants cannot compare types. Two types of one kind differ in their size, if they differ: a
/// hand-written type beside that of k8s-openapi.
pub type Parts = (&'static [&'static str], usize, usize);

impl<K: Resource> Identity<K> {
    /// Identity of the type.
    pub const OF: Parts = (K::IDENTITY, size_of::<K>(), align_of::<K>());
}

/// Identity of a type that is no resource.
pub trait Unknown {
    /// Identity of the type: none.
    const OF: Parts = (&[], 0, 0);
}

impl<K> Unknown for Identity<K> {}

/// Whether both are of one type. Types without an identity are equal to none.
#[must_use]
pub const fn is_same_type(a: Parts, b: Parts) -> bool {
    let mut at = 0;
    while at < a.0.len() && at < b.0.len() && is_same_text(a.0[at], b.0[at]) {
        at += 1;
    }
    at > 0 && at == a.0.len() && at == b.0.len() && a.1 == b.1 && a.2 == b.2
}

/// Whether a type is among others.
#[must_use]
pub const fn is_one_of(kind: Parts, others: &[Parts]) -> bool {
    let mut at = 0;
    while at < others.len() && !is_same_type(kind, others[at]) {
        at += 1;
    }
    at < others.len()
}

/// `==` of texts, which constants cannot use.
#[must_use]
pub const fn is_same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len()
}

/// Stands for a kind that was named before by another path: a second grant on the kind itself would
/// be a conflict.
#[derive(Debug)]
pub struct Repeated<K, const N: usize>(PhantomData<K>);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler as Old;
    use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler as New;
    use k8s_openapi::api::core::v1::{Event, Pod, Secret};
    use k8s_openapi::api::events;

    use super::*;
    use crate::resource::DynamicObject;

    #[test]
    fn names_are_of_one_type_by_version_kind_and_size() {
        type Other = Pod;
        assert!(is_same_type(Identity::<Pod>::OF, Identity::<Other>::OF));
        assert!(!is_same_type(Identity::<Pod>::OF, Identity::<Secret>::OF));
        assert!(!is_same_type(Identity::<Event>::OF, Identity::<events::v1::Event>::OF));
        assert!(!is_same_type(Identity::<Old>::OF, Identity::<New>::OF));
        let some = [Identity::<Secret>::OF, Identity::<Pod>::OF];
        assert!(is_one_of(Identity::<Other>::OF, &some) && !is_one_of(Identity::<Old>::OF, &some));
    }

    #[test]
    fn types_without_a_kind_are_equal_to_nothing() {
        let (dynamic, text) = (Identity::<DynamicObject>::OF, Identity::<String>::OF);
        assert!(!is_same_type(dynamic, dynamic) && !is_same_type(text, text));
    }
}
