//! Identity of a kind as a value.

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
    /// Plural name as it stands in URLs, such as `deployments`.
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
    /// The identity of a k8s-openapi type.
    pub fn of<K>() -> Self
    where
        K: k8s_openapi::Resource<Scope: KnownScope>,
    {
        Self {
            group: K::GROUP.into(),
            version: K::VERSION.into(),
            kind: K::KIND.into(),
            plural: K::URL_PATH_SEGMENT.into(),
            scope: <K::Scope as KnownScope>::SCOPE,
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, or the plural alone for the core group: the form of users and of error
    /// texts.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// URL path of the collection in `namespace`, or of all namespaces.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        // The core group has a root of its own.
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

    /// URL path of one object.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.collection_path(namespace), escape(name))
    }
}

impl fmt::Display for ResourceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.group_resource())
    }
}

fn escape(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}

/// Scopes of objects with metadata; k8s-openapi has a type for each.
pub trait KnownScope {
    /// The scope as a value.
    const SCOPE: Scope;
}

impl KnownScope for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl KnownScope for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}
