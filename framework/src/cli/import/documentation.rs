//! Descriptions as doc comments.

/// Doc comment of an item, and the description where that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Documentation {
    /// Lines of the comment, without `///`.
    pub(super) lines: Vec<String>,
    /// The description, if the comment does not print unchanged.
    pub(super) description: Option<String>,
}

impl Documentation {
    /// Creates the documentation of a description.
    ///
    /// A doc comment is Markdown that rustdoc compiles: a block of code is a test. So blocks are
    /// marked as text, and indented lines, which are blocks as well, begin at the margin.
    pub(super) fn of(description: &str) -> Self {
        if description.is_empty() {
            return Self::default();
        }
        let mut is_block = false;
        let mut lines = Vec::new();
        for line in description.split('\n') {
            // The derives refuse markers for Go in comments, as they would have no effect.
            if is_marker(line) {
                continue;
            }
            let mut line = line.replace('\t', "    ").trim_end().to_owned();
            if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
                let fence = line.trim_start()[..3].to_owned();
                line = if is_block { fence } else { format!("{fence}text") };
                is_block = !is_block;
            } else if !is_block && line.starts_with("    ") {
                line = line.trim_start().to_owned();
            }
            lines.push(line);
        }
        if is_block {
            lines.push("```".to_owned());
        }
        let is_same = lines.join("\n") == description
            && description.trim_matches(|c: char| c.is_ascii_whitespace()) == description
            // A heading would be taken as the title.
            && !description.starts_with('#');
        if description.trim().is_empty() {
            lines.clear();
        }
        Self { lines, description: (!is_same).then(|| description.to_owned()) }
    }

    /// Whether the text of the comment differs, and not only in white space and heading.
    pub(super) fn is_changed(&self) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        self.description.as_ref().is_some_and(|text| words(text) != words(&self.lines.join("\n")))
    }

    /// Adds the lines of the comment.
    pub(super) fn print(&self, indent: &str, out: &mut String) {
        for line in &self.lines {
            let space = if line.is_empty() { "" } else { " " };
            out.push_str(&format!("{indent}///{space}{line}\n"));
        }
    }
}

/// Whether a line is a marker such as `+optional` or `+kubebuilder:validation:Minimum=1`, or looks
/// like one.
fn is_marker(line: &str) -> bool {
    let word = line.trim_start().strip_prefix('+');
    word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::Documentation;

    #[test]
    fn a_marker_of_kubebuilder_is_left_out_of_the_comment_and_stays_in_the_description() {
        let text = "The number of pods.\n+kubebuilder:validation:Minimum=1";
        let docs = Documentation::of(text);
        assert_eq!(docs.lines, ["The number of pods."]);
        assert_eq!(docs.description.as_deref(), Some(text));
        assert!(docs.is_changed());
        let docs = Documentation::of("Names.\n +listType=set\n+optional\n+ 1");
        assert_eq!(docs.lines, ["Names.", "+ 1"]);
    }
}
