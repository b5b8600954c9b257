//! Plans: the disturbances of one run, and how they are written.

// DESIGN.md, 196: A disturbance is named by the number of a request or of a change

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest time that an event is held.
const LONGEST_HOLD: Duration = Duration::from_secs(45);
/// Time that a kind's watches lag behind, and that a late request takes.
const LAG: Duration = Duration::from_secs(10);
/// Time by which an answer is late, and for which first views are stale.
const PAUSE: Duration = Duration::from_secs(20);
/// Time between a crash and the next start: about that until a lease passes on, in which users go
/// on.
pub(super) const RESTART: Duration = Duration::from_secs(10);
/// Time for which a replica cannot renew its lease: longer than another one waits for it.
const HAND_OVER: Duration = Duration::from_secs(40);

/// A disturbance of one request of the operator, or of the delivery of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    /// The operator crashes; the request is not executed.
    CrashBefore,
    /// The operator crashes once the request has been executed.
    CrashAfter,
    /// The request is executed, and its connection is cut without an answer.
    LoseAnswer,
    /// The request is refused with this code.
    Refuse(u16),
    /// The request is executed, and the answer has this code.
    Fail(u16),
    /// The request arrives ten seconds late.
    Late,
    /// The request is executed, and its answer arrives twenty seconds late.
    Pause,
    /// Another client edits the object before the request is executed.
    Edit,
    /// The object is deleted and created again, without its status, before the request is executed.
    Replace,
    /// The object is deleted just after this change, and created again, without its status, once
    /// the operator has removed its finalizers.
    Recreate,
    /// The replica that holds the lease cannot renew it any more, and another one takes over.
    HandOver,
    /// The watches of the kind are held from this change to the next one of the same object, or 45
    /// s.
    Hold,
    /// The watches of the kind are held for ten seconds from this change.
    Lag,
    /// The watches of the kind end with 410 before they deliver this change.
    Relist,
    /// The operator crashes after this change, and first views are as they were after an earlier
    /// change of the same object, the last one or one before it.
    StaleStart(u8),
}

/// A disturbance, and the number of the request or change that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlannedDisturbance {
    pub(super) kind: Disturbance,
    pub(super) at: usize,
}

/// The disturbances of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) steps: Vec<PlannedDisturbance>,
}

/// Names of the disturbances in a plan's text.
const NAMES: [(&str, Disturbance); 21] = [
    ("crash-before", Disturbance::CrashBefore),
    ("crash-after", Disturbance::CrashAfter),
    ("lose-answer", Disturbance::LoseAnswer),
    ("refuse-429", Disturbance::Refuse(429)),
    ("refuse-500", Disturbance::Refuse(500)),
    ("refuse-504", Disturbance::Refuse(504)),
    ("fail-500", Disturbance::Fail(500)),
    ("fail-504", Disturbance::Fail(504)),
    ("refuse-409", Disturbance::Refuse(409)),
    ("late", Disturbance::Late),
    ("pause", Disturbance::Pause),
    ("edit", Disturbance::Edit),
    ("replace", Disturbance::Replace),
    ("recreate", Disturbance::Recreate),
    ("hand-over", Disturbance::HandOver),
    ("hold", Disturbance::Hold),
    ("lag", Disturbance::Lag),
    ("relist", Disturbance::Relist),
    ("stale-start", Disturbance::StaleStart(1)),
    ("stale-start-2", Disturbance::StaleStart(2)),
    ("stale-start-3", Disturbance::StaleStart(3)),
];

impl Disturbance {
    /// Whether the number of a step is that of a change rather than of a request.
    pub(super) fn is_of_change(self) -> bool {
        matches!(self, Self::Hold | Self::Lag | Self::Relist | Self::StaleStart(_) | Self::Recreate)
    }

    /// Whether another object of the same name takes the place of one.
    pub(super) fn is_replacement(self) -> bool {
        matches!(self, Self::Replace | Self::Recreate)
    }

