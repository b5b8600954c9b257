//! Reasons of a reconcile: the names of all causes since the object was last reconciled.
//!
//! A reconcile is given an object, never an event: two changes may lead to one reconcile, and a
//! restart leads to a reconcile without any change. So reasons are for people who look for the
//! cause why an operator is busy, and for work that only a single source makes necessary; correct
//! results follow from the objects.
//!
//! Each reason is a bit, and adds of a key merge by `or`: remembering them costs nothing. Not
//! included: the single events, and their order.

use std::fmt;
use std::sync::Arc;

use crate::workqueue::AddOptions;

/// Most reasons of a controller; further sources share the last reason.
const MAX_REASONS: usize = 64;
/// Name of the reason that all sources beyond the last bit share.
const FURTHER: &str = "a further source";

/// A reason: a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(u8);

impl Reason {
    /// The object existed when the controller started, or when the cache first showed it.
    pub(crate) const STARTED: Self = Self(0);
    /// The object was created, or changed.
    pub(crate) const CHANGED: Self = Self(1);
    /// The object was deleted and may have been created again.
    pub(crate) const DELETED: Self = Self(2);
    /// The cache, or the controller's own period, delivers the object again without a change.
    pub(crate) const RESYNC: Self = Self(3);
    /// The last reconcile asked for this one.
    pub(crate) const REQUEUE: Self = Self(4);
    /// The last reconcile failed.
    pub(crate) const RETRY: Self = Self(5);
    /// [`Context::requeue`](crate::controller::Context::requeue).
    pub(crate) const ASKED: Self = Self(6);
    /// The awaited namespace was created or deleted.
    pub(crate) const NAMESPACE: Self = Self(7);
    /// An object that the last reconcile read has changed.
    pub(crate) const READ: Self = Self(8);

    /// Names of the reasons above.
    const FIXED: [&'static str; 9] = [
        "started",
        "changed",
        "deleted",
        "resync",
        "requeue",
        "retry",
        "asked by another reconcile",
        "namespace",
        "reads",
    ];

    /// Returns the reason as the queue's bit.
    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }

    /// Returns an add for this reason.
    pub(crate) fn add_options(self) -> AddOptions {
        AddOptions::new().reasons(self.bit())
    }
}

/// The names of one controller's reasons.
#[derive(Clone, Debug)]
pub(crate) struct ReasonNames {
    names: Vec<String>,
    /// Reasons that are no change: the object is merely due by time.
    not_changes: u64,
    /// Reasons with a chosen interval, of a second at least.
    timed: u64,
}

impl Default for ReasonNames {
    fn default() -> Self {
        let names = Reason::FIXED.map(str::to_owned).into();
        let not_changes = [Reason::STARTED, Reason::RESYNC, Reason::REQUEUE, Reason::RETRY];
        let not_changes = not_changes.iter().fold(0, |bits, reason| bits | reason.bit());
        Self { names, not_changes, timed: Reason::RESYNC.bit() }
    }
}

impl ReasonNames {
    /// Returns a new reason of that name; the existing reason if the name is known.
    pub(crate) fn add(&mut self, name: impl Into<String>) -> Reason {
        let name = name.into();
        let known = self.names.iter().position(|known| *known == name);
        let place = known.unwrap_or_else(|| {
            // The last place is shared by all further sources.
            match self.names.len() {
                few if few < MAX_REASONS - 1 => self.names.push(name),
                few if few < MAX_REASONS => self.names.push(FURTHER.to_owned()),
                _ => {}
            }
            self.names.len() - 1
        });
        Reason(u8::try_from(place).unwrap_or(u8::MAX))
    }

    /// As [`add`](Self::add), for a source of points in time and not of changes.
    pub(crate) fn add_timed(&mut self, name: impl Into<String>) -> Reason {
        let reason = self.add(name);
        // The last bit is shared, perhaps with a source of changes.
        if usize::from(reason.0) < MAX_REASONS - 1 {
            self.not_changes |= reason.bit();
            self.timed |= reason.bit();
        }
        reason
    }

    /// Whether all these reasons come from chosen intervals.
    pub(crate) fn are_timed(&self, reasons: u64) -> bool {
        reasons != 0 && reasons & !self.timed == 0
    }

    /// Whether any of these reasons is a change.
    pub(crate) fn includes_change(&self, reasons: u64) -> bool {
        reasons & !self.not_changes != 0
    }
}

