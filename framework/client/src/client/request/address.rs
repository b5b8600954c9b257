//! The path of a request, assembled from parts.

// DESIGN.md, 117: A request has four shapes

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use windlass_core::resource::{Scope, Verb};

/// Characters that a path may not carry unencoded; slashes separate the segments.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'\\')
    .add(b'%');

/// Target of a request. The parts are stored as given and encoded at the end.
#[derive(Clone, Debug, Default)]
pub struct Address {
    /// Group and version.
    pub(super) version: Option<(String, String)>,
    /// Path before namespace and resource.
    pub(super) front: UrlPrefix,
    /// Namespace; an empty namespace counts as set.
    pub(super) namespace: Option<String>,
    /// Whether the kind is namespaced, if the builder knows.
    pub(super) scope: Option<Scope>,
    pub(super) resource: Option<String>,
    pub(super) name: Option<String>,
    /// Segments behind the name.
    pub(super) subresource: Option<Vec<String>>,
    /// Segments at the end.
    pub(super) suffix: Vec<String>,
}

/// Path before namespace and resource.
#[derive(Clone, Debug)]
pub(super) enum UrlPrefix {
    /// The versioned API path, followed by these prefixes.
    Versioned(Vec<String>),
    /// A path that replaces the versioned path, without the final slash, and whether there was a
    /// final slash.
    Absolute(Vec<String>, bool),
    /// Path and query of a URI, relative to the server's root.
    Uri(String),
}

impl Default for UrlPrefix {
    fn default() -> Self {
        Self::Versioned(Vec::new())
    }
}

/// Setters. Each part may be set once, and fails as the text of a usage error.
impl Address {
    /// Sets the versioned API.
    pub(crate) fn set_version(&mut self, group: &str, version: &str) -> Result<(), String> {
        check_segment("group", group)?;
        check_segment("version", version)?;
        if version.is_empty() {
            return Err("the version is empty; name one, such as `v1`".to_owned());
        }
        once("group and version", &mut self.version, (group.into(), version.into()))
    }

    /// Sets the namespace, and that the kind is namespaced.
    pub(crate) fn set_namespace(&mut self, namespace: &str) -> Result<(), String> {
        check_segment("namespace", namespace)?;
        once("the namespace", &mut self.namespace, namespace.to_owned())?;
        self.scope = Some(Scope::Namespaced);
        Ok(())
    }

    /// Sets the resource, in the plural.
    pub(crate) fn set_resource(&mut self, resource: &str) -> Result<(), String> {
        check_segment("resource", resource)?;
        if resource.is_empty() {
            return Err("the resource is empty; name one, such as `pods`".to_owned());
        }
        once("the resource", &mut self.resource, resource.to_owned())
    }

    /// Sets the object's name.
    pub(crate) fn set_name(&mut self, name: &str) -> Result<(), String> {
        if name.is_empty() {
            return Err("the resource name may not be empty; leave `name` out for the whole \
                        collection"
                .to_owned());
        }
        check_segment("name", name)?;
        once("the name", &mut self.name, name.to_owned())
    }

    /// Sets the segments of the subresource.
    pub(crate) fn set_subresource(&mut self, segments: Vec<String>) -> Result<(), String> {
        for segment in &segments {
            check_segment("subresource", segment)?;
        }
        once("the subresource", &mut self.subresource, segments)
    }
}

