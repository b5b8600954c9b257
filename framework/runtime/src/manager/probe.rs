//! Conditions of being alive and ready, as probes and runnables show them.

/// A condition of being alive or ready.
///
/// A line of `/healthz` or `/readyz`: `[+]` for a condition that holds, `[-]` for a condition that
/// does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The condition: `cache websites.example.dev`.
    pub name: String,
    /// Whether the condition holds. One that does not makes the probe answer 503.
    pub ok: bool,
    /// State, or the missing part and the reason.
    pub detail: String,
}

/// All conditions of being ready.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::manager::{Check, ProbeStatus};
///
/// let cache = Check { name: "cache pods".into(), ok: false, detail: "not started".into() };
/// assert!(!ProbeStatus { checks: vec![cache] }.is_ready());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStatus {
    /// The conditions, in the order of the lines of `/readyz`. None at all count as ready.
    pub checks: Vec<Check>,
}

impl ProbeStatus {
    /// Whether all conditions hold.
    ///
    /// Without checks the operator is ready.
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}
