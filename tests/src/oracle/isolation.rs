//! Isolation (G-C9): parts that must not suffer with a bad object or kind.

use super::Violation;

/// Checks an object that was read: those that the writer made bad do not decode, and all others do.
///
/// # Errors
/// When a good object does not decode (G-C9: a bad object delays and stops no other), or a bad
/// object does (G-C1: a cache shows the server's states).
pub fn decodes(observer: &str, is_bad: bool, error: Option<&str>) -> Result<(), Violation> {
    match (is_bad, error) {
        (false, Some(error)) => {
            let text = format!("a good object does not decode: {error}");
            Err(Violation::new("G-C9", observer, text))
        }
        (true, None) => Err(Violation::new("G-C1", observer, "an object decodes that cannot")),
        _ => Ok(()),
    }
}

/// Checks a healthy kind shortly after a write of that kind, while others were failing.
///
/// # Errors
/// The late state, as a violation of isolation.
pub fn undisturbed(settled: Result<(), Violation>) -> Result<(), Violation> {
    settled.map_err(|violation| Violation {
        promise: "G-C9",
        text: format!("{} (shortly after a write, while other kinds were ill)", violation.text),
        ..violation
    })
}
