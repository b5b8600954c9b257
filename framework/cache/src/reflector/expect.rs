//! Check that an object is of the requested kind.

use windlass_core::resource::ResourceInfo;
use windlass_core::wire::values_at;

/// Kind of every object when only metadata is requested.
const METADATA_ONLY: &str = "PartialObjectMetadata";

/// The expected kind, in the spellings with which API servers begin an object.
#[derive(Debug)]
pub(super) struct ExpectedKind {
    starts: [Vec<u8>; 2],
    kind: String,
    api_version: String,
}

impl ExpectedKind {
    pub(super) fn new(info: &ResourceInfo) -> Self {
        let (kind, api_version) = (info.kind.to_string(), info.api_version());
        let starts = [
            format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#).into_bytes(),
            format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#).into_bytes(),
        ];
        Self { starts, kind, api_version }
    }

    /// Returns the object's kind if it is not the expected one. An object without a kind passes.
    pub(super) fn other(&self, object: &[u8]) -> Option<String> {
        // The usual beginnings are compared first, which saves a scan of the object.
        if self.starts.iter().any(|start| object.starts_with(start)) {
            return None;
        }
        let field = |name| {
            let mut found = Vec::new();
            values_at(object, &[name], &mut found);
            found.pop().unwrap_or_default()
        };
        let (kind, api_version) = (field("kind"), field("apiVersion"));
        let is_expected = (kind.is_empty() || *kind == *self.kind)
            && (api_version.is_empty() || *api_version == *self.api_version);
        (!is_expected && *kind != *METADATA_ONLY).then(|| format!("{kind} of {api_version}"))
    }

    /// As [`other`](Self::other), for items of lists, most of which carry no kind: only items that
    /// begin with a kind are checked.
    pub(super) fn other_item(&self, item: &[u8]) -> Option<String> {
        let says = item.starts_with(br#"{"kind":"#) || item.starts_with(br#"{"apiVersion":"#);
        if says { self.other(item) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    /// Upstream's row 90, and its check of the expected type.
    #[test]
    fn mechanism_54_tables_and_other_kinds_are_told_from_the_expected_one() {
        let expected = ExpectedKind::new(&ResourceInfo::of::<Pod>());
        for fine in [
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#,
            r#"{"metadata":{}, "kind" : "Pod"}"#,
            r#"{"metadata":{"name":"a"},"spec":{"kind":"Table"}}"#,
            r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{}}"#,
        ] {
            assert_eq!(expected.other(fine.as_bytes()), None, "{fine}");
            assert_eq!(expected.other_item(fine.as_bytes()), None, "{fine}");
        }
        let table = br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#;
        assert_eq!(expected.other(table).as_deref(), Some("Table of meta.k8s.io/v1"));
        assert_eq!(expected.other_item(table).as_deref(), Some("Table of meta.k8s.io/v1"));
        let other = br#"{"metadata":{},"apiVersion":"v2","kind":"Pod"}"#;
        assert_eq!(expected.other(other).as_deref(), Some("Pod of v2"));
    }
}
