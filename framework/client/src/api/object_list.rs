//! The answer to a list.

/// A page or a whole list.
///
/// The order is the server's: by namespace, then by name, for servers on etcd.
#[derive(Clone, Debug)]
pub struct ObjectList<K> {
    /// The objects, in the order of the API server.
    pub items: Vec<K>,
    /// The version of the collection that the objects are from.
    pub resource_version: String,
    /// Token of the next page; `None` on the last page.
    pub continue_token: Option<String>,
    /// Approximate number of objects on later pages. Servers send the number for lists without
    /// selectors.
    pub remaining: Option<u64>,
}
