//! A watch that resumes after the connection ended: from the last shown version, after a pause.
//!
//! For programs that follow changes and keep no cache. A cache adds a list at the beginning, and
//! another when the version is too old; an informer has both.

use std::cmp::Ordering;
use std::fmt;
use std::future::IntoFuture;

use tokio::time::Instant;

use super::pause::{passes, pause};
use super::rollback::RollbackProbe;
use super::version::compare;
use super::{ApiFuture, Watch, WatchEvent, WatchStream};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceExt};

impl<K> Watch<K> {
    /// Makes the watch start again from the last version whenever the watch ends or the connection
    /// breaks. A resuming watch needs a [version](Self::resource_version) to start after: the
    /// version of a list.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let maps = client.namespace::<ConfigMap>("shop");
    /// let list = maps.list().await?;
    /// let mut changes = maps.watch().resource_version(&list.resource_version).resuming();
    /// while let Some(event) = changes.next().await {
    ///     println!("{:?}", event?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resuming(self) -> ResumingWatch<K> {
        let version =
            self.draft.prepared.parameter("resourceVersion").unwrap_or_default().to_owned();
        ResumingWatch {
            rollback: RollbackProbe::new(&self.draft),
            watch: self,
            version,
            opening: None,
            stream: None,
            pause_ends: None,
            failures: 0,
            ended: false,
        }
    }

    /// A copy of the watch that starts after `version`.
    fn after(&self, version: &str) -> Self {
        let watch =
            Self { draft: self.draft.clone(), frame_limit: self.frame_limit, _kind: self._kind };
        watch.resource_version(version)
    }
}

/// A watch that resumes; see [`Watch::resuming`]. A drop ends the request.
///
/// Each event comes once, in the order of versions; events that happened during a pause follow
/// after it. Compared with an informer the watch keeps no objects, and leaves the list after
/// [`Expired`](ErrorKind::Expired) to the caller.
pub struct ResumingWatch<K> {
    watch: Watch<K>,
    /// The version of the last event.
    version: String,
    rollback: RollbackProbe,
    /// A connection being made; kept, so that a caller that cancels often still gets a connection.
    opening: Option<ApiFuture<'static, WatchStream<K>>>,
    stream: Option<WatchStream<K>>,
    pause_ends: Option<Instant>,
    /// Connections in a row without an event.
    failures: u32,
    ended: bool,
}

impl<K: Resource> ResumingWatch<K> {
    /// Returns the next event, of any connection. Events that are not newer than an earlier event
    /// are left out. `None` after every error but [`Decode`](ErrorKind::Decode).
    ///
    /// A server whose store was set back, by a restored backup, answers a watch from a version that
    /// the store has not reached with silence. So at the first connection and after each lost
    /// connection an object is listed beside the watch, by the same selectors, to read the version
    /// of the store. Where the role forbids that, the list is tried again every five minutes. Once
    /// the store's versions have climbed past this watch's again, versions show nothing any more.
    ///
    /// Lost connections, silence, 429 and 5xx are waited out, 1 s at first and up to 30 s, within
    /// which `Retry-After` is heeded, without an end: add a timeout if the caller needs a bound.
    ///
    /// # Errors
    /// [`Expired`](ErrorKind::Expired) when the version is too old, and when the server's store was
    /// set back: list again, changes were missed; [`Forbidden`](ErrorKind::Forbidden) and other
    /// lasting errors; [`Decode`](ErrorKind::Decode) for an object that does not decode: the next
    /// event follows; [`Usage`](ErrorKind::Usage) without a version to begin after.
    /// # Cancel safety
    /// Safe: no event is lost, and the next call continues the pause.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        while !self.ended {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => {
                    self.ended = error.kind() != ErrorKind::Decode;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// The version at which another watch could continue this one.
    ///
    /// Before the first event the version to start after.
    pub fn resource_version(&self) -> &str {
        &self.version
    }

    /// A single step: a pause, a connection or an event. `None` when the step brought no event to
    /// return.
    async fn step(&mut self) -> Result<Option<WatchEvent<K>>, Error> {
        if let Some(end) = self.pause_ends {
            let clock = self.watch.draft.target.client.environment().clock.clone();
            tokio::select! {
                biased;
                store = self.rollback.rolled_back_meanwhile() => return Err(self.set_back(&store)),
                () = clock.sleep_until(end) => self.pause_ends = None,
            }
        }
        let Some(stream) = &mut self.stream else {
            self.check()?;
            let opening =
                self.opening.get_or_insert_with(|| self.watch.after(&self.version).into_future());
            let opened = opening.await;
            self.opening = None;
            match opened {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => self.rest(Some(error))?,
            }
            return Ok(None);
        };
        // The check comes first: a store that was set back ends the watch even if the server sends
        // events.
        let event = tokio::select! {
            biased;
            store = self.rollback.rolled_back(&self.version) => return Err(self.set_back(&store)),
            event = stream.next() => event,
        };
        match event {
            Some(Ok(event)) => Ok(self.is_newer(&event).then_some(event)),
            Some(Err(error)) if error.kind() == ErrorKind::Decode => Err(error),
            end => {
                self.rest(end.and_then(Result::err))?;
                Ok(None)
            }
        }
    }

    /// Refuses a watch without a version to start after.
    fn check(&self) -> Result<(), Error> {
        let initial = self.watch.draft.is_set("sendInitialEvents");
        if !initial && !matches!(self.version.as_str(), "" | "0") {
            return Ok(());
        }
        let text = "a watch that resumes needs a version to begin after, other than 0, and no initial \
                    events; list first, and give it the list's resource_version";
        Err(Error::usage(text))
    }

    /// The error for a store that was set back.
    fn set_back(&self, store: &str) -> Error {
        let version = &self.version;
        let text = format!(
            "the server's store was set back: it is at version {store}, and this watch at {version}; \
             list again"
        );
        Error::new(ErrorKind::Expired, text)
    }

    /// Whether the event is newer than all before.
    fn is_newer(&mut self, event: &WatchEvent<K>) -> bool {
        let version = match event {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => object.resource_version(),
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
        };
        match compare(version, &self.version) {
            Some(Ordering::Less) => {
                // Either a server that is behind, or a store that was set back: the check decides.
                self.rollback.old_event();
                return false;
            }
            Some(Ordering::Equal) => return false,
            Some(Ordering::Greater) | None => {}
        }
        self.failures = 0;
        version.clone_into(&mut self.version);
        true
    }

    /// Schedules the next connection after a pause; returns a lasting error to the caller.
    fn rest(&mut self, error: Option<Error>) -> Result<(), Error> {
        // Also after a regular end: a server that shuts down ends watches regularly, too.
        self.rollback.connection_lost();
        self.stream = None;
        let mut asked = None;
        if let Some(error) = error {
            if !passes(&error) {
                return Err(error);
            }
            asked = error.retry_after();
            tracing::debug!(%error, version = self.version, "a watch will go on");
        }
        let environment = self.watch.draft.target.client.environment();
        self.pause_ends = Some(environment.clock.now() + pause(environment, self.failures, asked));
        self.failures = self.failures.saturating_add(1);
        Ok(())
    }
}

impl<K> fmt::Debug for ResumingWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumingWatch")
            .field("watch", &self.watch)
            .field("version", &self.version)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
