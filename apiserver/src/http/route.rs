//! From method and path to verb, resource and name.
//!
//! This module knows only the grammar of URLs, and not the set of served resources.

use http::Method;

use super::verb::Verb;
use crate::auth::Attributes;
use crate::selectors::FieldSelector;
use crate::verbs::options::Query;

/// Meaning of a request's method and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    /// Verb of the request.
    pub(crate) verb: Verb,
    /// Whether the path names a resource.
    pub(crate) resourceful: bool,
    /// API group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Namespace; may be empty.
    pub(crate) namespace: String,
    /// Plural.
    pub(crate) resource: String,
    /// Name; may be empty.
    pub(crate) name: String,
    /// Subresource; may be empty.
    pub(crate) subresource: String,
    /// Whole path.
    pub(crate) path: String,
    /// Whether the resource stands below a namespace in the path; false for the Namespace itself,
    /// although it counts as being inside itself.
    pub(crate) inside: bool,
    /// Whether the path has more parts than any resource, or empty parts.
    pub(crate) excess: bool,
    /// Whether the path has the old form of watches, `/api/v1/watch/pods`.
    pub(crate) is_old_watch: bool,
    /// Whether the path ends where the old form of watches names a resource.
    pub(crate) is_bare_watch: bool,
    /// The only name that a field selector selects; may be empty.
    pub(crate) selected: String,
}

/// Reads method, path and query.
pub(crate) fn route(method: &Method, path: &str, query: &Query) -> Route {
    // An encoded slash separates like any other.
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let trimmed = decoded.trim_matches('/');
    let mut parts: Vec<String> = trimmed.split('/').map(str::to_owned).collect();
    let named = Verb::Other(method.as_str().to_lowercase());
    let other = Route { verb: named, path: path.to_owned(), ..Route::default() };
    let (group, version, rest) = match parts.first().map(String::as_str) {
        // Shorter paths are discovery documents.
        Some("api") if parts.len() > 2 => (String::new(), parts[1].clone(), parts.split_off(2)),
        Some("apis") if parts.len() > 3 => (parts[1].clone(), parts[2].clone(), parts.split_off(3)),
        _ => return other,
    };
    let mut route = Route { resourceful: true, group, version, ..other };
    place(&mut route, rest);
    // Authorized as given, and then found nowhere.
    route.excess |= decoded.contains("//");
    route.verb = verb(method, &route, query);
    // Authorization treats a list that selects a single name as a request for that object.
    if route.name.is_empty()
        && matches!(route.verb, Verb::List | Verb::Watch | Verb::DeleteCollection)
    {
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default());
        let name = fields.as_ref().ok().and_then(|fields| fields.exact("metadata.name"));
        name.unwrap_or_default().clone_into(&mut route.selected);
    }
    route
}

/// Reads the parts of a path behind group and version.
fn place(route: &mut Route, mut rest: Vec<String>) {
    let is_watch = rest.first().is_some_and(|part| part == "watch");
    route.is_old_watch = is_watch && rest.len() > 1;
    route.is_bare_watch = is_watch && rest.len() == 1;
    if route.is_old_watch {
        rest.remove(0);
    }
    // `namespaces/x/status` and `/finalize` are subresources of the Namespace.
    let in_namespace = rest.first().is_some_and(|part| part == "namespaces")
        && rest.len() > 2
        && rest[2] != "status"
        && rest[2] != "finalize";
    if in_namespace {
        route.namespace = rest[1].clone();
        route.inside = true;
        rest.drain(..2);
    // A Namespace counts as being inside itself, for authorization.
    } else if rest.first().is_some_and(|part| part == "namespaces") && rest.len() > 1 {
        route.namespace = rest[1].clone();
    }
    let mut parts = rest.into_iter();
    route.resource = parts.next().unwrap_or_default();
    route.name = parts.next().unwrap_or_default();
    route.subresource = parts.next().unwrap_or_default();
    route.excess = parts.next().is_some();
}

/// Returns the verb of a method on a route; empty for methods without a verb.
fn verb(method: &Method, route: &Route, query: &Query) -> Verb {
    // Whatever the method: only reads are answered.
    if route.is_old_watch {
        return Verb::Watch;
    }
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if route.name.is_empty() => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        Method::GET | Method::HEAD if !route.name.is_empty() => Verb::Get,
        Method::GET | Method::HEAD if query.flag("watch").unwrap_or(false) => Verb::Watch,
        Method::GET | Method::HEAD => Verb::List,
        _ => Verb::default(),
    }
}

impl Route {
    /// Returns the name of the object: from the path, or the only selected name.
    pub(crate) fn subject(&self) -> &str {
        if self.name.is_empty() { &self.selected } else { &self.name }
    }

    /// Returns the attributes for the authorizer.
    pub(crate) fn attributes(&self) -> Attributes {
        Attributes {
            verb: self.verb.to_string(),
            group: self.group.clone(),
            version: self.version.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            // A list of a named object is authorized as that object.
            name: self.subject().to_owned(),
            path: self.path.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: Method, url: &str) -> Route {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        route(&method, path, &Query::parse(query))
    }

    #[test]
    fn paths_name_resources_as_upstream_reads_them() {
        for (method, url, wanted) in [
            (Method::GET, "/api/v1/namespaces", "list||v1|||namespaces||"),
            (Method::GET, "/api/v1/namespaces/a", "get||v1|a||namespaces|a|"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update||v1|a||namespaces|a|finalize"),
            (Method::GET, "/api/v1/namespaces/a/pods", "list||v1|a||pods||"),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", "get||v1|a||pods|b|log"),
            (Method::GET, "/api/v1/watch/namespaces/a/pods", "watch||v1|a||pods||"),
            (Method::GET, "/api/v1/pods?watch=1", "watch||v1|||pods||"),
            (
                Method::GET,
                "/apis/apps/v1/namespaces/a/deployments/b?watch=1",
                "get|apps|v1|a||deployments|b|",
            ),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection|apps|v1|a||deployments||",
            ),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments",
                "create|apps|v1|a||deployments||",
            ),
        ] {
            let got = read(method, url);
            let text = format!(
                "{}|{}|{}|{}||{}|{}|{}",
                got.verb,
                got.group,
                got.version,
                got.namespace,
                got.resource,
                got.name,
                got.subresource
            );
            assert_eq!(text, wanted, "{url}");
            assert!(got.resourceful);
        }
    }

    #[test]
    fn a_method_without_a_verb_is_empty_on_a_resource_and_itself_elsewhere() {
        assert_eq!(read(Method::OPTIONS, "/api/v1/pods").verb, Verb::default());
        assert_eq!(read(Method::OPTIONS, "/version").verb.as_str(), "options");
        assert_eq!(read(Method::GET, "/version").verb, Verb::Other("get".to_owned()));
    }

    #[test]
    fn other_paths_are_no_resources() {
        for url in
            ["/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz/ping"]
        {
            assert!(!read(Method::GET, url).resourceful, "{url}");
        }
    }

    #[test]
    fn a_list_of_one_name_is_authorized_with_that_name() {
        let route = read(Method::GET, "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db");
        assert_eq!((route.name.as_str(), route.subject()), ("", "b"));
        assert_eq!(route.attributes().name, "b");
    }
}
