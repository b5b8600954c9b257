//! Access past the API: writes without a request, and backups that can be restored.
//!
//! A test that makes a million versions cannot afford a request for each, and no request makes an
//! object that its kind refuses, or a server whose versions go backwards. Only the writing differs:
//! lists and watches show these objects like all others.

// DESIGN.md, 282: A server from a backup of an untouched start looks for none of its first objects

use std::io;
use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::controllers::ControllerSet;
use crate::crds;
use crate::server::{ApiServer, Builder};
use crate::status::ApiError;
use crate::storage;
use crate::verbs::options::DeleteOptions;
use crate::verbs::{VerbCall, create, delete};

/// All objects that a server stored at one moment.
#[derive(Clone, Debug)]
pub struct Backup {
    pub(crate) state: storage::Backup,
    /// The controllers of a server to which nothing had been written since its start: all objects
    /// that they and the start make are there.
    pub(crate) untouched: Option<ControllerSet>,
}

impl Backup {
    /// Returns the newest resourceVersion in the backup.
    pub fn revision(&self) -> u64 {
        self.state.revision()
    }
}

impl Builder {
    /// Starts the server inside the current tokio runtime with the objects, definitions and
    /// versions of a backup, in memory. Versions before the backup's count as compacted.
    ///
    /// Objects are shared rather than copied, so that this takes a fraction of [`Builder::start`]'s
    /// time, most of which makes the objects that exist from the start.
    pub fn start_from(self, backup: &Backup) -> ApiServer {
        let core = self.core(Some(backup.revision()));
        core.store.begin(&backup.state);
        crds::reload(&core, delete::instances);
        let is_complete = backup.untouched == Some(self.controllers);
        self.run(core, is_complete)
    }
}

impl ApiServer {
    /// Creates an object as the administrator, with all checks, and returns the stored object.
    ///
    /// # Errors
    /// The failure that a request would be answered with.
    pub fn create_object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Value, ApiError> {
        let call = VerbCall::by_server(&self.core, group, plural, namespace, "")?;
        create::create(&self.core, &call, object, &mut Vec::new()).map(|answer| answer.value)
    }

    /// Deletes an object as the administrator; finalizers delay the deletion.
    ///
    /// # Errors
    /// The failure that a request would be answered with.
    pub fn delete_object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let call = VerbCall::by_server(&self.core, group, plural, namespace, name)?;
        delete::delete(&self.core, &call, &DeleteOptions::default(), &mut Vec::new()).map(drop)
    }

    /// Stores a state of an object unchanged, without any check or default; `None` removes the
    /// object.
    ///
    /// Returns the write's resourceVersion; `None` if the kind is not served, or if there is no
    /// object to remove.
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
        // A concurrent write may come between `get` and `put`: then the state of that write is
        // replaced instead.
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

    /// Returns a backup of everything that is stored now.
    pub fn backup(&self) -> Backup {
        let state = self.core.store.backup();
        let is_untouched = self.core.complete_at.load(Ordering::Relaxed) == state.revision();
        Backup { state, untouched: is_untouched.then_some(self.controllers) }
    }

    /// Goes back to a backup, as a restored etcd does: connections are cut, the watch history is
    /// lost and **resourceVersions go backwards**.
    ///
    /// As with a real kube-apiserver, a watch from a version that does not exist yet is answered
    /// 200 and then nothing, until versions have reached that version.
    /// [`Builder::expire_future_versions`](crate::Builder::expire_future_versions) changes that
    /// answer to 410. The set of served kinds does not change.
    pub async fn restore(&self, backup: &Backup) {
        self.core.complete_at.store(0, Ordering::Relaxed);
        self.core.store.restore(&backup.state);
        self.core.cut();
        // Lets the tasks of the cut connections run before the caller goes on.
        tokio::task::yield_now().await;
    }

    /// Waits until all writes so far are in the data file, as each request does before its answer.
    /// Only writes without a request ([`ApiServer::commit`] and the like) need this.
    ///
    /// # Errors
    /// The file can no longer be written.
    pub async fn flush(&self) -> io::Result<()> {
        tokio::select! {
            biased;
            () = self.core.store.durable() => Ok(()),
            why = self.stopped() => {
                Err(io::Error::other(why.unwrap_or_else(|| "the server has been stopped".to_owned())))
            }
        }
    }

    /// Waits until the server stops, and returns the failure of the data file if that is the
    /// reason.
    pub async fn stopped(&self) -> Option<String> {
        self.core.stop.cancelled().await;
        self.core.store.journal().and_then(|journal| journal.failure())
    }
}
