//! Identity of a kind as a value: group, version, kind, plural name and scope.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Whether a kind is namespaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects belong to the cluster.
    Cluster,
}

/// Group, version, kind, plural name and scope of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceInfo {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Version, such as `v1`.
    pub version: Cow<'static, str>,
    /// Kind, such as `Deployment`.
    pub kind: Cow<'static, str>,
    /// Plural name, as in URLs, such as `deployments`.
    pub plural: Cow<'static, str>,
    /// Namespaced or cluster-scoped.
    pub scope: Scope,
}

/// Characters that a path segment must not contain unescaped.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'/')
    .add(b'%');

impl ResourceInfo {
    /// Returns the identity of a k8s-openapi type.
    pub fn of<K>() -> Self
    where
        K: k8s_openapi::Resource<Scope: StaticScope>,
    {
        Self {
            group: K::GROUP.into(),
            version: K::VERSION.into(),
            kind: K::KIND.into(),
            plural: K::URL_PATH_SEGMENT.into(),
            scope: <K::Scope as StaticScope>::SCOPE,
        }
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns `plural.group`, or the plural alone for the core group: the form that `kubectl` and
    /// error texts have.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns the URL path of the collection in `namespace`, or in all namespaces.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        // The core group is served under `/api`, all others under `/apis`.
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) if self.scope == Scope::Namespaced => {
                format!("{root}/namespaces/{}/{}", escape(namespace), self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// Returns the URL path of an object.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.collection_path(namespace), escape(name))
    }
}

impl fmt::Display for ResourceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.group_resource())
    }
}

/// Percent-encodes a segment of a URL's path.
fn escape(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}

/// Scope as a type of k8s-openapi, known at compile time: namespaced, or of the cluster.
pub trait StaticScope {
    /// The scope as a value.
    const SCOPE: Scope;
}

impl StaticScope for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl StaticScope for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}
