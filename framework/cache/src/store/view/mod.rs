//! Typed read views of a store.

mod cached;
mod lister;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod view;

pub use cached::Cached;
pub use lister::{Lister, NamespaceLister};
pub use view::{Snapshot, Store};
