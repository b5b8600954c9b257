//! Whether two types are of the same kind, for `#[derive(Controller)]`.

use std::marker::PhantomData;

use crate::resource::Resource;

/// Whether both types are of the same kind. A projection is of the kind whose objects it reads in
/// part.
#[must_use]
pub const fn is_same_kind<A, B>() -> bool
where
    A: Resource<Kind: k8s_openapi::Resource>,
    B: Resource<Kind: k8s_openapi::Resource>,
{
    equal(version::<A::Kind>(), version::<B::Kind>()) && equal(kind::<A::Kind>(), kind::<B::Kind>())
}

const fn version<K: k8s_openapi::Resource>() -> &'static str {
    K::API_VERSION
}

const fn kind<K: k8s_openapi::Resource>() -> &'static str {
    K::KIND
}

/// `==` of texts, which constants cannot use.
const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
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

    #[test]
    fn types_are_of_one_kind_by_version_and_name() {
        assert!(is_same_kind::<Pod, k8s_openapi::api::core::v1::Pod>());
        assert!(!is_same_kind::<Pod, Secret>());
        assert!(!is_same_kind::<Event, events::v1::Event>());
        assert!(!is_same_kind::<Old, New>());
    }
}