    /// Returns the virtual time after which the disturbance is over by itself.
    pub(super) fn lasts(self) -> Duration {
        match self {
            // Longer ones find faults in operators that have none.
            Self::Hold => LONGEST_HOLD,
            Self::Lag | Self::Late => LAG,
            Self::Pause => PAUSE,
            Self::CrashBefore | Self::CrashAfter => RESTART,
            Self::StaleStart(_) => RESTART + PAUSE,
            Self::HandOver => HAND_OVER,
            _ => Duration::ZERO,
        }
    }

    /// Returns the name in a plan's text.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("?", |(name, _)| name)
    }

    /// Returns the disturbance of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Returns the sentence about the disturbance of `subject`.
    pub(super) fn described(self, subject: &str) -> String {
        match self {
            Self::CrashBefore => {
                format!("the operator crashed before {subject} was executed, and was started again")
            }
            Self::CrashAfter => format!(
                "the operator crashed just after {subject} was executed, and was started again"
            ),
            Self::LoseAnswer => format!("{subject} was executed, but its answer was lost"),
            Self::Refuse(code) => format!("{subject} was refused with {code}"),
            Self::Fail(code) => format!("{subject} was executed, but answered with {code}"),
            Self::Late => format!("{subject} reached the server ten seconds late"),
            Self::Pause => format!("the answer to {subject} came twenty seconds late"),
            Self::Replace => format!(
                "the object was deleted and created again, without its status, just before {subject}"
            ),
            Self::Recreate => format!(
                "the object was deleted just after {subject}, and was created again, without its status, once its \
                 finalizers were gone"
            ),
            Self::HandOver => format!(
                "from {subject} on the replica could not renew its lease, and another one took over"
            ),
            Self::StaleStart(back) => format!(
                "the operator crashed after {subject}, and for twenty seconds of its next start caches \
                 showed the state of {back} changes of that object before"
            ),
            Self::Edit => format!("another client edited the object just before {subject}"),
            Self::Hold => format!(
                "the event of {subject} was held until the object's next one, for 45 s at most"
            ),
            Self::Lag => format!("events of the kind were held for ten seconds from {subject}"),
            Self::Relist => format!("the watch ended with 410 before {subject} was delivered"),
        }
    }
}

impl Schedule {
    /// Whether its run has two replicas with a lease.
    pub(super) fn is_replicated(&self) -> bool {
        self.steps.iter().any(|step| step.kind == Disturbance::HandOver)
    }

    /// Returns the plans with one step less.
    pub(super) fn shorter(&self) -> Vec<Self> {
        let without = |index: usize| {
            let mut steps = self.steps.clone();
            steps.remove(index);
            Self { steps }
        };
        // The last one is the finding of no disturbance, which undisturbed runs are judged for.
        if self.steps.len() < 2 { Vec::new() } else { (0..self.steps.len()).map(without).collect() }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}@{}", step.kind.name(), step.at)?;
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let step = |text: &str| {
            let (name, at) = text.split_once('@')?;
            Some(PlannedDisturbance { kind: Disturbance::named(name)?, at: at.parse().ok()? })
        };
        let steps = text.split(',').filter(|text| !text.is_empty());
        let steps =
            steps.map(|text| step(text).ok_or_else(|| format!("`{text}` is not a step of a plan")));
        Ok(Self { steps: steps.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        for text in
            ["", "crash-after@17", "hold@3,crash-before@12", "fail-504@1", "stale-start-2@0"]
        {
            let plan: Schedule = text.parse().expect("the text is a plan");
            assert_eq!(plan.to_string(), text);
        }
        for text in ["crash-after", "crash@1", "late@x"] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_disturbance_has_a_name() {
        for (name, kind) in NAMES {
            assert_eq!((kind.name(), Disturbance::named(name)), (name, Some(kind)));
        }
    }

    #[test]
    fn a_plan_is_made_shorter_by_one_step_at_a_time() {
        let plan: Schedule = "hold@3,late@5".parse().expect("the text is a plan");
        let shorter: Vec<String> = plan.shorter().iter().map(Schedule::to_string).collect();
        assert_eq!(shorter, ["late@5", "hold@3"]);
        assert_eq!(plan.shorter()[0].shorter(), []);
    }
}
