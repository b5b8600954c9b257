//! Command line of a driver: `--server URL --control ADDRESS --kind pod --n 10000 --mode compact
//! --work cache --workers 4 --phases sync,events:60000`.

use std::collections::BTreeMap;

use crate::Delays;

/// The kind of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pods of 8.4 KB.
    Pod,
    /// Custom resources of 1 KB.
    Widget,
}

/// A driver's arguments.
#[derive(Clone, Debug)]
pub struct Args {
    /// URL of the API server.
    pub server: String,
    /// Address of the load generator's control port.
    pub control: String,
    /// The kind.
    pub kind: Kind,
    /// Number of objects.
    pub objects: u64,
    /// Form in which the driver caches objects; each driver has separate forms.
    pub mode: String,
    /// Through a controller, or into the cache only?
    pub controller: bool,
    /// Number of reconciles at once; by default that of the driver's framework.
    pub workers: Option<u16>,
    /// Phases, in order.
    pub phases: Vec<Phase>,
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Until the cache is complete and, with a controller, everything was reconciled once.
    Sync,
    /// `events:COUNT[:WINDOW]`: changes, round robin, at full speed; with a window at most so many
    /// are out without their reconcile, which keeps them from merging.
    Events { count: u64, window: u64 },
    /// `churn:UPDATES`: so many changes of each object, then a look at memory.
    Churn { updates: u64 },
    /// `rate:PER_SECOND:SECONDS`: changes that carry the time of their writing.
    Rate { rate: u64, seconds: u64 },
    /// `relist:CHANGED`: so many objects change unseen, and the watch ends with 410.
    Relist { changed: u64 },
    /// `index:LOOKUPS[:EVENTS]`: lookups by index; under so many changes at full speed, if given.
    Index { lookups: u64, events: u64 },
    /// `idle:SECONDS`: the cost of doing nothing.
    Idle { seconds: u64 },
    /// `failing:PER_SECOND:SECONDS`: this many reconciles per second, of which every tenth fails.
    Failing { rate: u64, seconds: u64 },
    /// `queue:ADDS`: the work queue alone, by a producer and a worker.
    Queue { adds: u64 },
    /// `own:ADDS`: the same by the way that a controller's own source takes.
    Own { adds: u64 },
    /// `delays:KEYS:DUE:SECONDS`: so many keys are delayed; some fall due over so many seconds.
    Delays(Delays),
    /// `flight:MILLISECONDS`: every object is reconciled by a reconcile that sleeps so long.
    Flight { milliseconds: u64 },
    /// `bare:MILLISECONDS`: the same without a controller: a listener on the cache and a task each.
    Bare { milliseconds: u64 },
    /// `tasks:MILLISECONDS`: as many tasks that sleep so long, without a framework.
    Tasks { milliseconds: u64 },
}

impl Args {
    /// Reads the process' arguments.
    ///
    /// # Panics
    /// When they make no sense.
    pub fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let named: BTreeMap<&str, &str> = words
            .chunks_exact(2)
            .map(|pair| (pair[0].trim_start_matches("--"), pair[1].as_str()))
            .collect();
        let get = |name: &str, default: &str| {
            named.get(name).map_or_else(|| default.to_owned(), |value| (*value).to_owned())
        };
        let kind = match get("kind", "pod").as_str() {
            "pod" => Kind::Pod,
            "widget" => Kind::Widget,
            other => panic!("no kind {other:?}: pod or widget"),
        };
        Self {
            server: get("server", "http://127.0.0.1:8090"),
            control: get("control", "127.0.0.1:8091"),
            kind,
            objects: get("n", "10000").parse().expect("--n is a number"),
            mode: get("mode", "compact"),
            controller: get("work", "cache") == "controller",
            workers: named
                .get("workers")
                .map(|value| value.parse().expect("--workers is a number")),
            phases: get("phases", "sync").split(',').map(Phase::read).collect(),
        }
    }
}

impl Phase {
    fn read(text: &str) -> Self {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Vec<u64> =
            words.map(|word| word.parse().expect("a phase's parameters are numbers")).collect();
        let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        match name {
            "sync" => Self::Sync,
            "events" => Self::Events { count: at(0), window: at(1) },
            "churn" => Self::Churn { updates: at(0) },
            "rate" => Self::Rate { rate: at(0), seconds: at(1) },
            "relist" => Self::Relist { changed: at(0) },
            "index" => Self::Index { lookups: at(0), events: at(1) },
            "idle" => Self::Idle { seconds: at(0) },
            "failing" => Self::Failing { rate: at(0), seconds: at(1) },
            "queue" => Self::Queue { adds: at(0) },
            "own" => Self::Own { adds: at(0) },
            "delays" => Self::Delays(Delays { keys: at(0), due: at(1), seconds: at(2) }),
            "bare" => Self::Bare { milliseconds: at(0) },
            "flight" => Self::Flight { milliseconds: at(0) },
            "tasks" => Self::Tasks { milliseconds: at(0) },
            other => panic!("no phase {other:?}"),
        }
    }
}
