//! Result of an apply: the state of each child, and the action that follows from it.

// DESIGN.md, 206: A child at rest is recognized by its description and its version
// DESIGN.md, 190: A child that has failed stalls its owner, and is no failed reconcile

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Dependents;
use crate::children::Readiness;
use crate::controller::{Action, Failure, Result};
use windlass_cache::store::Cached;
use windlass_core::resource::{ObjectKey, Resource, ResourceExt};

/// State of a dependent after an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DependentState {
    /// All objects of the dependent are applied, and are ready.
    Ready,
    /// All objects of the dependent are applied; the first that has [failed](Readiness::Failed), or
    /// else the first that is not ready, says why.
    NotReady(Readiness),
    /// The function of the dependent returned a [wait](Failure::wait_for); the text is its message.
    Waits(String),
    /// Not applied: the named dependent, which is earlier in the order, is not ready.
    After(&'static str),
    /// Not wanted, and gone.
    Absent,
    /// Not wanted, and being deleted.
    Removing,
    /// Optional, and the API server does not serve its kind.
    NotServed,
    /// Not applied, for this error.
    Failed(String),
}

impl DependentState {
    /// Whether nothing is left to be done for it: it is ready, not wanted, or optional and not
    /// served.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Ready | Self::Absent | Self::NotServed)
    }

    /// Returns the reason for which one of its objects has failed.
    fn failed_reason(&self) -> Option<&Cow<'static, str>> {
        match self {
            Self::NotReady(readiness) => readiness.failed_reason(),
            _ => None,
        }
    }
}

impl fmt::Display for DependentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::NotReady(readiness) => write!(f, "{readiness}"),
            Self::Waits(text) | Self::Failed(text) => f.write_str(text),
            Self::After(name) => write!(f, "waits for {name}"),
            Self::Absent => f.write_str("not wanted"),
            Self::Removing => f.write_str("is being deleted"),
            Self::NotServed => f.write_str("its kind is not served"),
        }
    }
}

/// A child after an apply.
pub(super) enum AppliedChild<K> {
    /// As decoded from the cache, or as the API server answered. Boxed, since most children are the
    /// other variant.
    Whole(Box<K>),
    /// A child that the apply did not change, and that is ready. An earlier reconcile decoded this
    /// version.
    Ready(Cached<K>),
}

impl<K: Resource> AppliedChild<K> {
    pub(super) fn key(&self) -> ObjectKey {
        match self {
            Self::Whole(child) => child.key(),
            Self::Ready(cached) => cached.key().clone(),
        }
    }

    /// Returns the object; `None` for one that does not decode, which the store reports.
    fn into_object(self) -> Option<K> {
        match self {
            Self::Whole(child) => Some(*child),
            Self::Ready(cached) => cached.get().ok().map(Arc::unwrap_or_clone),
        }
    }
}

/// A field of a graph after an apply: its state and its objects.
#[derive(Clone, Debug)]
pub struct Dependent<K> {
    state: DependentState,
    /// The decoded objects, filled by the first call of [`objects`](Self::objects).
    objects: OnceLock<Vec<K>>,
    /// The cached children that [`objects`](Self::objects) decodes.
    cached: Vec<Cached<K>>,
}

impl<K: Resource> Dependent<K> {
    pub(super) fn new(state: DependentState, children: Vec<AppliedChild<K>>) -> Self {
        let are_at_rest = children.iter().all(|child| matches!(child, AppliedChild::Ready(_)));
        if !are_at_rest {
            let objects: Vec<K> =
                children.into_iter().filter_map(AppliedChild::into_object).collect();
            return Self { state, objects: objects.into(), cached: Vec::new() };
        }
        let cached = children.into_iter().filter_map(|child| match child {
            AppliedChild::Ready(cached) => Some(cached),
            AppliedChild::Whole(_) => None,
        });
        Self { state, objects: OnceLock::new(), cached: cached.collect() }
    }

    /// Returns the object as stored in the API server; the first of several. `None` if it was not
    /// applied.
    ///
    /// An unchanged child is decoded by the first call.
    pub fn object(&self) -> Option<&K> {
        self.objects().first()
    }

    /// Returns the objects as stored in the API server, in the order in which the function of the
    /// dependent returned them. For a dependent that failed, those that were applied. A child that
    /// does not decode is left out.
    pub fn objects(&self) -> &[K] {
        self.objects.get_or_init(|| {
            let decoded = self.cached.iter().filter_map(|cached| cached.get().ok());
            decoded.map(Arc::unwrap_or_clone).collect()
        })
    }
}

impl<K> Dependent<K> {
    /// State after the apply: ready, waiting, failed or not applied.
    pub fn state(&self) -> &DependentState {
        &self.state
    }

    /// Whether all objects of the dependent are applied, and are ready.
    pub fn is_ready(&self) -> bool {
        self.state == DependentState::Ready
    }
}

/// Outcome of an apply of graph `G`: its fields, each a [`Dependent`], and the whole.
///
/// The fields have the names of the struct's: `children.app.is_ready()`.
pub struct Applied<G: Dependents> {
    fields: G::Fields,
    /// State of each dependent, in the order of the fields.
    states: Vec<(&'static str, DependentState)>,
    /// Children that are being deleted, of all dependents, and of kinds that an earlier version of
    /// the graph had.
    removing: usize,
    failure: Option<Failure>,
    /// Shortest delay of the next check that a function of a dependent asked for.
    check_after: Option<Duration>,
    /// Shortest time after which an external resource is observed again.
    poll_after: Option<Duration>,
}

impl<G: Dependents> fmt::Debug for Applied<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applied").field("states", &self.states).finish_non_exhaustive()
    }
}

