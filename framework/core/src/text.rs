//! Texts within the limits of the Kubernetes API.

/// Cuts `text` to at most `limit` bytes, with an ellipsis.
///
/// A `limit` below the three bytes of the ellipsis gives the ellipsis alone, which is then longer
/// than the limit; no limit of the Kubernetes API is that small.
pub fn shorten(mut text: String, limit: usize) -> String {
    /// Three bytes in UTF-8.
    const ELLIPSIS: char = '…';
    if text.len() <= limit {
        return text;
    }
    let mut end = limit.saturating_sub(ELLIPSIS.len_utf8());
    // Never inside of a character.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push(ELLIPSIS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let text = shorten("ä".repeat(600), 1024);
        assert!(text.len() <= 1024 && text.ends_with("ä…"), "{}", text.len());
        assert_eq!(shorten("short".into(), 1024), "short");
    }
}
