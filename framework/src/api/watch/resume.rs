//! A watch that goes on after its connection: from the last version that was told, after a pause.
//!
//! For programs that follow changes and keep no cache. Absent: what a cache adds, which is a list at
//! the beginning and another when the version is too old. An [informer](crate::informer) has both.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::{Watch, WatchEvent, WatchStream};
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceExt};

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
    /// What was told last.
    version: String,
    stream: Option<WatchStream<K>>,
    pause_ends: Option<Instant>,
    /// Connections in a row that told nothing.
    failures: u32,
    ended: bool,
}

impl<K: Resource> ResumingWatch<K> {
    /// The next event, of whichever connection. What is not newer than what was told before is left
    /// out. `None` after every error but [`Decode`](ErrorKind::Decode).
    ///
    /// A server whose store was set back, by a restored backup, answers a watch from a version that it has not
    /// reached by silence, which this watch cannot tell from a time in which nothing happens. A program
    /// that lives through that needs an [informer](crate::informer), which asks.
    ///
    /// Lost connections, silence, 429 and 5xx are waited out, 1 s at first and up to 30 s or what
    /// `Retry-After` asks for, without an end: bound it with a timeout where there must be one.
    ///
    /// # Errors
    /// [`Expired`](ErrorKind::Expired) when the version is too old: list again, changes were missed;
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
        match stream.next().await {
            Some(Ok(event)) => Ok(self.told(&event).then_some(event)),
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

    /// Is the event newer than all before?
    fn told(&mut self, event: &WatchEvent<K>) -> bool {
        let version = match event {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => object.resource_version(),
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
        };
        if is_number(version) && is_number(&self.version) {
            let newer = (version.len(), version) > (self.version.len(), self.version.as_str());
            if !newer {
                return false;
            }
        }
        self.failures = 0;
        version.clone_into(&mut self.version);
        true
    }

    /// Has the next connection wait; gives an error back that will not pass.
    fn rest(&mut self, error: Option<Error>) -> Result<(), Error> {
        self.stream = None;
        let mut asked = Duration::ZERO;
        if let Some(error) = error {
            if !passes(&error) {
                return Err(error);
            }
            asked = error.retry_after().unwrap_or_default().min(LONGEST_PAUSE);
            tracing::debug!(%error, version = self.version, "a watch will go on");
        }
        let seams = self.watch.draft.target.client.seams();
        let pause = SHORTEST_PAUSE.saturating_mul(1 << self.failures.min(5)).min(LONGEST_PAUSE);
        // Many that lost one server do not come back to it at once.
        let pause = (pause / 2 + seams.entropy.jitter(pause / 2)).max(asked);
        self.failures = self.failures.saturating_add(1);
        self.pause_ends = Some(seams.clock.now() + pause);
        Ok(())
    }
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
