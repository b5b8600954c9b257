//! Errors of an expression, displayed as cel-go displays them.

use std::fmt;

use super::source::{Position, Source};

/// An error at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Place that the message is about; `None` when there is no place to name (for the recursion
    /// limit).
    pub position: Option<Position>,
    /// The message, in the words of cel-go.
    pub message: String,
}

/// All errors of an expression: those of its syntax, or those of its types.
///
/// The [`Display`](fmt::Display) is the text that kube-apiserver prints: for each error
/// `ERROR: <input>:LINE:COLUMN: MESSAGE`, the source line and a caret below the column, sorted by
/// place, at most 100 of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    source: Source,
    issues: Vec<Issue>,
}

/// Largest number of errors that are displayed; the same as cel-go's.
const MAX_REPORTED: usize = 100;

/// Length in bytes of the longest source line that is displayed; the same as cel-go's.
const MAX_SNIPPET: usize = 16384;

impl Issues {
    /// No error yet, for this source.
    pub fn new(source: Source) -> Issues {
        Issues { source, issues: Vec::new() }
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// The errors in the order of their discovery.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }

    /// Adds an error about an offset in code points.
    pub fn report(&mut self, offset: u32, message: impl Into<String>) {
        let position = match offset {
            // The place of a part that is missing: a column before the first.
            u32::MAX => Some(Position { line: 1, column: u32::MAX }),
            _ => Some(self.source.position(offset)),
        };
        self.issues.push(Issue { position, message: message.into() });
    }

    /// Adds an error that names no place.
    pub fn report_without_position(&mut self, message: impl Into<String>) {
        self.issues.push(Issue { position: None, message: message.into() });
    }

    /// `self` if there is an error, `value` otherwise.
    pub fn into_result<T>(self, value: T) -> Result<T, Issues> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: Vec<&Issue> = self.issues.iter().take(MAX_REPORTED).collect();
        shown.sort_by_key(|issue| issue.position.map(|p| (p.line, p.column.wrapping_add(1))));
        for (index, issue) in shown.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fmt_issue(f, &self.source, issue)?;
        }
        match self.issues.len().checked_sub(MAX_REPORTED) {
            Some(more @ 1..) => write!(f, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Issues {}

/// Writes an error with its source line and caret. A wide character has a wide dot above the caret
/// line, so that the columns agree in a terminal.
fn fmt_issue(f: &mut fmt::Formatter<'_>, source: &Source, issue: &Issue) -> fmt::Result {
    let Some(position) = issue.position else {
        return write!(f, "ERROR: <input>:-1:0: {}", issue.message);
    };
    if source.text().is_empty() {
        // An empty source has no line that could be shown, and cel-go counts its column as -1.
        return write!(f, "ERROR: <input>:1:0: {}", issue.message);
    }
    write!(
        f,
        "ERROR: <input>:{}:{}: {}",
        position.line,
        position.column.wrapping_add(1),
        issue.message
    )?;
    let line = source.line(position.line);
    if line.len() > MAX_SNIPPET {
        return Ok(());
    }
    let line = line.replace('\t', " ");
    write!(f, "\n | {line}\n | ")?;
    let mut rest = line.chars();
    let before = if position.column == u32::MAX { 0 } else { position.column };
    for c in rest.by_ref().take(before as usize) {
        f.write_str(if c.len_utf8() > 1 { "．" } else { "." })?;
    }
    f.write_str(if rest.next().is_some_and(|c| c.len_utf8() > 1) { "＾" } else { "^" })
}
