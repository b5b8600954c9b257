//! Follows the states of a single object across lists, watches and their failures.

use std::cmp::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::watch::{compare, passes};
use crate::api::draft::Draft;
use crate::api::{Api, WatchEvent, WatchStream};
use crate::client::Verb;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceExt};

/// Time after which the server should end a watch, and time of silence after which the watch counts
/// as broken.
const WATCH_TIME: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(75);
/// Bounds of the pause after a failure, which doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A state of the object.
#[derive(Debug)]
pub(crate) enum FollowedState<K> {
    There(K),
    Absent,
}

/// Follows a single object by name. Ends only by a lasting error; the caller bounds the time.
#[derive(Debug)]
pub(crate) struct Follow<K> {
    api: Api<K>,
    name: String,
    /// The version to watch from; `None` until a list returned a version.
    version: Option<String>,
    watch: Option<WatchStream<K>>,
    /// The time at which the watch began.
    opened_at: Option<Instant>,
    /// Whether a watch failed since the store's version was last seen: the store may have been set
    /// back, and a watch from a version that the store lacks would be silent for ever.
    is_doubtful: bool,
    failures: u32,
    /// The failure after which the follower is pausing.
    pub(crate) trouble: Option<Error>,
}

impl<K: Resource> Follow<K> {
    /// Starts to follow; refuses an invalid name.
    pub(crate) fn new(api: &Api<K>, name: &str) -> Result<Self, Error> {
        // Refuses a name that cannot belong to an object.
        Draft::named(&api.target, Verb::Get, name).finish()?;
        Ok(Self {
            api: api.clone(),
            name: name.to_owned(),
            version: None,
            watch: None,
            opened_at: None,
            is_doubtful: false,
            failures: 0,
            trouble: None,
        })
    }

    /// Returns the next state; the first comes at once.
    pub(crate) async fn next(&mut self) -> Result<FollowedState<K>, Error> {
        loop {
            let step = match (&mut self.watch, &self.version) {
                (Some(_), _) if self.is_doubtful => self.check().await,
                (Some(_), _) => self.event().await,
                (None, Some(version)) => {
                    let version = version.clone();
                    self.open(&version).await.map(|()| None)
                }
                (None, None) => self.list().await.map(Some),
            };
            match step {
                Ok(Some(seen)) => {
                    self.trouble = None;
                    return Ok(seen);
                }
                Ok(None) => {}
                Err(error) => self.wait_out(error).await?,
            }
        }
    }

    /// The field selector of the name, with the selector's special characters escaped.
    fn selector(&self) -> String {
        let mut selector = "metadata.name=".to_owned();
        for c in self.name.chars() {
            if matches!(c, ',' | '=' | '\\') {
                selector.push('\\');
            }
            selector.push(c);
        }
        selector
    }

    /// Lists the object; the version of the list is where the next watch starts.
    async fn list(&mut self) -> Result<FollowedState<K>, Error> {
        let list = self.api.list().fields(&self.selector()).await?;
        self.version = Some(list.resource_version);
        self.is_doubtful = false;
        // Some aggregated API servers ignore the selector.
        let own = list.items.into_iter().find(|object| object.name() == self.name);
        Ok(own.map_or(FollowedState::Absent, FollowedState::There))
    }

    /// Starts a watch of the object.
    async fn open(&mut self, version: &str) -> Result<(), Error> {
        let watch = self.api.watch().fields(&self.selector()).resource_version(version);
        self.watch = Some(watch.timeout(WATCH_TIME).await?);
        self.opened_at = Some(self.api.client().environment().clock.now());
        Ok(())
    }

    /// Compares the store's version with that of the watch, which is open already, so that no state
    /// in between is missed. Returns the object's state if the store was set back.
    async fn check(&mut self) -> Result<Option<FollowedState<K>>, Error> {
        let known = self.version.clone().unwrap_or_default();
        let seen = self.list().await?;
        let listed = self.version.clone().unwrap_or_default();
        if compare(&listed, &known) == Some(Ordering::Less) {
            self.watch = None;
            return Ok(Some(seen));
        }
        self.version = Some(known);
        Ok(None)
    }

    /// Reads the next event. `None` when the event carries no state, or the watch was silent for
    /// too long.
    async fn event(&mut self) -> Result<Option<FollowedState<K>>, Error> {
        let Some(watch) = &mut self.watch else { return Ok(None) };
        let clock = self.api.client().environment().clock.clone();
        // The server ends a watch after `WATCH_TIME`: a longer silence is a dead connection.
        let Some(event) = clock.timeout(SILENCE, watch.next()).await else {
            (self.watch, self.version) = (None, None);
            return Ok(None);
        };
        let Some(event) = event else {
            self.watch = None;
            let age = self.opened_at.map(|opened| clock.now() - opened);
            if age.is_some_and(|age| age >= WATCH_TIME / 2) {
                // The regular end: the next watch continues at once and misses nothing.
                return Ok(None);
            }
            // An error, so that a server that ends every watch at once is asked with pauses.
            let text = format!("the watch of \"{}\" ended", self.name);
            return Err(Error::new(ErrorKind::Transport, text));
        };
        let (object, seen): (_, fn(K) -> FollowedState<K>) = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                (object, FollowedState::There)
            }
            WatchEvent::Deleted(object) => (object, |_| FollowedState::Absent),
            WatchEvent::Bookmark { resource_version, .. } => {
                self.advance(resource_version);
                return Ok(None);
            }
        };
        let is_newer = self.advance(object.resource_version().to_owned());
        Ok((is_newer && object.name() == self.name).then(|| seen(object)))
    }

    /// Advances to the version of an event; false if the event repeats an earlier state.
    fn advance(&mut self, version: String) -> bool {
        let known = self.version.as_deref().unwrap_or_default();
        let is_newer = compare(&version, known).is_none_or(Ordering::is_gt);
        if is_newer {
            // Not after an old event: a server that repeats events would be asked without pauses.
            self.failures = 0;
            self.version = Some(version);
        }
        is_newer
    }

    /// Pauses before the next attempt; returns a lasting error to the caller.
    async fn wait_out(&mut self, error: Error) -> Result<(), Error> {
        (self.watch, self.is_doubtful) = (None, true);
        if error.is_expired() {
            self.version = None;
        } else if !passes(&error) {
            return Err(error);
        }
        let environment = self.api.client().environment();
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        // Jitter: waiters of the same fault do not come back at the same moment.
        let pause = (pause + environment.rng.jitter(pause / 10))
            .max(error.retry_after().unwrap_or_default().min(LONGEST_PAUSE));
        tracing::debug!(%error, "the object cannot be read; the wait continues");
        self.failures += 1;
        self.trouble = Some(error);
        environment.clock.sleep(pause).await;
        Ok(())
    }
}