impl Address {
    /// Returns the path, percent-encoded.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        let mut slash = false;
        match &self.front {
            UrlPrefix::Versioned(prefix) => {
                match &self.version {
                    Some((group, version)) if group.is_empty() => add(&mut path, &["api", version]),
                    Some((group, version)) => add(&mut path, &["apis", group, version]),
                    None => {}
                }
                add(&mut path, prefix);
            }
            UrlPrefix::Absolute(segments, final_slash) => {
                add(&mut path, segments);
                slash = *final_slash;
            }
            UrlPrefix::Uri(uri) => path.push_str(uri),
        }
        // A final slash is kept only when no part has been appended since.
        let bare = path.len();
        if let Some(namespace) = self.namespace.as_deref().filter(|text| !text.is_empty()) {
            add(&mut path, &["namespaces", namespace]);
        }
        if let Some(resource) = &self.resource {
            // As client-go, which puts the resource into lower case.
            add(&mut path, &[resource.to_lowercase()]);
        }
        if let Some(name) = &self.name {
            add(&mut path, &[name]);
        }
        add(&mut path, self.subresource.as_deref().unwrap_or_default());
        add(&mut path, &self.suffix);
        if path.is_empty() || (slash && path.len() == bare && !path.ends_with('/')) {
            path.push('/');
        }
        path
    }

    /// Returns the Kubernetes verb of the request, by HTTP method and target.
    pub(super) fn verb(&self, method: &http::Method, apply: bool, watch: bool) -> Verb {
        // Without a name the request is about all objects of the resource.
        let collection = self.resource.is_some() && self.name.is_none();
        match method.as_str() {
            "GET" | "HEAD" | "OPTIONS" if watch => Verb::Watch,
            "GET" | "HEAD" | "OPTIONS" if collection => Verb::List,
            "GET" | "HEAD" | "OPTIONS" => Verb::Get,
            "PUT" => Verb::Update,
            "PATCH" if apply => Verb::Apply,
            "PATCH" => Verb::Patch,
            "DELETE" if collection => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::Create,
        }
    }

    /// Describes the request for error texts: `get status of deployments.apps "home" in "shop"`.
    pub(super) fn what(&self, method: &http::Method, verb: Verb) -> String {
        let Some(resource) = &self.resource else {
            return format!("{method} {}", self.path());
        };
        let mut what = match verb {
            Verb::Update => "replace",
            Verb::DeleteCollection => "delete all",
            other => other.as_str(),
        }
        .to_owned();
        if let Some(subresource) = &self.subresource {
            what.push_str(&format!(" {} of", subresource.join("/")));
        }
        what.push_str(&format!(" {}", resource.to_lowercase()));
        if let Some((group, _)) = self.version.as_ref().filter(|(group, _)| !group.is_empty()) {
            what.push_str(&format!(".{group}"));
        }
        if let Some(name) = &self.name {
            what.push_str(&format!(" {name:?}"));
        }
        if let Some(namespace) = self.namespace.as_ref().filter(|text| !text.is_empty()) {
            what.push_str(&format!(" in {namespace:?}"));
        }
        what
    }

    /// Fails when the namespace is set but empty and the request needs a namespace.
    pub(super) fn preflight(&self, method: &http::Method) -> Result<(), &'static str> {
        if self.namespace.as_deref() != Some("") {
            return Ok(());
        }
        match method.as_str() {
            "POST" => {
                Err("an empty namespace may not be set during creation; name the namespace, \
                 or leave `namespace` out for a cluster-scoped kind")
            }
            "GET" | "PUT" | "PATCH" | "DELETE" if self.name.is_some() => {
                Err("an empty namespace may not be set when a resource name is provided; name the \
                     namespace, or leave `namespace` out for a cluster-scoped kind")
            }
            _ => Ok(()),
        }
    }
}

/// Appends segments. Each may hold several, and empty segments are skipped.
fn add(path: &mut String, segments: &[impl AsRef<str>]) {
    for segment in segments {
        for part in segment.as_ref().split('/').filter(|part| !part.is_empty()) {
            if !path.ends_with('/') {
                path.push('/');
            }
            path.extend(utf8_percent_encode(part, PATH));
        }
    }
}

/// Sets `slot`, which may be set once.
fn once<T: fmt::Debug>(what: &str, slot: &mut Option<T>, value: T) -> Result<(), String> {
    if let Some(old) = slot {
        return Err(format!("{what} is set already, to {old:?}, and cannot be {value:?} as well"));
    }
    *slot = Some(value);
    Ok(())
}

/// Fails when `text` cannot be a single segment of a path.
fn check_segment(what: &str, text: &str) -> Result<(), String> {
    if text == "." || text == ".." || text.contains(['/', '%']) {
        return Err(format!(
            "`{text}` is not a {what}: it may not be `.` or `..`, nor contain `/` or `%`, which would \
             change the path"
        ));
    }
    Ok(())
}
