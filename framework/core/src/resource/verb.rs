//! Verbs of requests.
//!
//! The verb of a request decides whether the request is repeated, which metric counts it, and which
//! permission is necessary.

/// Verb of a request, for metrics, retries and RBAC.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::Verb;
///
/// assert!(Verb::Apply.writes() && !Verb::Watch.writes());
/// assert_eq!(Verb::DeleteCollection.as_str(), "deletecollection");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Apply,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Returns whether the verb changes objects.
    ///
    /// Writes pass the gate of the client and are never repeated after a failure that leaves their
    /// fate unknown, unless they are declared repeatable.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// Returns Kubernetes' spelling in RBAC and audit records; an apply is a `patch` there, but has
    /// a separate name here.
    ///
    /// `windlass::rbac::verb_name` has the spelling of RBAC, in which an apply is a `patch`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}
