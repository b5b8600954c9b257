//! Rules for names of objects, as far as a derived controller can know them from the kind: a grant
//! of another name would permit nothing.

use std::marker::PhantomData;

use super::{Parts, is_same_text};
use crate::crd::CustomResource;

/// Groups whose kinds are checked.
const GROUPS: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];
/// Kinds of these groups whose names may be other texts: a segment of a path, an IP address, a
/// domain with upper-case letters.
const OTHER_NAMES: &[&str] = &["CSIDriver", "Event", "IPAddress", "PodDisruptionBudget"];
/// Kinds of the core group whose names have no dots.
const LABELS: &[&str] = &["Namespace", "Service"];

/// Type with the constant [`IS_DEFINED`](Self::IS_DEFINED), for derived code.
#[derive(Debug)]
pub struct Named<K>(PhantomData<K>);

impl<K: CustomResource> Named<K> {
    /// Whether the type has a definition: names of custom resources are subdomains.
    pub const IS_DEFINED: bool = true;
}

/// Names of a type without a definition.
pub trait OtherNames {
    /// Whether the type has a definition.
    const IS_DEFINED: bool = false;
}

impl<K> OtherNames for Named<K> {}

/// Whether all objects of the kind have names that are DNS subdomains.
#[must_use]
pub const fn has_subdomain_names(kind: Parts, is_defined: bool) -> bool {
    let &[api_version, name] = kind.0 else { return false };
    is_defined
        || (has(GROUPS, group(api_version)) && !has(OTHER_NAMES, name))
        || has_label_names(kind)
}

/// Whether all objects of the kind have names that are DNS labels.
#[must_use]
pub const fn has_label_names(kind: Parts) -> bool {
    let &[api_version, name] = kind.0 else { return false };
    group(api_version).is_empty() && has(LABELS, name)
}

/// Returns the group of an API version; that of `v1` is empty.
const fn group(api_version: &str) -> &str {
    let mut length = 0;
    while length < api_version.len() && api_version.as_bytes()[length] != b'/' {
        length += 1;
    }
    if length == api_version.len() { "" } else { api_version.split_at(length).0 }
}

/// `contains` of texts, which constants cannot use.
const fn has(texts: &[&str], text: &str) -> bool {
    let mut at = 0;
    while at < texts.len() && !is_same_text(texts[at], text) {
        at += 1;
    }
    at < texts.len()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
    use k8s_openapi::api::core::v1::{Event, Namespace, Pod, Secret, Service};
    use k8s_openapi::api::policy::v1::PodDisruptionBudget;
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use k8s_openapi::api::storage::v1::StorageClass;

    use super::super::{Identity, Unknown as _};
    use super::*;
    use crate::resource::DynamicObject;

    #[test]
    fn names_of_most_kinds_are_subdomains_and_those_of_some_are_labels() {
        let subdomains = [
            (Identity::<Secret>::OF, true),
            (Identity::<Pod>::OF, true),
            (Identity::<StorageClass>::OF, true),
            (Identity::<Namespace>::OF, true),
            (Identity::<ClusterRole>::OF, false),
            (Identity::<Event>::OF, false),
            (Identity::<PodDisruptionBudget>::OF, false),
            (Identity::<CertificateSigningRequest>::OF, false),
            (Identity::<DynamicObject>::OF, false),
            (Identity::<String>::OF, false),
        ];
        for (kind, expected) in subdomains {
            assert_eq!(has_subdomain_names(kind, false), expected, "{kind:?}");
        }
        assert!(has_label_names(Identity::<Service>::OF));
        assert!(!has_label_names(Identity::<Secret>::OF));
    }

    #[test]
    fn names_of_a_custom_resource_are_subdomains_whatever_the_group() {
        let custom: Parts = (&["shop.example.dev/v1", "Website"], 8, 8);
        assert!(has_subdomain_names(custom, true) && !has_subdomain_names(custom, false));
    }
}
