//! Results of the state machine's decisions.

use std::time::Duration;

use crate::reflector::{ReflectorState, StreamProgress};

/// Judgement of a list that was read to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reflector) enum ListVerdict {
    /// The list counts; with the mark for the target.
    Complete(StreamProgress),
    /// The list is older than a version seen before, as a list that names a version can be.
    Older { newest: String },
    /// The server's store was set back; an earlier version of the store.
    SetBack { had: String },
}

/// Figures of a complete list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reflector) struct ListFigures {
    /// Number of counted items of the whole list, in pages or as a stream.
    pub(in crate::reflector) items: u64,
    /// Time from the beginning of the list to the end.
    pub(in crate::reflector) took: Duration,
}

/// Consequence of an attempt's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reflector) enum NextAction {
    /// The next attempt follows at once.
    AtOnce,
    /// A list follows at once, because the watch has expired, as the text says.
    ListAtOnce(String),
    /// The state is reported, and the next attempt follows after the pause.
    Wait {
        state: ReflectorState,
        pause: Duration,
        /// Whether the target has to be emptied first.
        empties: bool,
    },
}
