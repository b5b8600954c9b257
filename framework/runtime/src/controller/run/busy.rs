//! Report of the objects that keep a controller from coming to rest, for tests that wait for rest.

/// Report of the objects that keep a controller from coming to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusyReport {
    /// Current activity, a sentence for each object, sorted by key: the object, the reasons of the
    /// reconciles, the last failure. A selection when there are very many.
    pub now: Vec<String>,
    /// The part of `now` about objects that are reconciled endlessly: more than 50 times a minute
    /// without a change of their spec, and not by timers and resyncs alone.
    pub endless: Vec<String>,
}
