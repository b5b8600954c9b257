//! What must not suffer with what is bad (G-C9): the other objects of a kind, and the other kinds.

use super::Violation;

/// Objects were read: those that the writer made bad do not decode, and all others do.
///
/// # Errors
/// When a good one does not decode (G-C9), or a bad one does (G-C1).
pub fn decodes(who: &str, is_bad: bool, error: Option<&str>) -> Result<(), Violation> {
    match (is_bad, error) {
        (false, Some(error)) => {
            let text = format!("a good object does not decode: {error}");
            Err(Violation::new("G-C9", who, text))
        }
        (true, None) => Err(Violation::new("G-C1", who, "an object decodes that cannot")),
        _ => Ok(()),
    }
}

/// A kind that is well was looked at shortly after a write of it, while others were ill.
///
/// # Errors
/// What was late, as the violation of isolation that it is.
pub fn undisturbed(settled: Result<(), Violation>) -> Result<(), Violation> {
    settled.map_err(|violation| Violation {
        promise: "G-C9",
        text: format!("{} (shortly after a write, while other kinds were ill)", violation.text),
        ..violation
    })
}
