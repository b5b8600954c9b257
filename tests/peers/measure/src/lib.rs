//! The phases of every Rust driver, and the control connection to the load generator.
//!
//! A driver gets a script of phases; for each phase the driver prints a line of JSON. The work of a
//! framework is behind [`Subject`], so that the same code measures all frameworks. The Go driver
//! (`go/`) has a separate implementation of the same phases.

mod control;
mod delays;
mod figures;
mod meter;
mod parts;
mod run;
mod script;
mod widget;

pub use control::{Control, Started};
pub use delays::{Delayed, Delays};
pub use figures::{Line, Window, nanos, resident};
pub use meter::Meter;
pub use run::{Subject, Work, run};
pub use script::{Args, Kind, Phase};
pub use widget::{WidgetCondition, WidgetStatus};

/// The version in an object's `resourceVersion`.
pub fn version(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// An entry of the hash over a whole cache: FNV-1a of `namespace/name=version`. Entries are added
/// up with wrapping, so their order does not matter.
pub fn fingerprint(namespace: &str, name: &str, version: &str) -> u64 {
    let parts = [namespace, "/", name, "=", version];
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The annotation that carries the time of writing, in nanoseconds of the monotonic clock.
pub const STAMP: &str = "peers.example.dev/stamp";