impl<G: Dependents> Deref for Applied<G> {
    type Target = G::Fields;

    fn deref(&self) -> &G::Fields {
        &self.fields
    }
}

impl<G: Dependents> Applied<G> {
    pub(super) fn new(
        fields: G::Fields,
        states: Vec<(&'static str, DependentState)>,
        removing: usize,
        failure: Option<Failure>,
    ) -> Self {
        let (check_after, poll_after) = (None, None);
        Self { fields, states, removing, failure, check_after, poll_after }
    }

    /// Sets the delay of the next check.
    pub(super) fn with_check_after(mut self, delay: Option<Duration>) -> Self {
        self.check_after = delay;
        self
    }

    /// Sets the time after which external resources are observed again.
    pub(super) fn with_poll_after(mut self, delay: Option<Duration>) -> Self {
        self.poll_after = delay;
        self
    }

    /// Whether every dependent is [settled](DependentState::is_settled), and no child is being
    /// deleted.
    pub fn all_ready(&self) -> bool {
        self.removing == 0 && self.states.iter().all(|(_, state)| state.is_settled())
    }

    /// Returns name and state of each dependent, in the order of the fields.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, &DependentState)> {
        self.states.iter().map(|(name, state)| (*name, state))
    }

    /// Returns a text about all dependents that are not settled, for a condition:
    /// `app: Ready: 1/2; ingress: waits for app`. Those that have [failed](Readiness::Failed) come
    /// first. Empty when all are settled.
    pub fn summary(&self) -> String {
        summary(&self.states, self.removing)
    }

    /// Returns the action that ends a reconcile: done when everything is ready, with external
    /// resources a requeue after their interval, otherwise a [wait](Action::wait_for) with the
    /// reason `Dependents` and the [summary](Self::summary).
    ///
    /// While a child has [failed](Readiness::Failed), declared conditions show `Stalled` in place
    /// of `Reconciling`, with the child's reason, also while others are on their way. That is no
    /// error: it is not counted as one, and ends when the child recovers.
    ///
    /// Changes of children reconcile their owner in either case. The next check is after the
    /// shortest [`check_after`](Failure::check_after) of the functions that wait, if one has
    /// any.
    ///
    /// # Errors
    /// The failures of all dependents, as [`into_result`](Self::into_result).
    pub fn action(self) -> Result<Action> {
        let applied = self.into_result()?;
        if applied.all_ready() {
            return Ok(applied.poll_after.map_or_else(Action::done, Action::requeue_after));
        }
        let wait = match failed_reason(&applied.states) {
            Some(reason) => Action::stalled(reason.clone(), applied.summary()),
            None => Action::wait_for("Dependents", applied.summary()),
        };
        Ok(match applied.check_after {
            Some(delay) => wait.check_after(delay),
            None => wait,
        })
    }

    /// The failures of all dependents, as one; `None` if none failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns itself if no dependent failed.
    ///
    /// # Errors
    /// The failures of all dependents, as one: the failure whose retry is earliest, with the texts
    /// of the others.
    pub fn into_result(mut self) -> Result<Self> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self),
        }
    }
}

/// Returns the reason of the first dependent that has failed.
fn failed_reason<'a>(
    states: &'a [(&'static str, DependentState)],
) -> Option<&'a Cow<'static, str>> {
    states.iter().find_map(|(_, state)| state.failed_reason())
}

/// Returns a text about what is not settled, failed ones first, or about what is being deleted.
fn summary(states: &[(&'static str, DependentState)], removing: usize) -> String {
    let mut open: Vec<_> = states.iter().filter(|(_, state)| !state.is_settled()).collect();
    open.sort_by_key(|(_, state)| state.failed_reason().is_none());
    if open.is_empty() && removing > 0 {
        let objects = if removing == 1 { "object is" } else { "objects are" };
        return format!("{removing} {objects} being deleted");
    }
    let texts: Vec<String> = open.iter().map(|(name, state)| format!("{name}: {state}")).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_child_is_told_before_those_that_are_on_their_way() {
        let on_its_way = DependentState::NotReady(Readiness::in_progress("Scaling", "1 of 2"));
        let late = DependentState::NotReady(Readiness::failed("TooLate", "too late"));
        let states = [("login", on_its_way), ("app", late), ("door", DependentState::After("app"))];
        assert_eq!(summary(&states, 0), "app: too late; login: 1 of 2; door: waits for app");
        assert_eq!(failed_reason(&states).map(|reason| &**reason), Some("TooLate"));
        let (before, _) = states.split_at(1);
        assert_eq!(failed_reason(before), None, "nothing has failed");
        // An error of an apply is tried again, and is no child that has failed.
        let refused = [("login", DependentState::Failed("409".to_owned()))];
        assert_eq!(failed_reason(&refused), None);
        assert_eq!(summary(&[("login", DependentState::Ready)], 2), "2 objects are being deleted");
    }
}
