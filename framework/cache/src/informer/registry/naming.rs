//! Names of informers: in errors and logs, and in the label of their metrics.

use crate::informer::CacheOptions;
use windlass_core::resource::{Resource, ResourceInfo};

/// The names of an informer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::informer) struct InformerNames {
    /// Name for errors and logs: `pods (as PodView)`.
    pub(in crate::informer) name: String,
    /// Label of metrics: `Pod (as PodView)`.
    pub(in crate::informer) label: String,
}

impl InformerNames {
    /// Returns the first names that are not taken. Two informers may differ in options that do not
    /// appear in the name (a transform, the path of a projection's type) and still need separate
    /// gauges: then the second informer is called `pods (as PodView) #2`. `place` is the name of
    /// the cluster, outside the operator's own cluster: that name precedes the names.
    pub(in crate::informer) fn first_untaken<K: Resource>(
        place: Option<&str>,
        info: &ResourceInfo,
        options: &CacheOptions,
        is_taken: impl Fn(&str) -> bool,
    ) -> Self {
        let place = place.map(|place| format!("{place}/")).unwrap_or_default();
        let suffix = options.clone().fitting::<K>().suffix(K::projection());
        let name = format!("{place}{}{suffix}", info.group_resource());
        let label = format!("{place}{}{suffix}", info.kind);
        let mut names = Self { name: name.clone(), label: label.clone() };
        let mut number = 1_u32;
        while is_taken(&names.name) {
            number += 1;
            names = Self { name: format!("{name} #{number}"), label: format!("{label} #{number}") };
        }
        names
    }
}
