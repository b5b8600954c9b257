//! The text of an expression, with lines and columns.

use std::sync::Arc;

/// The text of an expression. Offsets count Unicode code points, as cel-go's do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    text: Arc<str>,
    /// Offset behind each line feed, in code points: the start of every line but the first.
    line_starts: Arc<[u32]>,
}

/// Place in a source: the line from 1, the column in code points from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line from 1.
    pub line: u32,
    /// Column in code points from 0; messages print it from 1.
    pub column: u32,
}

impl Source {
    /// A source with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Source {
        let text = text.into();
        let starts = text.chars().zip(1_u32..).filter(|(c, _)| *c == '\n').map(|(_, next)| next);
        let line_starts = starts.collect();
        Source { text, line_starts }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of an offset in code points.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |index| self.line_starts[index]);
        Position { line: line as u32 + 1, column: offset - start }
    }

    /// Text of a line from 1, without its line feed; empty behind the last one.
    pub fn line(&self, line: u32) -> &str {
        self.text.split('\n').nth(line.saturating_sub(1) as usize).unwrap_or_default()
    }
}
