//! Settings of a rollout, for both ways in which one is described.

use std::time::Duration;

/// Children that get a change before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    pub(super) count: usize,
    pub(super) pause: Option<Duration>,
}

impl Canary {
    /// The last `count` children get the change first, and the others when these have been ready
    /// for `pause`.
    ///
    /// The pause begins anew when one of them stops being ready.
    pub fn pause_for(count: usize, pause: Duration) -> Self {
        Self { count, pause: Some(pause) }
    }

    /// The last `count` children get the change first, and the others when a person approves it: by
    /// the annotation [`PROMOTE`](super::PROMOTE) of the object, with the name of the revision, or
    /// several names with commas between them. The approval counts while the canaries are ready,
    /// and each time that the revision is wanted: remove the annotation afterwards.
    ///
    /// [`RolloutStatus::revision`](super::RolloutStatus::revision) is that name; it belongs into a
    /// condition or an Event.
    pub fn until_promoted(count: usize) -> Self {
        Self { count, pause: None }
    }
}

/// Settings of a rollout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(super) max_unavailable: usize,
    pub(super) partition: usize,
    pub(super) canary: Option<Canary>,
    pub(super) deadline: Option<Duration>,
    pub(super) history: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_unavailable: 1, partition: 0, canary: None, deadline: None, history: 10 }
    }
}

/// The methods that change the field `settings`: the same for a [`Rollout`](super::Rollout) and for
/// the field of a graph.
macro_rules! rollout_settings {
    () => {
        /// Sets the most children that may be unready while a ready one is updated. Default: 1.
        /// Zero counts as 1.
        ///
        /// Children that are not ready for other reasons count, too.
        pub fn max_unavailable(mut self, count: usize) -> Self {
            self.settings.max_unavailable = count.max(1);
            self
        }

        /// Leaves the first `count` children at their revisions. Default: 0.
        ///
        /// A child below the partition that is missing is made from the last revision in which all
        /// children were ready.
        pub fn partition(mut self, count: usize) -> Self {
            self.settings.partition = count;
            self
        }

        /// Updates some children before the others. Default: none.
        ///
        /// The first revision of an object has no canaries, and neither has a rollback.
        pub fn canary(mut self, canary: $crate::rollout::Canary) -> Self {
            self.settings.canary = Some(canary).filter(|canary| canary.count > 0);
            self
        }

        /// Rolls the change back when a child is not ready that long after it got the revision.
        /// Default: never.
        ///
        /// All children go back to the last revision in which all of them were ready; without one
        /// the change stops until all children that have it are ready. A child that was ready in
        /// the revision, and one that is made after all were ready, count for nothing here. A child
        /// that the API server refuses for that long (422 or 403) counts if there is such a
        /// revision; it is noticed at the next retry. Reported by an Event `RolledBack`. The same
        /// state is not tried again; see [`ROLLED_BACK`](crate::rollout::ROLLED_BACK).
        pub fn deadline(mut self, deadline: std::time::Duration) -> Self {
            self.settings.deadline = Some(deadline);
            self
        }

        /// Sets the number of revisions that are kept beside those in use. Default: 10, as of a
        /// `StatefulSet`.
        ///
        /// The revision that a rollback leads to is always kept.
        pub fn history(mut self, count: usize) -> Self {
            self.settings.history = count;
            self
        }
    };
}

pub(super) use rollout_settings;
