//! The label that marks a child with its controller, its graph and its place in the graph.
//!
//! An owner reference does not say which part of a reconciler made a child. Only children with the
//! mark of a graph are removed with it: those that a reconciler makes by itself have none.

/// Most letters of one part of the label's value, of which an API server takes 63.
const PART: usize = 20;

/// The mark of one graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Marker(String);

impl Marker {
    /// Returns the mark of a graph of a controller.
    pub(super) fn new(controller: &str, graph: &str) -> Self {
        Self(format!("{}.{}", part(&controller.replace('.', "-"), controller), part(graph, graph)))
    }

    /// Returns the value of the label for one dependent.
    pub(super) fn of(&self, dependent: &str) -> String {
        format!("{}.{}", self.0, part(dependent, dependent))
    }

    /// Whether the value is that of a dependent of this graph, whatever the dependent.
    pub(super) fn is_on(&self, value: &str) -> bool {
        let rest = value.strip_prefix(self.0.as_str()).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|dependent| !dependent.is_empty() && !dependent.contains('.'))
    }
}

/// Returns a name as a part of the value: itself, or its beginning and a hash of `whole`.
fn part(name: &str, whole: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_fine = name.len() <= PART
        && name == whole
        && name.chars().all(|c| is_word(c) || c == '-' || c == '_')
        && name.starts_with(is_word)
        && name.ends_with(is_word);
    if is_fine {
        return name.to_owned();
    }
    let kept: String = name.chars().filter(|c| is_word(*c)).take(PART - 9).collect();
    format!("{kept}-{:08x}", hash(whole))
}

/// FNV-1a in 32 bits: the same in every version of the framework, since objects carry it.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_controller_graph_and_dependent() {
        let marker = Marker::new("sites", "Children");
        assert_eq!(marker.of("app"), "sites.Children.app");
        assert!(marker.is_on("sites.Children.gone") && !marker.is_on("sites.Children2.app"));
        assert!(!marker.is_on("sites.Children") && !marker.is_on("sites.Children."));
    }

    #[test]
    fn a_mark_is_a_valid_label_whatever_the_names() {
        let long = "a-controller.with-a-very-long-name.example.dev";
        for (controller, graph, field) in [
            (long, "ChildrenOfAWebsiteWithALongName", "type_"),
            ("a.b", "Größe", "_x"),
            ("", "", ""),
        ] {
            let value = Marker::new(controller, graph).of(field);
            let is_word = |c: char| c.is_ascii_alphanumeric();
            assert!(value.len() <= 63 && value.ends_with(is_word), "{value}");
            assert!(value.chars().all(|c| is_word(c) || "-_.".contains(c)), "{value}");
        }
    }

    #[test]
    fn names_that_differ_have_marks_that_differ() {
        let marks = [("a.b", "C"), ("a-b", "C"), ("a", "b-C"), ("a", "C")];
        let marks = marks.map(|(controller, graph)| Marker::new(controller, graph).of("x"));
        let distinct: std::collections::BTreeSet<_> = marks.iter().collect();
        assert_eq!(distinct.len(), marks.len(), "{marks:?}");
    }
}