/// Reasons of a reconcile: the names of all causes since the object was last reconciled. A set of
/// names; cheap to clone.
///
/// - `started`: the object existed when the controller started; `changed`: the object was created
///   or changed; `deleted`: the object was deleted and then created again; `resync`: the period is
///   over.
/// - `requeue`: the last reconcile asked for a requeue; `retry`: the last reconcile failed;
///   `asked by another reconcile`: [`Context::requeue`](crate::controller::Context::requeue);
///   `namespace`: an awaited namespace was created or deleted.
/// - `reads Secret shop/tls`: that object, which the last reconcile read by
///   [`Context::watch`](crate::controller::Context::watch), has changed; `reads` stands for all of
///   them. At most four are named.
/// - `owned deployments.apps`, `watched configmaps`, `trigger NAME`, `poll NAME`, `timer NAME`:
///   that source.
///
/// A change can be a reason of two reconciles, and a restart loses all reasons: no necessary work
/// may depend on a reason.
#[derive(Clone)]
pub struct Reasons {
    bits: u64,
    names: Arc<ReasonNames>,
    /// Changes of objects that were read.
    reads: Vec<Arc<str>>,
}

impl Reasons {
    pub(crate) fn of(bits: u64, names: &Arc<ReasonNames>) -> Self {
        Self { bits, names: Arc::clone(names), reads: Vec::new() }
    }

    /// Returns the reasons with the names of changes in the place of [`Reason::READ`].
    pub(crate) fn with_reads(self, reads: Vec<Arc<str>>) -> Self {
        Self { reads, ..self }
    }

    /// Whether that name is among them; `false` also for a name that the controller does not have.
    pub fn contains(&self, name: &str) -> bool {
        let is_read = || name == Reason::FIXED[usize::from(Reason::READ.0)];
        self.iter().any(|known| known == name) || (is_read() && !self.reads.is_empty())
    }

    /// The names: first the framework's, then those of the sources in the order in which the
    /// builder adds them, then the changes of objects that were read.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        // The changes stand in the place of their common name.
        let bits = if self.reads.is_empty() { self.bits } else { self.bits & !Reason::READ.bit() };
        let named = self.names.names.iter().enumerate();
        let named = named.filter(move |(place, _)| bits >> place & 1 == 1).map(|(_, name)| &**name);
        named.chain(self.reads.iter().map(|read| &**read))
    }

    /// The number of names that [`iter`](Self::iter) returns.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether no reason is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Shows the names, separated by commas.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl PartialEq for Reasons {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Reasons {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_named_in_the_order_of_their_sources() {
        let mut names = ReasonNames::default();
        let owned = names.add("owned deployments.apps");
        let watched = names.add("watched configmaps");
        let bits = watched.bit() | Reason::CHANGED.bit() | owned.bit();
        let reasons = Reasons::of(bits, &Arc::new(names));
        assert_eq!(reasons.to_string(), "changed, owned deployments.apps, watched configmaps");
        assert_eq!(reasons.len(), 3);
        assert!(reasons.contains("changed") && !reasons.contains("retry"));
        assert!(!reasons.contains("no such source"));
    }

    #[test]
    fn one_name_is_one_reason() {
        let mut names = ReasonNames::default();
        assert_eq!(names.add("watched secrets"), names.add("watched secrets"));
        assert_eq!(names.add("retry"), Reason::RETRY);
    }

    #[test]
    fn time_is_no_change_and_everything_else_may_be_one() {
        let mut names = ReasonNames::default();
        let timer = names.add_timed("timer probe").bit();
        let owned = names.add("owned configmaps").bit();
        let not_changes =
            timer | Reason::RETRY.bit() | Reason::RESYNC.bit() | Reason::REQUEUE.bit();
        assert!(!names.includes_change(not_changes | Reason::STARTED.bit()));
        assert!(names.are_timed(timer) && names.are_timed(timer | Reason::RESYNC.bit()));
        assert!(
            !names.are_timed(0) && !names.are_timed(not_changes) && !names.are_timed(timer | owned)
        );
        for reason in [owned, Reason::CHANGED.bit(), Reason::ASKED.bit(), Reason::DELETED.bit()] {
            assert!(names.includes_change(not_changes | reason));
        }
        let last = (0..100).map(|n| names.add_timed(format!("timer {n}"))).last();
        let last = last.expect("one").bit();
        assert!(names.includes_change(last) && !names.are_timed(last), "others share it");
    }

    #[test]
    fn sources_beyond_the_last_bit_share_it() {
        let mut names = ReasonNames::default();
        let reasons: Vec<_> = (0..100).map(|n| names.add(format!("trigger {n}"))).collect();
        let all = reasons.iter().fold(0, |bits, reason| bits | reason.bit());
        assert_eq!(all.count_ones() as usize, MAX_REASONS - Reason::FIXED.len());
        assert_eq!(reasons[99], reasons[60]);
        let reasons_of_all = Reasons::of(reasons[99].bit(), &Arc::new(names));
        assert_eq!(reasons_of_all.to_string(), FURTHER);
    }
}
