//! Models of where threads meet in the cache, in the work queue and at the leader's gate: their own
//! source, compiled over primitives whose every interleaving loom tries (up to a number of
//! preemptions). A lost wake-up is a deadlock, and loom reports deadlocks.
//!
//! `models` runs all, each in a separate process, because a model that fails may abort;
//! `models NAME` runs one, `models --first` ends at the first failed model. Ends with 10 when a
//! model failed. `run` does this for the unchanged source and for each mutant of `mutants.txt`.

mod apply_queue;
mod conformance;
mod environment;
mod lease;
mod queue;
mod shared;
mod store;
mod sync;

include!(concat!(env!("OUT_DIR"), "/delta.in"));
include!(concat!(env!("OUT_DIR"), "/fifo.in"));
include!(concat!(env!("OUT_DIR"), "/workqueue.in"));

/// Stand-in of `crate::error` for the modelled source.
mod error {
    pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

    #[derive(Debug)]
    pub enum ErrorKind {
        NotLeader,
    }

    #[derive(Debug)]
    pub struct Error;

    impl Error {
        pub fn new(_: ErrorKind, _: String) -> Self {
            Self
        }
    }
}

/// Stand-in of `crate::client` for the modelled source.
mod client {
    use std::time::Duration;

    use crate::error::Error;

    include!(concat!(env!("OUT_DIR"), "/in_flight.in"));

    pub(crate) use in_flight::{InFlightWrites, WritePermit};

    pub trait WriteGate {
        fn admit(&self) -> Result<Option<Duration>, Error>;
        fn begin_write(&self) -> Result<WritePermit, Error>;
    }
}

/// Stand-in of `crate::resource` for the modelled source.
mod resource {
    pub type ObjectKey = &'static str;
}

pub use environment::{clock, metrics, rng};

use std::process::{Command, ExitCode};

type Model = (&'static str, fn());

fn models() -> Vec<Model> {
    [
        apply_queue::MODELS,
        shared::MODELS,
        queue::MODELS,
        store::MODELS,
        lease::MODELS,
        conformance::MODELS,
    ]
    .concat()
}

/// Tries every interleaving of `model` with at most `preemptions` of them forced.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let ends_early = argument.as_deref() == Some("--first");
    if let Some(name) = argument.filter(|_| !ends_early) {
        let Some((_, model)) = models().into_iter().find(|(other, _)| *other == name) else {
            eprintln!("there is no model {name}");
            return ExitCode::from(2);
        };
        model();
        return ExitCode::SUCCESS;
    }
    let own = std::env::current_exe().expect("the path of this program");
    let mut failed = 0;
    for (name, _) in models() {
        let output = Command::new(&own).arg(name).output().expect("this program runs again");
        if output.status.success() {
            println!("{name}: holds");
        } else {
            failed += 1;
            let text = String::from_utf8_lossy(&output.stderr);
            let why =
                text.lines().find(|line| !line.trim().is_empty() && !line.contains("panicked"));
            println!("{name}: FAILED: {}", why.unwrap_or("no words"));
            if ends_early {
                break;
            }
        }
    }
    if failed > 0 { ExitCode::from(10) } else { ExitCode::SUCCESS }
}
