//! The target of a request, read from its path.

use percent_encoding::percent_decode_str;

/// The target of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestTarget {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

impl RequestTarget {
    /// Reads a path; `None` for one that is no resource.
    pub(super) fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace itself, or one of its subresources.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [] => return None,
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource, ..] => (*plural, *name, *subresource),
        };
        let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        Some(Self {
            group: text(group),
            plural: text(plural),
            namespace: text(namespace),
            name: text(name),
            subresource: text(subresource),
        })
    }

    /// Returns plural and group.
    pub(super) fn resource(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }
}
