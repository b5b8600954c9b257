//! Follows the states of one object across lists, watches and their failures.

use std::time::Duration;

use super::draft::Draft;
use super::{Api, WatchEvent, WatchStream};
use crate::client::Verb;
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceExt};

/// Time after which the server should end a watch, and time of silence after which it counts as
/// broken.
const WATCH_TIME: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(75);
/// Bounds of the pause after a failure; it doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A state of the object.
#[derive(Debug)]
pub(crate) enum Seen<K> {
    There(K),
    Absent,
}

/// Follows one object by its name. Ends only by a lasting error; the caller bounds the time.
#[derive(Debug)]
pub(crate) struct Follow<K> {
    api: Api<K>,
    name: String,
    /// The version to watch from; `None` until a list returned one.
    version: Option<String>,
    watch: Option<WatchStream<K>>,
    failures: u32,
    /// The failure after which the follower is pausing.
    pub(crate) trouble: Option<Error>,
}

impl<K: Resource> Follow<K> {
    /// Starts to follow; refuses an invalid name.
    pub(crate) fn new(api: &Api<K>, name: &str) -> Result<Self, Error> {
        // Refuses a name that cannot belong to one object.
        Draft::named(&api.target, Verb::Get, name).finish()?;
        Ok(Self {
            api: api.clone(),
            name: name.to_owned(),
            version: None,
            watch: None,
            failures: 0,
            trouble: None,
        })
    }

    /// Returns the next state; the first comes at once.
    pub(crate) async fn next(&mut self) -> Result<Seen<K>, Error> {
        loop {
            let step = match (&mut self.watch, &self.version) {
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
                    // Not after a list: where each watch ends at once, every pause would be the
                    // first.
                    if self.watch.is_some() {
                        self.failures = 0;
                    }
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
    async fn list(&mut self) -> Result<Seen<K>, Error> {
        let list = self.api.list().fields(&self.selector()).await?;
        self.version = Some(list.resource_version);
        // Some aggregated API servers ignore the selector.
        let own = list.items.into_iter().find(|object| object.name() == self.name);
        Ok(own.map_or(Seen::Absent, Seen::There))
    }

    /// Starts a watch of the object.
    async fn open(&mut self, version: &str) -> Result<(), Error> {
        let watch = self.api.watch().fields(&self.selector()).resource_version(version);
        self.watch = Some(watch.timeout(WATCH_TIME).await?);
        Ok(())
    }

    /// Reads the next event. `None` when it carries no state, or the watch was silent for too long.
    async fn event(&mut self) -> Result<Option<Seen<K>>, Error> {
        let Some(watch) = &mut self.watch else { return Ok(None) };
        let clock = self.api.client().seams().clock.clone();
        // The server ends a watch after `WATCH_TIME`: a longer silence is a dead connection.
        let Some(event) = clock.within(SILENCE, watch.next()).await else {
            (self.watch, self.version) = (None, None);
            return Ok(None);
        };
        let Some(event) = event else {
            self.watch = None;
            // An error, so that a server that ends every watch at once is asked with pauses.
            let text = format!("the watch of \"{}\" ended", self.name);
            return Err(Error::new(ErrorKind::Transport, text));
        };
        let (object, seen): (_, fn(K) -> Seen<K>) = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, Seen::There),
            WatchEvent::Deleted(object) => (object, |_| Seen::Absent),
            WatchEvent::Bookmark { resource_version, .. } => {
                self.version = Some(resource_version);
                return Ok(None);
            }
        };
        self.version = Some(object.resource_version().to_owned());
        Ok((object.name() == self.name).then(|| seen(object)))
    }

    /// Pauses before the next attempt; returns a lasting error to the caller.
    async fn wait_out(&mut self, error: Error) -> Result<(), Error> {
        // Lists next instead of watching from the old version: if the server's store was set back
        // meanwhile, such a watch would be silent for ever. One object costs as much either way.
        (self.watch, self.version) = (None, None);
        let passes = match error.kind() {
            ErrorKind::Expired
            | ErrorKind::TooManyRequests
            | ErrorKind::Timeout
            | ErrorKind::Connect
            | ErrorKind::Transport => true,
            ErrorKind::Server => !error.is_method_not_supported(),
            _ => false,
        };
        if !passes {
            return Err(error);
        }
        let seams = self.api.client().seams();
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        // Jitter: waiters of one fault do not come back at the same moment.
        let pause = (pause + seams.entropy.jitter(pause / 10))
            .max(error.retry_after().unwrap_or_default().min(LONGEST_PAUSE));
        tracing::debug!(%error, "waiting goes on");
        self.failures += 1;
        self.trouble = Some(error);
        seams.clock.sleep(pause).await;
        Ok(())
    }
}
