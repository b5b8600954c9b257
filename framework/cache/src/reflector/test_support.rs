//! The in-memory source for the cache's tests: config maps in the namespace `n`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::source::OpenFuture;
use super::{ListWatch, MemorySource, Read};
use windlass_core::error::ApiStatus;
use windlass_core::resource::ResourceInfo;

/// A scripted response of the server.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedResponse {
    /// An error answer.
    Status(u16, &'static str),
    /// 429 with `Retry-After`.
    SlowDown(Duration),
    /// A body in pieces, then the end.
    Body(Vec<String>),
    /// A body in pieces, then silence.
    Hang(Vec<String>),
    /// No answer.
    Never,
}

impl From<ScriptedResponse> for super::MemoryResponse {
    fn from(response: ScriptedResponse) -> Self {
        let bytes = |pieces: Vec<String>| pieces.into_iter().map(Bytes::from).collect();
        match response {
            ScriptedResponse::Status(code, reason) => Self::status(code, reason),
            ScriptedResponse::SlowDown(after) => Self::slow_down(after),
            ScriptedResponse::Body(pieces) => Self::Body(bytes(pieces)),
            ScriptedResponse::Hang(pieces) => Self::Hang(bytes(pieces)),
            ScriptedResponse::Never => Self::Never,
        }
    }
}

/// A server whose watches follow the server's writes.
pub(crate) struct Server(pub(crate) MemorySource);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    pub(crate) fn new() -> Arc<Self> {
        Self::of(ResourceInfo::of::<ConfigMap>())
    }

    /// A server of another kind.
    pub(crate) fn of(info: ResourceInfo) -> Arc<Self> {
        let source = MemorySource::new(info);
        // Small pieces, so that objects are cut at inconvenient places.
        source.piece_size(61);
        Arc::new(Self(source))
    }

    /// Answers by `script` from now on, where `script` returns an answer; the first argument is the
    /// number of the request.
    pub(crate) fn script(
        &self,
        script: impl Fn(usize, &Read) -> Option<ScriptedResponse> + Send + Sync + 'static,
    ) {
        self.0.script(move |number, read| script(number, read).map(Into::into));
    }

    /// Removes the script.
    pub(crate) fn recover(&self) {
        self.0.recover();
    }

    /// Creates or changes `n/name`; returns the version.
    pub(crate) fn put(&self, name: &str, data: Value) -> u64 {
        self.put_in("n", name, data)
    }

    pub(crate) fn put_in(&self, namespace: &str, name: &str, data: Value) -> u64 {
        let object = json!({"data": data, "metadata": {
            "namespace": namespace, "name": name, "managedFields": [{"manager": "m"}]}});
        self.0.put(&object).expect("it has a name")
    }

    pub(crate) fn delete(&self, name: &str) {
        self.delete_in("n", name);
    }

    pub(crate) fn delete_in(&self, namespace: &str, name: &str) {
        self.0.delete(Some(namespace), name).expect("the object exists");
    }

    /// Deletes without an event on any watch, as a gap does.
    pub(crate) fn lose(&self, name: &str) {
        self.0.lose(Some("n"), name).expect("the object exists");
    }

    /// Sends bytes on every watch.
    pub(crate) fn send(&self, bytes: &str) {
        self.0.send(Bytes::copy_from_slice(bytes.as_bytes()));
    }

    /// Ends every watch in order.
    pub(crate) fn close_watches(&self) {
        self.0.close_watches();
    }

    /// Breaks every watch.
    pub(crate) fn break_watches(&self) {
        self.0.break_watches();
    }

    /// Forgets the history: watches from earlier versions are answered by 410.
    pub(crate) fn compact(&self) {
        self.0.expire();
    }

    /// Continues at another version, as a restored server does.
    pub(crate) fn restore(&self, version: u64) {
        self.0.restore(version);
    }

    pub(crate) fn version(&self) -> u64 {
        self.0.version()
    }

    /// Sends a bookmark on every watch.
    pub(crate) fn bookmark(&self) {
        self.0.bookmark();
    }

    /// Returns every request except version reads.
    pub(crate) fn requests(&self) -> Vec<(Instant, Read)> {
        let version_read =
            Read::Page { resource_version: None, limit: Some(1), continue_token: None };
        self.0.requests().into_iter().filter(|(_, read)| *read != version_read).collect()
    }

    /// Returns the number of version reads.
    pub(crate) fn version_reads(&self) -> usize {
        self.0.requests().len() - self.requests().len()
    }

    pub(crate) fn lists(&self) -> usize {
        let requests = self.requests();
        requests.iter().filter(|(_, read)| !matches!(read, Read::Watch { .. })).count()
    }
}

pub(crate) fn frame(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

pub(crate) fn bookmark(version: u64, ends_initial_events: bool) -> String {
    let mut object = json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}});
    if ends_initial_events {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    frame("BOOKMARK", &object.to_string())
}

pub(crate) fn status(code: u16, reason: &str) -> ApiStatus {
    ApiStatus {
        status: "Failure".to_owned(),
        message: format!("scripted {code}"),
        reason: reason.to_owned(),
        code,
        ..ApiStatus::default()
    }
}

impl ListWatch for Server {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        self.0.open(read)
    }
}
