//! Kinds of children that may be missing, and kinds that a graph has no children of any more.

use super::{ControllerBuilder, static_info};
use crate::controller::Reconciler;
use crate::controller::source::{Appearance, Source, watches};
use crate::controller::spec::{CleanupFn, DriverNames, Finalizer};
use windlass_cache::informer::Registration;
use windlass_core::rbac::{self, Rule};
use windlass_core::resource::{Resource, ResourceInfo, Scope};

impl<C: Reconciler> ControllerBuilder<C> {
    /// As [`owns`](Self::owns), for a kind that the API server may not serve: the operator starts
    /// and is ready without that kind, and all objects are reconciled when the kind appears.
    #[track_caller]
    pub(crate) fn owns_optional<K: Resource>(mut self, has_marks: bool) -> Self {
        let info = static_info::<K>();
        self.may_be_missing(info.clone());
        self.notices::<K>(&info, true);
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        let owners = self.owners(has_marks);
        self.sources.push(dispensable(watches::owned::<K>(owners, reason, None)));
        self
    }

    /// Reconciles all objects when the kind appears, each of which may have failed because of the
    /// kind's absence and be waiting for a retry.
    #[track_caller]
    pub(crate) fn noticing<K: Resource>(mut self) -> Self {
        self.notices::<K>(&static_info::<K>(), false);
        self
    }

    /// Adds the appearance of a kind.
    fn notices<K: Resource>(&mut self, info: &ResourceInfo, is_optional: bool) {
        let reason = self.names.add(format!("kind {} appeared", info.group_resource()));
        let appearance = Appearance::new(reason, is_optional);
        self.background_sources.push(appearance.clone());
        self.sources.push(Box::new(move |at| {
            appearance.attach::<K>(at);
            Ok(Vec::new())
        }));
    }

    /// As [`owns`](Self::owns), for children that may carry a mark instead of an owner reference.
    #[track_caller]
    pub(crate) fn owns_marked<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(watches::owned::<K>(self.owners(true), reason, None));
        self
    }

    /// Runs a clean-up for each object that is deleted, after that of
    /// [`finalizer`](Self::finalizer). A controller without a finalizer gets a finalizer: of that
    /// name, or named after the controller.
    pub(crate) fn cleans_up(mut self, name: Option<&str>, cleanup: CleanupFn<C>) -> Self {
        self.graph_cleanups.push((name.map(str::to_owned), cleanup));
        self
    }

    /// Runs a clean-up for each object that is deleted and has the finalizer of a graph of an
    /// earlier version.
    pub(crate) fn cleans_up_former(mut self, cleanup: CleanupFn<C>) -> Self {
        self.former_cleanups.push(cleanup);
        self
    }

    /// Names the drivers of external resources that are fields of a graph.
    pub(crate) fn drives(mut self, names: fn(&C) -> Vec<String>) -> Self {
        self.drivers.push(DriverNames { names, are_fields: true });
        self
    }

    /// Names the driver of a controller that consists of one.
    pub(crate) fn drives_alone(mut self, names: fn(&C) -> Vec<String>) -> Self {
        self.drivers.push(DriverNames { names, are_fields: false });
        self
    }

    /// Returns the finalizer of the controller, and those that an earlier version may have left on
    /// objects.
    ///
    /// A graph's own finalizer is named after the controller. Without this finalizer, objects that
    /// carry it could not be deleted any more once the graph, or a `finalizer` of another name, has
    /// made the finalizer needless.
    pub(super) fn finalizers(&mut self) -> (Option<Finalizer<C>>, Vec<Finalizer<C>>) {
        let own = format!("windlass.dev/{}", self.name);
        let graphs = std::mem::take(&mut self.graph_cleanups);
        let mut finalizer = self.finalizer.take();
        if !graphs.is_empty() && finalizer.is_none() {
            let name = graphs.iter().find_map(|(name, _)| name.clone());
            let name = name.unwrap_or_else(|| own.clone());
            finalizer = Some(Finalizer { name, cleanups: Vec::new() });
        }
        let mut cleanups: Vec<_> = graphs.into_iter().map(|(_, cleanup)| cleanup).collect();
        if let Some(finalizer) = &mut finalizer {
            finalizer.cleanups.extend(&cleanups);
        }
        cleanups.append(&mut self.former_cleanups);
        let is_own = finalizer.as_ref().is_some_and(|finalizer| finalizer.name == own);
        let own = (!is_own).then_some(Finalizer { name: own, cleanups });
        let named = std::mem::take(&mut self.former_finalizers).into_iter();
        let named = named.filter(|name| finalizer.as_ref().is_none_or(|used| used.name != *name));
        let named = named.map(|name| Finalizer { name, cleanups: Vec::new() });
        let former = own.into_iter().chain(named).collect();
        (finalizer, former)
    }

    /// The reconciled kind as the owner of children.
    pub(super) fn owners(&self, has_marks: bool) -> watches::Owners {
        watches::Owners { kind: self.info.clone(), has_marks }
    }

    /// Watches the children of kind `K` that an earlier version of the operator made, to delete
    /// them.
    #[track_caller]
    pub(crate) fn retires<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        self.may_be_missing(info.clone());
        self.rules.extend(rbac::watched_rules(&info));
        self.rules.push(Rule::new(&info, None, &["delete"]));
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        // With marks, however that version made the children.
        let owners = self.owners(self.info.scope == Scope::Namespaced);
        self.sources.push(dispensable(watches::owned::<K>(owners, reason, None)));
        self
    }

    /// Makes the cache of a kind optional, before the first use.
    fn may_be_missing(&mut self, info: ResourceInfo) {
        self.sources.push(Box::new(move |at| {
            at.informers.prefer_optional(info.clone());
            Ok(Vec::new())
        }));
    }
}

/// Returns the source of a kind that the controller can work without. Another controller that
/// shares the cache may need it: that controller waits for the first list.
fn dispensable(source: Source) -> Source {
    Box::new(move |at| Ok(source(at)?.into_iter().map(Registration::dispensable).collect()))
}
