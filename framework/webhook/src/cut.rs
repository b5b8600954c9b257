//! Texts of limited length.

/// Most characters of a text that denies or fails.
pub(crate) const LONGEST: usize = 4 * 1024;

/// Returns the first `most` characters of a text.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}
