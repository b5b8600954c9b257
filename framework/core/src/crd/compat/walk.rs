//! The state of a walk through two schemas: the changes that were found.

use super::change::DefinitionChange;
use super::rule::CompatRule;

/// Receiver of the changes below a node.
pub(super) struct Walk<'a> {
    pub(super) found: &'a mut Vec<DefinitionChange>,
}

impl Walk<'_> {
    /// Adds a change at `path`.
    pub(super) fn add(&mut self, rule: CompatRule, path: &str, text: impl Into<String>) {
        self.add_part(rule, path, String::new(), text.into());
    }

    /// Adds a change of a part of the schema at `path`; `subject` names the part.
    pub(super) fn add_part(&mut self, rule: CompatRule, path: &str, subject: String, text: String) {
        // A dot stands for the whole object.
        let path = if path.is_empty() { "." } else { path };
        self.found.push(DefinitionChange { subject, ..DefinitionChange::at(rule, path, text) });
    }
}
