//! Why a controller does not come to rest, in words: for tests that wait for it.

/// Why a controller does not come to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unrest {
    /// What is going on now, a sentence for each object, by key: which it is, why it was reconciled,
    /// how its last reconcile failed. A selection when there are very many.
    pub now: Vec<String>,
    /// Those of them that are reconciled without end: more than 50 times a minute though nobody changes
    /// their spec, and not by timers and resyncs alone.
    pub endless: Vec<String>,
}
