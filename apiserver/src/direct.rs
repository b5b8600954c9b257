//! Past the API: writes without a request, and backups that are restored.
//!
//! A test that makes a million versions cannot afford a request for each, and no request makes an
//! object that its own kind refuses, or a server whose versions go backwards. Only what is written
//! differs: lists and watches show it as they show everything else.

use serde_json::Value;

use crate::server::ApiServer;
use crate::status::ApiError;
use crate::storage;
use crate::verbs::options::DeleteOptions;
use crate::verbs::{create, delete};

/// What a server stored at one moment.
#[derive(Clone, Debug)]
pub struct Backup {
    pub(crate) state: storage::Backup,
}

impl Backup {
    /// The newest resourceVersion in it.
    pub fn revision(&self) -> u64 {
        self.state.revision()
    }
}

impl ApiServer {
    /// Creates an object as the administrator does, with all checks, and gives it as it is stored.
    ///
    /// # Errors
    /// What a request would be answered.
    pub fn create_object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Value, ApiError> {
        let call = self.core.call(group, plural, namespace, "")?;
        create::create(&self.core, &call, object, &mut Vec::new()).map(|answer| answer.value)
    }

    /// Deletes an object as the administrator does; finalizers hold it.
    ///
    /// # Errors
    /// What a request would be answered.
    pub fn delete_object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let call = self.core.call(group, plural, namespace, name)?;
        delete::delete(&self.core, &call, &DeleteOptions::default(), &mut Vec::new()).map(drop)
    }

    /// Stores a state of an object as it is, without any check or default; `None` removes it. Gives
    /// the write's resourceVersion; `None` when the kind is not served, or when there is nothing to
    /// remove.
    pub fn commit(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        object: Option<Value>,
    ) -> Option<u64> {
        let kind = self.core.kind(group, plural)?;
        let key = storage::key(namespace, name);
        let (store, resource) = (&self.core.store, &kind.storage);
        // Another writer may be faster: then its state is the one to replace.
        loop {
            let held = store.get(resource, &key);
            let done = match (&object, &held) {
                (Some(object), _) => store
                    .put(resource, &key, held.as_ref(), kind.store(object.clone()))
                    .map(|stored| stored.revision),
                (None, Some(held)) => store.remove(resource, &key, held),
                (None, None) => return None,
            };
            if let Ok(revision) = done {
                return Some(revision);
            }
        }
    }

    /// What is stored now.
    pub fn backup(&self) -> Backup {
        Backup { state: self.core.store.backup() }
    }

    /// Goes back to a backup, as a restored etcd does: connections are cut, the watch history is
    /// lost and **resourceVersions go backwards**. As with a real kube-apiserver, a watch from a version
    /// that does not exist yet is answered 200 and then nothing, until versions have got there;
    /// [`Builder::expire_future_versions`](crate::Builder::expire_future_versions) has it answered 410.
    /// Which kinds are served does not change.
    pub async fn restore(&self, backup: &Backup) {
        self.core.store.restore(&backup.state);
        self.core.cut();
        // Whoever was connected gets to see it before anybody goes on.
        tokio::task::yield_now().await;
    }
}
