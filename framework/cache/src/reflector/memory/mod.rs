//! An API server for a single kind, in memory and scripted: a source for tests, and for systems
//! that are not API servers.
//!
//! The source lists, pages, streams lists, watches and sends bookmarks as a real server does, with
//! versions, uids and a bounded history; and fails by script. No network, no validation of objects,
//! no selectors.

mod world;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use self::world::World;
use super::source::{Chunks, ListWatch, OpenFuture, Read};
use windlass_core::clock::Clock;
use windlass_core::error::{ApiStatus, Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// A scripted answer of a [`MemorySource`].
#[derive(Debug)]
pub enum MemoryResponse {
    /// An error answer, or a failure to reach the server.
    Error(Error),
    /// A body in pieces, then the end.
    Body(Vec<Bytes>),
    /// A body in pieces, then silence; bytes that the source later sends on all watches follow.
    Hang(Vec<Bytes>),
    /// No answer.
    Never,
}

impl MemoryResponse {
    /// Returns an error answer of an API server, such as `MemoryResponse::status(410, "Expired")`.
    pub fn status(code: u16, reason: &str) -> Self {
        Self::Error(Error::from_status("read", failure(code, reason)))
    }

    /// Returns a 429 with `Retry-After`.
    pub fn slow_down(after: Duration) -> Self {
        let error = Error::from_status("read", failure(429, "TooManyRequests"));
        Self::Error(error.with_retry_after(Some(after)))
    }

    /// Returns the error of a connection that breaks before an answer.
    pub fn reset() -> Self {
        Self::Error(Error::new(ErrorKind::Transport, "the connection was reset"))
    }

    /// Returns the error of a connection that is refused.
    pub fn refused() -> Self {
        Self::Error(Error::new(ErrorKind::Connect, "the connection was refused"))
    }
}

/// Returns the `Status` of a scripted failure.
fn failure(code: u16, reason: &str) -> ApiStatus {
    ApiStatus {
        status: "Failure".to_owned(),
        message: format!("scripted {code}"),
        reason: reason.to_owned(),
        code,
        ..ApiStatus::default()
    }
}

/// A function that replaces answers: by the number of earlier requests and the request.
///
/// The script runs outside of the source's lock.
type Script = Arc<dyn Fn(usize, &Read) -> Option<MemoryResponse> + Send + Sync>;

/// An API server for a single kind, in memory: watches follow the writes, and a script can replace
/// answers. Clones share the server.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use windlass::reflector::{MemoryResponse, MemorySource, Read};
/// use windlass::resource::ResourceInfo;
///
/// # fn main() -> Result<(), windlass::Error> {
/// let source = MemorySource::new(ResourceInfo::of::<ConfigMap>());
/// source.put(&json!({"metadata": {"namespace": "shop", "name": "a"}, "data": {"k": "1"}}))?;
/// source.delete(Some("shop"), "a");
/// // Two watches are refused, then all is well again.
/// source.script(|number, read| match read {
///     Read::Watch { .. } if number < 3 => Some(MemoryResponse::status(429, "TooManyRequests")),
///     _ => None,
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemorySource {
    /// State of the server, which all handles share. The lock is never held over an `await`.
    world: Arc<Mutex<World>>,
    /// Kind of the objects.
    info: ResourceInfo,
    /// Namespace that this handle reads; `None` reads all.
    namespace: Option<String>,
    /// Whether this handle reports support for streaming lists.
    streams_lists: bool,
    /// Clock that dates requests.
    clock: Clock,
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySource")
            .field("info", &self.info)
            .field("namespace", &self.namespace)
            .field("world", &*self.world.lock())
            .finish()
    }
}

impl MemorySource {
    /// Returns an empty server, at version 10.
    pub fn new(info: ResourceInfo) -> Self {
        let world = Arc::new(Mutex::new(World::new(&info)));
        Self { world, info, namespace: None, streams_lists: true, clock: Clock::system() }
    }

