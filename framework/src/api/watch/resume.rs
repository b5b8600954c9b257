//! A watch that goes on after its connection: from the last version that it showed, after a pause.
//!
//! For programs that follow changes and keep no cache. A cache adds a list at the beginning, and another
//! when the version is too old; an [informer](crate::informer) has both.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::rollback::RollbackCheck;
use super::{Watch, WatchEvent, WatchStream};
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceExt};
use crate::seams::Seams;

/// Bounds of the pause between two connections; it doubles while nothing comes.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl<K> Watch<K> {
    /// The same watch, which begins anew from the last version whenever it ends or its connection
    /// breaks. It needs a [version](Self::resource_version) to begin after: that of a list.
    ///
    /// ```no_run
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
        let version = self.draft.query.iter().find(|(key, _)| *key == "resourceVersion");
        let version = version.map(|(_, value)| value.clone()).unwrap_or_default();
        ResumingWatch {
            rollback: RollbackCheck::new(&self.draft.target),
            watch: self,
            version,
            stream: None,
            pause_ends: None,
            failures: 0,
            ended: false,
        }
    }

    fn after(&self, version: &str) -> Self {
        let watch =
            Self { draft: self.draft.clone(), frame_limit: self.frame_limit, _kind: self._kind };
        watch.resource_version(version)
    }
}

/// A watch that resumes; see [`Watch::resuming`]. Dropping it ends it.
pub struct ResumingWatch<K> {
    watch: Watch<K>,
    /// The version of the last event.
    version: String,
    rollback: RollbackCheck,
    stream: Option<WatchStream<K>>,
    pause_ends: Option<Instant>,
    /// Connections in a row without an event.
    failures: u32,
    ended: bool,
}

impl<K: Resource> ResumingWatch<K> {
    /// The next event, of whichever connection. Events that are not newer than an earlier one are left
    /// out. `None` after every error but [`Decode`](ErrorKind::Decode).
    ///
    /// A server whose store was set back, by a restored backup, answers a watch from a version that it
    /// has not reached by silence. So after a lost connection one object is listed beside the watch, for
    /// the version that the store has; a role without `list` leaves this out. Once the store's versions
    /// have climbed past this watch's again, versions show nothing any more.
    ///
    /// Lost connections, silence, 429 and 5xx are waited out, 1 s at first and up to 30 s or what
    /// `Retry-After` asks for, without an end: bound it with a timeout where there must be one.
    ///
    /// # Errors
    /// [`Expired`](ErrorKind::Expired) when the version is too old, and when the server's store was set
    /// back: list again, changes were missed;
    /// [`Forbidden`](ErrorKind::Forbidden) and whatever else will not pass;
    /// [`Decode`](ErrorKind::Decode) for an object that does not decode: the next one follows;
    /// [`Usage`](ErrorKind::Usage) without a version to begin after.
    /// # Cancel safety
    /// Safe: no event is lost, and a pause goes on where it was.
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

    /// The version to begin after, should this be ended and begun again by somebody else.
    pub fn resource_version(&self) -> &str {
        &self.version
    }

    async fn step(&mut self) -> Result<Option<WatchEvent<K>>, Error> {
        if let Some(end) = self.pause_ends {
            self.watch.draft.target.client.seams().clock.sleep_until(end).await;
            self.pause_ends = None;
        }
        let Some(stream) = &mut self.stream else {
            self.check()?;
            match self.watch.after(&self.version).await {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => self.rest(Some(error))?,
            }
            return Ok(None);
        };
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

    fn check(&self) -> Result<(), Error> {
        let initial = self.watch.draft.is_set("sendInitialEvents");
        if !initial && !matches!(self.version.as_str(), "" | "0") {
            return Ok(());
        }
        let text = "a watch that resumes needs a version to begin after, other than 0, and no initial \
                    events; list first, and give it the list's resource_version";
        Err(Error::new(ErrorKind::Usage, text))
    }

    fn set_back(&self, store: &str) -> Error {
        let version = &self.version;
        let text = format!(
            "the server's store was set back: it is at version {store}, and this watch at {version}; \
             list again"
        );
        Error::new(ErrorKind::Expired, text)
    }

    /// Is the event newer than all before?
    fn is_newer(&mut self, event: &WatchEvent<K>) -> bool {
        let version = match event {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => object.resource_version(),
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
        };
        match compare(version, &self.version) {
            Some(Ordering::Less) => {
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

    /// Has the next connection wait; gives an error back that will not pass.
    fn rest(&mut self, error: Option<Error>) -> Result<(), Error> {
        // Also after an end in order: a server that shuts down ends its watches so, too.
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
        let seams = self.watch.draft.target.client.seams();
        self.pause_ends = Some(seams.clock.now() + pause(seams, self.failures, asked));
        self.failures = self.failures.saturating_add(1);
        Ok(())
    }
}

/// The pause after that many failures in a row, when the server asked for `asked`.
pub(super) fn pause(seams: &Seams, failures: u32, asked: Option<Duration>) -> Duration {
    let pause = SHORTEST_PAUSE.saturating_mul(1 << failures.min(5)).min(LONGEST_PAUSE);
    // Many that lost one server do not come back to it at once.
    let pause = pause / 2 + seams.entropy.jitter(pause / 2);
    pause.max(asked.unwrap_or_default().min(LONGEST_PAUSE))
}

/// The order of two versions; `None` where one is no number.
pub(super) fn compare(version: &str, other: &str) -> Option<Ordering> {
    let are_numbers = is_number(version) && is_number(other);
    are_numbers.then(|| (version.len(), version).cmp(&(other.len(), other)))
}

fn passes(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::TooManyRequests
        | ErrorKind::Timeout
        | ErrorKind::Connect
        | ErrorKind::Transport => true,
        ErrorKind::Server => !error.is_method_not_supported(),
        _ => false,
    }
}

fn is_number(version: &str) -> bool {
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
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
