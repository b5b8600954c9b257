//! `Warning` headers: each text once, and bounded in number and length as upstream bounds them.

use std::collections::BTreeSet;

/// Characters of all texts from which on they are cut.
const TOTAL: usize = 4 * 1024;
/// Characters of a text that is cut.
const EACH: usize = 256;

/// Returns the values of the headers for some texts.
///
/// As long as all of them fit into 4,096 characters they are whole. Beyond that each is cut at 256,
/// and those that come after 4,096 characters are dropped. Clients decide how many there are:
/// without a bound a body of unknown fields makes thousands of headers.
pub(super) fn headers(texts: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    // Upstream drops a text that is no header, instead of changing the text.
    let is_sent = |text: &String| !text.is_empty() && !text.contains(char::is_control);
    let texts: Vec<String> =
        texts.into_iter().filter(|text| is_sent(text) && seen.insert(text.clone())).collect();
    let whole: usize = texts.iter().map(|text| text.chars().count()).sum();
    if whole <= TOTAL {
        return texts.iter().map(|text| value(text)).collect();
    }
    let mut written = 0;
    let mut values = Vec::new();
    for text in texts {
        if written >= TOTAL {
            break;
        }
        let cut: String = text.chars().take(EACH).collect();
        written += cut.chars().count();
        values.push(value(&cut));
    }
    values
}

/// Returns the value of the header for a text, as a single quoted line.
fn value(text: &str) -> String {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("299 - \"{quoted}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_sent_once_and_never_in_two_lines() {
        let texts = ["a \"b\"", "a \"b\"", "", "two\nlines"];
        let texts = texts.into_iter().map(str::to_owned).collect();
        assert_eq!(headers(texts), [r#"299 - "a \"b\"""#]);
    }

    #[test]
    fn many_texts_are_cut_and_dropped() {
        let few: Vec<String> = (0..8).map(|i| format!("{i}{}", "x".repeat(500))).collect();
        assert!(headers(few.clone()).iter().all(|header| header.len() > 500));
        let many: Vec<String> = (0..60_000).map(|i| format!("{i:06}{}", "x".repeat(500))).collect();
        let headers = headers(many);
        assert_eq!(headers.len(), 16);
        assert!(headers.iter().all(|header| header.len() == EACH + 8));
    }
}
