//! Names of objects.

use std::fmt;
use std::sync::Arc;

use super::ResourceInfo;

/// Which cluster a key belongs to, for operators that work on several. Default: the local one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u16);

/// Namespace and name of an object; cheap to clone. Ordered by namespace, then name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    cluster: ClusterId,
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl ObjectKey {
    /// A key of the local cluster.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self {
            cluster: ClusterId::default(),
            namespace: namespace.map(Arc::from),
            name: Arc::from(name),
        }
    }

    /// A key of the local cluster whose namespace is shared with others.
    pub(crate) fn interned(namespace: Option<Arc<str>>, name: &str) -> Self {
        Self { cluster: ClusterId::default(), namespace, name: Arc::from(name) }
    }

    /// The same name in another cluster.
    #[must_use]
    pub fn in_cluster(mut self, cluster: ClusterId) -> Self {
        self.cluster = cluster;
        self
    }

    /// The cluster.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object of some kind, as events and owner references name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// The kind.
    pub info: ResourceInfo,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Uid, when known.
    pub uid: Option<String>,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.info.kind, self.key)
    }
}
