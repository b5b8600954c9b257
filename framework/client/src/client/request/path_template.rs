//! Parsing of API paths: their namespace, and their template without names.

// DESIGN.md, 15: `Request` and `Api<K>` both end in `Prepared`

/// Parts of a path of the Kubernetes API: `/api/v1/…` or `/apis/group/version/…`.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client) struct ApiPath<'a> {
    /// Beginning up to the version, without a final slash.
    pub(in crate::client) root: &'a str,
    /// Rest of the path, without a first slash; empty for the path of the version.
    pub(in crate::client) rest: &'a str,
    /// Namespace, percent-encoded as in the path.
    pub(in crate::client) namespace: Option<&'a str>,
}

impl<'a> ApiPath<'a> {
    /// Parses `path`; `None` outside of the versioned API, such as `/version` and `/apis`.
    pub(in crate::client) fn of(path: &'a str) -> Option<Self> {
        let depth = match path.split('/').nth(1)? {
            "api" => 2,
            "apis" => 3,
            _ => return None,
        };
        let mut slashes = path.match_indices('/').map(|(at, _)| at).skip(depth);
        let end = slashes.next().unwrap_or(path.len());
        let (root, rest) = path.split_at(end);
        // `/apis` and `/apis/group` name no version.
        if root.split('/').skip(1).filter(|part| !part.is_empty()).count() < depth {
            return None;
        }
        let rest = rest.trim_start_matches('/');
        let mut parts = rest.split('/');
        let namespace = match (parts.next(), parts.next(), parts.next()) {
            // `status` and `finalize` of a namespace are subresources of a cluster-scoped object.
            (Some("namespaces"), Some(_), Some("status" | "finalize")) => None,
            (Some("namespaces"), Some(namespace), Some(resource)) if !resource.is_empty() => {
                Some(namespace)
            }
            _ => None,
        };
        Some(Self { root, rest, namespace })
    }

    /// Returns the first segment behind the object's name, such as `status`.
    pub(in crate::client) fn subresource(&self) -> Option<&'a str> {
        let resource = if self.namespace.is_some() { 2 } else { 0 };
        self.rest.split('/').nth(resource + 2).filter(|text| !text.is_empty())
    }

    /// Returns the same path in `namespace`; for a path without a namespace.
    pub(in crate::client) fn within(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root, self.rest)
    }
}

/// Returns `path` with `{namespace}`, `{name}` and `{path}` in place of the values that differ from
/// object to object.
pub(in crate::client) fn template(path: &str) -> String {
    let Some(place) = ApiPath::of(path) else {
        let short = path.split('/').filter(|part| !part.is_empty()).count() <= 1;
        let discovery = path.starts_with("/apis/") || path.starts_with("/openapi/");
        return if short || discovery { path.to_owned() } else { "/{prefix}".to_owned() };
    };
    let mut parts: Vec<&str> = place.rest.split('/').collect();
    let resource = if place.namespace.is_some() {
        parts[1] = "{namespace}";
        2
    } else {
        0
    };
    if let Some(name) = parts.get_mut(resource + 1).filter(|name| !name.is_empty()) {
        *name = "{name}";
    }
    // The segments behind `proxy` are a path of the proxied server.
    if parts.get(resource + 2) == Some(&"proxy") && parts.len() > resource + 3 {
        parts.truncate(resource + 3);
        parts.push("{path}");
    }
    if place.rest.is_empty() {
        return place.root.to_owned();
    }
    format!("{}/{}", place.root, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanism_8_the_template_hides_namespace_and_name_and_nothing_else() {
        for (path, expected) in [
            ("/api/v1/pods", "/api/v1/pods"),
            ("/api/v1/nodes/n1", "/api/v1/nodes/{name}"),
            ("/api/v1/nodes/n1/status", "/api/v1/nodes/{name}/status"),
            ("/api/v1/nodes/n1/proxy/a/b", "/api/v1/nodes/{name}/proxy/{path}"),
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/api/v1/namespaces/shop", "/api/v1/namespaces/{name}"),
            ("/api/v1/namespaces/shop/finalize", "/api/v1/namespaces/{name}/finalize"),
            ("/api/v1/namespaces/shop/status", "/api/v1/namespaces/{name}/status"),
            ("/api/v1/namespaces/shop/pods", "/api/v1/namespaces/{namespace}/pods"),
            ("/api/v1/namespaces/shop/pods/a", "/api/v1/namespaces/{namespace}/pods/{name}"),
            (
                "/apis/apps/v1/namespaces/shop/deployments/a/scale",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            ),
            ("/apis/example.dev/v1/widgets/a", "/apis/example.dev/v1/widgets/{name}"),
            ("/apis", "/apis"),
            ("/apis/apps", "/apis/apps"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/api", "/api"),
            ("/version", "/version"),
            ("/some/thing/else", "/{prefix}"),
            ("/", "/"),
        ] {
            assert_eq!(template(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_put_into_a_namespace_behind_its_version() {
        let place = ApiPath::of("/apis/apps/v1/deployments/a").unwrap();
        assert_eq!(place.within("shop"), "/apis/apps/v1/namespaces/shop/deployments/a");
        let place = ApiPath::of("/api/v1/namespaces/shop/pods").unwrap();
        assert_eq!(place.namespace, Some("shop"));
        assert_eq!(ApiPath::of("/api/v1/namespaces/shop").unwrap().namespace, None);
    }
}
