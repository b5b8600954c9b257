//! A change, and all changes of a definition.

use std::fmt;

use super::rule::{ChangeKind, CompatRule};

/// A change of a definition: rule, place, consequence and remedy.
///
/// [`Display`](fmt::Display) prints all of them on a single line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    pub(super) rule: CompatRule,
    pub(super) kind: ChangeKind,
    pub(super) version: Option<String>,
    pub(super) path: String,
    pub(super) text: String,
    /// The changed part as a noun, for texts about losses; empty for a field, which the path names.
    pub(super) subject: String,
    /// Old and new type, of a changed type.
    pub(super) types: Option<(String, String)>,
}

impl DefinitionChange {
    /// Creates the change of a part that is no field; `subject` names the part.
    pub(super) fn of_part(rule: CompatRule, subject: String, text: String) -> Self {
        let (version, path, types) = (None, String::new(), None);
        Self { rule, kind: rule.kind(), version, path, text, subject, types }
    }

    /// Creates the change of a field.
    pub(super) fn at(rule: CompatRule, path: &str, text: String) -> Self {
        Self { path: path.to_owned(), ..Self::of_part(rule, String::new(), text) }
    }

    /// Returns the change as that of a version.
    pub(super) fn of_version(self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self }
    }

    /// Returns the identifier of the rule, such as `field-removed`; the book lists all.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        self.rule.id()
    }

    /// Returns the consequence.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// Returns the version whose schema or feature changes; `None`: the definition as a whole.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the path of the field, such as `.spec.rules[].weight`; `[]` stands for the elements
    /// of a list, `*` for the values of a map, and `.` for the whole object. Empty for a change
    /// that is not about a schema.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the change in words, without the place: `the field is removed`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the consequence in words.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.rule.reason()
    }

    /// Returns the remedy in words; empty for a change that needs none.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.rule.remedy()
    }
}

impl fmt::Display for DefinitionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.kind, self.rule())?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}", self.text)?;
        for part in [self.reason(), self.remedy()].into_iter().filter(|part| !part.is_empty()) {
            write!(f, "; {part}")?;
        }
        Ok(())
    }
}

/// All changes between two definitions of the same kind.
///
/// [`Display`](fmt::Display) prints a change per line, those that break first, and the name of the
/// definition before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChanges {
    name: String,
    changes: Vec<DefinitionChange>,
}

impl DefinitionChanges {
    /// Creates the list for a definition.
    pub(super) fn new(name: &str, changes: Vec<DefinitionChange>) -> Self {
        Self { name: name.to_owned(), changes }
    }

    /// Returns the name of the definition.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns all changes, in the order of the definition.
    #[must_use]
    pub fn all(&self) -> &[DefinitionChange] {
        &self.changes
    }

    /// Returns the changes that break stored objects or clients, those softened by ratcheting
    /// included.
    pub fn breaking(&self) -> impl Iterator<Item = &DefinitionChange> {
        self.changes.iter().filter(|change| change.kind != ChangeKind::Compatible)
    }

    /// Whether no change breaks stored objects or clients.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.breaking().next().is_none()
    }

    /// Returns the number of changes of a kind.
    #[must_use]
    pub fn count(&self, kind: ChangeKind) -> usize {
        self.changes.iter().filter(|change| change.kind == kind).count()
    }
}

impl fmt::Display for DefinitionChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return write!(f, "{}: no change", self.name);
        }
        write!(f, "{}:", self.name)?;
        let mut changes: Vec<&DefinitionChange> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.kind);
        for change in changes {
            write!(f, "\n  {change}")?;
        }
        Ok(())
    }
}
