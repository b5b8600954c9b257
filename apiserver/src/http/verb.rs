//! Verbs of requests.

use std::fmt;

/// Verb of a request, in the spelling of authorization, faults and the log of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads an object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection or an object.
    Watch,
    /// Creates an object, or acts on a subresource.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object by a patch.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes the selected objects of a collection.
    DeleteCollection,
    /// No verb of a resource: the lower-case method on any other path, and the empty text on a
    /// resource that the method does nothing with.
    Other(String),
}

impl Default for Verb {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl Verb {
    /// Returns the verb in the spelling of requests and rules; may be empty.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other(method) => method,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
