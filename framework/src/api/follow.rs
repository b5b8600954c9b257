//! One object's states, one after another, across lists, watches and their failures.

use std::time::Duration;

use super::draft::Draft;
use super::{Api, WatchEvent, WatchStream};
use crate::client::Verb;
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceExt};

/// A watch is asked to end after this time, and one that is silent for longer is not believed.
const WATCH_TIME: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(75);
/// Bounds of the wait after a failure; it doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A state of the object.
#[derive(Debug)]
pub(crate) enum Seen<K> {
    There(K),
    Absent,
}

/// Follows one object by its name. It ends only by an error that will not pass; the caller bounds it.
#[derive(Debug)]
pub(crate) struct Follow<K> {
    api: Api<K>,
    name: String,
    /// The version to watch from; `None` until a list shows one.
    version: Option<String>,
    watch: Option<WatchStream<K>>,
    failures: u32,
    /// The failure that is being waited out.
    pub(crate) trouble: Option<Error>,
}

impl<K: Resource> Follow<K> {
    pub(crate) fn new(api: &Api<K>, name: &str) -> Result<Self, Error> {
        // Refuses what cannot be the name of one object.
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

    /// The next state; the first comes at once.
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
                    // Not after a list: where each watch ends at once, every pause would be the first.
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

    async fn list(&mut self) -> Result<Seen<K>, Error> {
        let list = self.api.list().fields(&self.selector()).await?;
        self.version = Some(list.resource_version);
        // Not every aggregated API server heeds the selector.
        let own = list.items.into_iter().find(|object| object.name() == self.name);
        Ok(own.map_or(Seen::Absent, Seen::There))
    }

    async fn open(&mut self, version: &str) -> Result<(), Error> {
        let watch = self.api.watch().fields(&self.selector()).resource_version(version);
        self.watch = Some(watch.timeout(WATCH_TIME).await?);
        Ok(())
    }

    /// The next event's state; `None` when it tells none, or the watch ended.
    async fn event(&mut self) -> Result<Option<Seen<K>>, Error> {
        let Some(watch) = &mut self.watch else { return Ok(None) };
        let clock = self.api.client().seams().clock.clone();
        let Some(event) = clock.within(SILENCE, watch.next()).await else {
            (self.watch, self.version) = (None, None);
            return Ok(None);
        };
        let Some(event) = event else {
            self.watch = None;
            // A server that ends every watch at once is not asked without a pause.
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

    /// Waits before the next try; gives an error back that will not pass.
    async fn wait_out(&mut self, error: Error) -> Result<(), Error> {
        // A list is next, not a watch from the old version: where the server's store was set back
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
        let pause = (pause + seams.entropy.jitter(pause / 10))
            .max(error.retry_after().unwrap_or_default().min(LONGEST_PAUSE));
        tracing::debug!(%error, "waiting goes on");
        self.failures += 1;
        self.trouble = Some(error);
        seams.clock.sleep(pause).await;
        Ok(())
    }
}
