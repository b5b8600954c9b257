//! Kinds of children that may be missing, and kinds that a graph has no children of any more.

use super::{ControllerBuilder, static_info};
use crate::controller::Reconciler;
use crate::controller::source::{Appearance, Source, watches};
use windlass_cache::informer::Registration;
use windlass_core::rbac::{self, Rule};
use windlass_core::resource::{Resource, ResourceInfo};

impl<C: Reconciler> ControllerBuilder<C> {
    /// As [`owns`](Self::owns), for a kind that the API server may not serve: the operator starts and is
    /// ready without it, and all objects are reconciled when the kind appears.
    #[track_caller]
    pub(crate) fn owns_optional<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        self.may_be_missing(info.clone());
        let reason = self.names.add(format!("kind {} appeared", info.group_resource()));
        let appearance = Appearance::new(reason);
        self.background_sources.push(appearance.clone());
        self.sources.push(Box::new(move |at| {
            appearance.attach::<K>(at);
            Ok(Vec::new())
        }));
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(dispensable(watches::owned::<K>(self.info.clone(), reason, None)));
        self
    }

    /// Watches the children of kind `K` that an earlier version of the operator made, to delete them.
    #[track_caller]
    pub(crate) fn retires<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        self.may_be_missing(info.clone());
        self.rules.extend(rbac::watched_rules(&info));
        self.rules.push(Rule::new(&info, None, &["delete"]));
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.sources.push(dispensable(watches::owned::<K>(self.info.clone(), reason, None)));
        self
    }

    /// Makes the cache of a kind optional, before it is first used.
    fn may_be_missing(&mut self, info: ResourceInfo) {
        self.sources.push(Box::new(move |at| {
            at.informers.prefer_optional(info.clone());
            Ok(Vec::new())
        }));
    }
}

/// Returns the source of a kind that the controller can do without. Another controller that shares the
/// cache may need it: that one waits for the first list.
fn dispensable(source: Source) -> Source {
    Box::new(move |at| Ok(source(at)?.into_iter().map(Registration::dispensable).collect()))
}
