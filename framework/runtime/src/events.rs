//! Reports occurrences about an object to people, as Events of `events.k8s.io/v1`.
//!
//! A [`Recorder`] never waits and never fails: the recorder puts an occurrence into a bounded
//! queue, and a single task writes the queued occurrences. The same occurrence again within six
//! minutes grows a series instead of making another Event; the Events of an object that causes too
//! many different ones are dropped.
//!
//! Not included: delivery guarantees. Events are lost when the queue is full or the API server
//! refuses them; nothing may depend on an Event.
//!
//! A controller's [`Context::event`](crate::controller::Context::event) uses a recorder owned by
//! the controller's run. Programs without a controller make a recorder and run the writer in a
//! task:
//!
//! ```no_run
//! # extern crate windlass_runtime as windlass;
//! # use windlass::client::Client;
//! # use windlass::resource::ObjectRef;
//! # async fn example(client: Client, object: ObjectRef) {
//! use tokio_util::sync::CancellationToken;
//! use windlass::events::{Recorder, Warning};
//!
//! let (recorder, writer) = Recorder::new(client, "site-exporter");
//! let stop = CancellationToken::new();
//! let task = tokio::spawn(writer.run(stop.clone()));
//! recorder.event(&object, Warning, "ExportFailed", "the disk is full");
//! stop.cancel();
//! // The writer empties the queue before it returns.
//! let _ = task.await;
//! # }
//! ```

mod series;
mod writer;

pub use writer::EventWriter;

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::mpsc;

use windlass_client::client::Client;
use windlass_core::resource::ObjectRef;
use windlass_core::text::shorten;

pub use EventKind::{Normal, Warning};

/// Most occurrences that wait to be written.
const QUEUE: usize = 512;
/// Limits of the API server, in bytes.
///
/// Limit of an Event's `note`.
pub(crate) const NOTE_LIMIT: usize = 1024;
/// Limit of `reason`, `action` and `reportingInstance`.
const WORD_LIMIT: usize = 128;

/// Severity of an Event.
///
/// The API server accepts no other types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// Normal operation.
    Normal,
    /// A problem that needs attention.
    Warning,
}

impl EventKind {
    /// The value of the Event's `type`.
    ///
    /// The names are those of `events.k8s.io/v1`.
    pub fn as_str(self) -> &'static str {
        match self {
            Normal => "Normal",
            Warning => "Warning",
        }
    }
}

/// An occurrence about an object, which becomes an Event or grows a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Occurrence {
    /// The object.
    pub(crate) regarding: Regarding,
    /// Severity.
    pub(crate) kind: EventKind,
    /// A word for programs.
    pub(crate) reason: String,
    /// The reported activity; controllers reconcile.
    pub(crate) action: String,
    /// A sentence for people; different notes make different Events.
    pub(crate) note: String,
}

/// The object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Regarding {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

impl Regarding {
    /// Copies the parts that an Event stores of the involved object.
    fn of(object: &ObjectRef) -> Self {
        Self {
            namespace: object.key.namespace().map(str::to_owned),
            name: object.key.name().to_owned(),
            uid: object.uid.clone(),
            api_version: object.info.api_version(),
            kind: object.info.kind.to_string(),
        }
    }

    /// The reference in the form of the API.
    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version.clone()),
            kind: Some(self.kind.clone()),
            name: Some(self.name.clone()),
            namespace: self.namespace.clone(),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// Queues occurrences to be written as Events; cheap to clone.
///
/// All clones share one queue of 512 occurrences and one writer.
#[derive(Clone)]
pub struct Recorder {
    /// Bounded, so that a slow API server costs Events and not memory.
    sender: mpsc::Sender<Occurrence>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("room", &self.sender.capacity()).finish()
    }
}

impl Recorder {
    /// Creates a recorder, and the task that writes the recorder's Events. Events name `controller`
    /// as their reporter and are written through `client`.
    ///
    /// Nothing is written before [`EventWriter::run`] runs. The rights that are needed are `create`
    /// and `patch` on `events` of the group `events.k8s.io`.
    pub fn new(client: Client, controller: &str) -> (Self, EventWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self { sender }, EventWriter::new(client, controller, receiver))
    }

    /// Queues an Event about `object`. `reason` is a word in `CamelCase` for programs, `note` a
    /// sentence for people (cut at 1 kB). Lost when 512 others wait already.
    ///
    /// Never waits. The namespace is that of the object; Events about cluster-scoped objects go
    /// into the namespace `default`.
    pub fn event(
        &self,
        object: &ObjectRef,
        kind: EventKind,
        reason: &str,
        note: impl fmt::Display,
    ) {
        let occurrence = Occurrence {
            regarding: Regarding::of(object),
            kind,
            reason: shorten(reason.to_owned(), WORD_LIMIT),
            action: "Reconcile".to_owned(),
            note: shorten(note.to_string(), NOTE_LIMIT),
        };
        // Never waits: a full queue drops the occurrence instead of delaying a reconcile.
        if self.sender.try_send(occurrence).is_err() {
            tracing::debug!(%object, reason, "the event was dropped: the queue is full or closed");
        }
    }
}
