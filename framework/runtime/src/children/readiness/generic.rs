//! Rules for all kinds: observed generation, standard conditions.

use serde_json::Value;

use super::Readiness;

/// A condition, borrowed from a status of any type.
pub(super) struct BorrowedCondition<'a> {
    pub(super) type_: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl BorrowedCondition<'_> {
    /// Whether it is of that type, and has that status.
    pub(super) fn is(&self, type_: &str, status: &str) -> bool {
        self.type_ == type_ && self.status == status
    }

    /// In progress, for the condition's reason.
    pub(super) fn in_progress(&self) -> Readiness {
        Readiness::in_progress(self.reason.to_owned(), self.message)
    }

    /// Failed, for the condition's reason.
    pub(super) fn failed(&self) -> Readiness {
        Readiness::failed(self.reason.to_owned(), self.message)
    }
}

/// The parts of a status that all kinds may have.
#[derive(Default)]
pub(super) struct CommonStatus<'a> {
    /// `status.observedGeneration`.
    pub(super) observed: Option<i64>,
    /// `status.conditions`.
    pub(super) conditions: Vec<BorrowedCondition<'a>>,
}

/// Returns the readiness by observed generation and the conditions `Reconciling` and `Stalled`;
/// `None` if they decide nothing.
pub(super) fn common(generation: Option<i64>, status: &CommonStatus<'_>) -> Option<Readiness> {
    if let (Some(generation), Some(observed)) = (generation, status.observed)
        && observed != generation
    {
        let message =
            format!("generation is {generation}, but latest observed generation is {observed}");
        return Some(Readiness::in_progress("LatestGenerationNotObserved", message));
    }
    status.conditions.iter().find_map(|condition| {
        if condition.is("Reconciling", "True") {
            return Some(condition.in_progress());
        }
        condition.is("Stalled", "True").then(|| condition.failed())
    })
}

/// Returns the readiness by the condition `Ready`; ready without one.
pub(super) fn by_ready_condition(status: &CommonStatus<'_>) -> Readiness {
    match status.conditions.iter().find(|condition| condition.type_ == "Ready") {
        Some(condition) if condition.status != "True" => condition.in_progress(),
        _ => Readiness::Ready,
    }
}

/// Reads the shared parts of a status; parts of other types count as missing.
pub(super) fn read(status: &Value) -> CommonStatus<'_> {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions = conditions.filter_map(|condition| {
        let text = |member: &str| condition[member].as_str();
        Some(BorrowedCondition {
            type_: text("type")?,
            status: text("status").unwrap_or("Unknown"),
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
        })
    });
    CommonStatus {
        observed: status["observedGeneration"].as_i64(),
        conditions: conditions.collect(),
    }
}