    /// Sets the clock by which [`requests`](Self::requests) are dated. Default: the machine's.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Returns a handle of the same server that reads only this namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), ..self.clone() }
    }

    /// Returns a handle of the same server that reports no support for streaming lists.
    #[must_use]
    pub fn without_streaming_lists(&self) -> Self {
        Self { streams_lists: false, ..self.clone() }
    }

    /// Sets the size of the pieces of a list in bytes, at least 1, as from a network. Default: 64
    /// KiB.
    pub fn piece_size(&self, bytes: usize) {
        self.world.lock().piece = bytes.max(1);
    }

    /// Creates or changes an object, with an event on every watch; returns the object's
    /// resourceVersion. Kind, uid and version are filled in.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) when `object` is not a JSON object with a `metadata.name`.
    pub fn put<T: Serialize + ?Sized>(&self, object: &T) -> Result<u64, Error> {
        let object = serde_json::to_value(object).map_err(|error| {
            Error::usage("cannot put: the object cannot be serialized as JSON").because(error)
        })?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if !object.is_object() || name.is_empty() {
            return Err(Error::usage("cannot put: the object has no metadata.name"));
        }
        Ok(self.world.lock().put(object))
    }

    /// Deletes an object, with an event on every watch; returns the last state, or `None` when
    /// there was no such object.
    pub fn delete(&self, namespace: Option<&str>, name: &str) -> Option<Value> {
        self.world.lock().delete(namespace, name)
    }

    /// Deletes an object without an event on any watch, as a gap in the history does.
    pub fn lose(&self, namespace: Option<&str>, name: &str) -> Option<Value> {
        self.world.lock().lose(namespace, name)
    }

    /// Answers by `script` from now on, where `script` returns an answer. The first argument is the
    /// number of earlier requests; the script must not call the source.
    pub fn script(
        &self,
        script: impl Fn(usize, &Read) -> Option<MemoryResponse> + Send + Sync + 'static,
    ) {
        self.world.lock().script = Some(Arc::new(script));
    }

    /// Removes the script.
    pub fn recover(&self) {
        self.world.lock().script = None;
    }

    /// Sends bytes on every watch, such as custom frames.
    pub fn send(&self, bytes: impl Into<Bytes>) {
        self.world.lock().send(&bytes.into(), None, None);
    }

    /// Sends a bookmark on every watch, at a version 40 later.
    pub fn bookmark(&self) {
        self.world.lock().bookmark();
    }

    /// Ends every watch in order.
    pub fn close_watches(&self) {
        self.world.lock().watchers.clear();
    }

    /// Breaks the connection of every watch.
    pub fn break_watches(&self) {
        self.world.lock().break_watches();
    }

    /// Forgets the history: watches from earlier versions, and continue tokens, are answered by
    /// 410.
    pub fn expire(&self) {
        self.world.lock().expire();
    }

    /// Continues at another version without a history, as a server does after a restored backup and
    /// a restart: watches break. As with a kube-apiserver, a watch from a version that is not
    /// reached yet is opened and silent until the versions have reached that version.
    pub fn restore(&self, version: u64) {
        self.world.lock().restore(version);
    }

    /// Returns the present version.
    pub fn version(&self) -> u64 {
        self.world.lock().version
    }

    /// Returns the number of open watches, streaming lists included.
    pub fn watches(&self) -> usize {
        self.world.lock().open_watches()
    }

    /// Returns every request so far, oldest first, with the time; of more than 20 000 the last.
    pub fn requests(&self) -> Vec<(tokio::time::Instant, Read)> {
        self.world.lock().requests.iter().cloned().collect()
    }
}

impl ListWatch for MemorySource {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        let (script, number) = {
            let mut world = self.world.lock();
            let number = world.note(self.clock.now(), read.clone());
            (world.script.clone(), number)
        };
        // The script is user code and runs outside of the lock.
        let scripted = script.and_then(|script| script(number, &read));
        // Objects and version are read after the script has run: a script may let another thread
        // write.
        let answer = self.world.lock().answer(&read, scripted, self.namespace.as_deref());
        Box::pin(async move {
            match answer {
                Ok(Some(body)) => Ok(Chunks::from(body)),
                // The caller's own timeout has to end the request.
                Ok(None) => std::future::pending().await,
                Err(error) => Err(error),
            }
        })
    }

    fn streams_lists(&self) -> bool {
        self.streams_lists
    }
}
