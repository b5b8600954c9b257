//! WATCH: the changes of a selection, in order.
//!
//! A watch pulls from the store's log whenever the client is ready for more, so a slow client holds
//! no memory and no lock. The wire format of events is handled elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::VerbCall;
use super::list::{ListSelection, version};
use super::options::ListOptions;
use super::suspend::convert;
use crate::core::ServerCore;
use crate::faults::{FaultAction, LONGEST, Tap, WatchCommand};
use crate::kinds::{Kind, meta};
use crate::status::ApiError;
use crate::storage::{self, Cursor, StoredChange};

/// Changes that are taken from the log at once.
const BITE: usize = 64;

/// Time between periodic bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WatchEvent {
    /// `ADDED`, `MODIFIED` or `DELETED` with the object.
    Object(&'static str, Value),
    /// A bookmark.
    Bookmark(Value),
    /// A change that a webhook has yet to convert; such a change never leaves the watch.
    Unconverted(Box<Unconverted>),
    /// An error; the last event.
    Error(Value),
    /// Raw bytes of a fault, in place of an event.
    Raw(Bytes),
}

/// A change before conversion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unconverted {
    /// The stored object before the change.
    before: Option<Value>,
    /// The stored object after the change.
    after: Option<Value>,
    revision: u64,
}

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// The server, whose store is read.
    core: Arc<ServerCore>,
    /// Kind of the objects, in the version of the URL.
    kind: Arc<Kind>,
    /// Objects that the watch is about.
    selection: ListSelection,
    /// Beginning of the keys that belong to the namespace.
    prefix: String,
    /// Position in the history: changes behind the cursor have not been read.
    cursor: Cursor,
    /// Bytes of a fault that are sent before anything else.
    raw: VecDeque<Bytes>,
    /// Objects of the initial state that have not been sent yet.
    initial: VecDeque<Arc<storage::StoredObject>>,
    /// Events that can be sent now.
    ready: VecDeque<WatchEvent>,
    /// Delayed events, each with the time of readiness.
    lagging: VecDeque<(Instant, WatchEvent)>,
    /// Time of the next bookmark; `None` without bookmarks.
    bookmarks: Option<Instant>,
    /// Time at which the watch ends.
    deadline: Instant,
    /// Orders of faults.
    tap: Tap,
    /// Time until which a fault keeps later changes from the watch.
    asleep: Option<Instant>,
    /// Whether the watch ends after the queued events.
    over: bool,
    /// Whether a webhook converts the objects.
    converts: bool,
    /// Number of writes in the store when events were taken from the log.
    ticket: u64,
}

/// Opens a watch; `actions` are its faults.
pub(crate) fn open(
    core: &Arc<ServerCore>,
    call: &VerbCall,
    options: &ListOptions,
    actions: &[FaultAction],
) -> Result<Watcher, ApiError> {
    let kind = call.kind.clone();
    let selection = ListSelection::of(&kind, options)?;
    let asked = version(&options.version).map_err(ApiError::unclassified)?.unwrap_or(0);
    // Faults and the log of requests name a resource by plural; the watch does the same.
    let tap = core.faults.tap(&kind.served.plural);
    let seconds = match options.timeout {
        Some(seconds) => seconds.min(365 * 24 * 3600),
        // Spread over half an hour, so that watches opened together do not end together.
        None => 1800 + core.rng.below(1800),
    };
    let now = Instant::now();
    // A single call for both: no change falls between the initial state and the cursor.
    let (snapshot, cursor) = core.store.follow(&kind.storage);
    let mut watcher = Watcher {
        core: core.clone(),
        selection,
        prefix: prefix(&call.namespace),
        cursor,
        raw: VecDeque::new(),
        initial: VecDeque::new(),
        ready: VecDeque::new(),
        lagging: VecDeque::new(),
        bookmarks: options.bookmarks.then(|| now + BOOKMARKS),
        deadline: now + Duration::from_secs(seconds),
        tap,
        asleep: None,
        over: false,
        converts: kind.custom.as_ref().is_some_and(|custom| custom.conversion.is_some()),
        ticket: core.store.ticket(),
        kind,
    };
    // No version and no `sendInitialEvents` imply the initial state; a bookmark marks the end of
    // that state if the client allows bookmarks.
    let streams = options.initial == Some(true);
    let implied = options.initial.is_none() && asked == 0;
    if streams || implied {
        watcher.start(&snapshot, &call.namespace, options.bookmarks);
    } else if asked > 0 || options.initial == Some(false) {
        watcher.resume(asked);
    }
    // Last: a fault may take the place of everything that is queued.
    watcher.afflict(actions);
    if let Some((revision, time)) = behind(actions) {
        watcher.fall_behind(revision, time, &call.namespace, streams || implied);
    }
    Ok(watcher)
}

/// Returns the revision that a fault shows to a watch as the present, and for how long.
fn behind(actions: &[FaultAction]) -> Option<(u64, Duration)> {
    actions.iter().find_map(|action| match action {
        FaultAction::Behind(revision, time) => Some((*revision, *time)),
        _ => None,
    })
}

/// Returns the beginning of a namespace's keys.
fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

impl Watcher {
    /// Queues the initial state, and a bookmark behind it if `mark_end`.
    fn start(&mut self, snapshot: &storage::Snapshot, namespace: &str, mark_end: bool) {
        let held = storage::in_namespace(snapshot, namespace).map(|(_, held)| held);
        // By webhook converted objects are selected after their conversion.
        let is_open = self.converts;
        let chosen = held.filter(|held| is_open || self.selection.matches(&held.value)).cloned();
        self.initial = chosen.collect();
        if mark_end {
            let bookmark = self.bookmark(true);
            self.ready.push_back(bookmark);
        }
    }

    /// Continues after a version.
    fn resume(&mut self, asked: u64) {
        if asked == 0 {
            return;
        }
        let cursor = self.core.store.follow_from(&self.kind.storage, asked);
        match cursor {
            Ok(cursor) => self.cursor = cursor,
            Err(storage::Compacted { current }) => {
                self.expire(asked, current);
            }
        }
    }

    /// Ends the watch with a 410.
    fn expire(&mut self, asked: u64, current: u64) {
        let text = format!("too old resource version: {asked} ({current})");
        self.fail(&ApiError::expired(text));
    }

    /// Queues an error as the last event.
    fn fail(&mut self, error: &ApiError) {
        self.ready.push_back(WatchEvent::Error(error.body()));
        self.over = true;
    }

    /// Applies the faults that strike the watch on opening.
    fn afflict(&mut self, actions: &[FaultAction]) {
        for action in actions {
            match action {
                FaultAction::CloseWatch => {
                    self.initial.clear();
                    self.ready.clear();
                    self.over = true;
                }
                FaultAction::FailWatch(code) => {
                    self.initial.clear();
                    self.ready.clear();
                    self.fail(&failure(*code));
                }
                FaultAction::RawFrame(bytes) => self.raw.push_back(bytes.clone()),
                FaultAction::RepeatWatch(back) => self.again(*back, false),
                _ => {}
            }
        }
    }

    /// Shows a revision as the present for a time; `starts` if the watch begins with a state.
    fn fall_behind(&mut self, revision: u64, time: Duration, namespace: &str, starts: bool) {
        let resource = &self.kind.storage;
        let old = self.core.store.snapshot_at(resource, revision);
        let follow = self.core.store.follow_from(resource, revision);
        let (Ok(snapshot), Ok(cursor)) = (old, follow) else { return };
        self.asleep = Some(Instant::now() + time.min(LONGEST));
        if starts {
            self.cursor = cursor;
            self.ready.clear();
            self.start(&snapshot, namespace, self.bookmarks.is_some());
        }
    }

    /// Whether a fault still keeps changes from the watch.
    fn is_asleep(&self) -> bool {
        self.asleep.is_some_and(|until| Instant::now() < until)
    }

    /// Waits for the next event; `None` ends the watch.
    pub(crate) async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            match self.next_change().await? {
                WatchEvent::Unconverted(change) => {
                    if let Some(event) = self.converted(*change).await {
                        return Some(event);
                    }
                }
                event => return Some(event),
            }
        }
    }

    /// Converts a change, and returns the event; `None` if the change does not concern the
    /// selection. A failed conversion ends the watch.
    async fn converted(&mut self, change: Unconverted) -> Option<WatchEvent> {
        let (before, after) = (change.before, change.after);
        let stored: Vec<Value> = before.iter().chain(after.iter()).cloned().collect();
        let mut shown = match convert::wait(&self.core, &self.kind, &stored).await {
            Ok(shown) => shown.into_iter(),
            Err(error) => {
                self.fail(&error);
                return None;
            }
        };
        let before = before.and_then(|_| shown.next());
        let after = after.and_then(|_| shown.next());
        self.named(before, after, change.revision)
    }

    /// Waits for the next event, before conversion. Cancel safe.
    async fn next_change(&mut self) -> Option<WatchEvent> {
        loop {
            // A paused watch still ends: only events are held back.
            if !self.tap.paused() || self.over {
                if let Some(event) = self.take() {
                    return Some(event);
                }
                if self.over {
                    return None;
                }
                let pulled = !self.is_asleep() && self.pull();
                if pulled || !self.ready.is_empty() || self.over {
                    continue;
                }
            }
            self.wait().await;
        }
    }

    /// Waits until all changes that events were made of are in the data file: no client may see a
    /// change that a restart takes back. Cancel safe.
    pub(crate) async fn durable(&self) {
        self.core.store.durable_until(self.ticket).await;
    }

    /// Takes the next event, if any is ready.
    fn take(&mut self) -> Option<WatchEvent> {
        if let Some(bytes) = self.raw.pop_front() {
            return Some(WatchEvent::Raw(bytes));
        }
        if let Some(held) = self.initial.pop_front() {
            if self.converts {
                let (after, revision) = (Some(held.value.clone()), held.revision);
                let change = Unconverted { before: None, after, revision };
                return Some(WatchEvent::Unconverted(Box::new(change)));
            }
            return Some(WatchEvent::Object("ADDED", self.kind.present(&held.value)));
        }
        if let Some((due, _)) = self.lagging.front()
            && *due <= Instant::now()
            // Ready events go first: the bookmark behind the initial state, for example, precedes
            // every change.
            && self.ready.is_empty()
        {
            return self.lagging.pop_front().map(|(_, event)| event);
        }
        self.ready.pop_front()
    }

    /// Waits for an order, a change, a due event, a bookmark or the end.
    async fn wait(&mut self) {
        let asleep = self.asleep.filter(|until| Instant::now() < *until);
        let paused = self.tap.paused() || asleep.is_some();
        let bookmark = self.bookmarks.unwrap_or(self.deadline);
        let lagging = self.lagging.front().map_or(self.deadline, |(due, _)| *due);
        tokio::select! {
            biased;
            // Orders first: tests expect their effect before any later event.
            order = self.tap.next() => match order {
                Some(WatchCommand::Close) => self.over = true,
                Some(WatchCommand::Fail(code)) => self.fail(&failure(code)),
                Some(WatchCommand::Raw(bytes)) => self.ready.push_back(WatchEvent::Raw(bytes)),
                Some(WatchCommand::Again { back, only_one }) => self.again(back, only_one),
                None => {}
            },
            () = self.cursor.changed(), if !paused => {}
            () = sleep_until(self.deadline) => self.over = true,
            () = sleep_until(asleep.unwrap_or(self.deadline)), if asleep.is_some() => {}
            () = sleep_until(lagging), if !paused && !self.lagging.is_empty() => {}
            () = sleep_until(bookmark), if self.bookmarks.is_some() && !paused => {
                self.bookmarks = Some(bookmark + BOOKMARKS);
                self.pull();
                // A bookmark of a future version would claim that the versions before were seen.
                if self.cursor.revision <= self.core.store.revision() && !self.over {
                    let event = self.bookmark(false);
                    self.line_up(event);
                }
            }
        }
    }

    /// Queues an event behind the delayed events.
    fn line_up(&mut self, event: WatchEvent) {
        let lag = self.tap.lag();
        // While delayed events wait, a later event must not overtake them.
        if lag.is_zero() && self.lagging.is_empty() {
            self.ready.push_back(event);
        } else {
            self.lagging.push_back((Instant::now() + lag, event));
        }
    }

    /// Takes changes from the log; true if there were some, and there may be more.
    fn pull(&mut self) -> bool {
        let mut found = false;
        match self.core.store.changes(&self.kind.storage, &mut self.cursor, BITE) {
            Ok(batch) => {
                found = !batch.changes.is_empty();
                // After the read: the changes of the batch are among these writes.
                self.ticket = self.core.store.ticket();
                for change in &batch.changes {
                    if let Some(event) = self.event(change) {
                        self.line_up(event);
                    }
                }
                // `|=`: a fault may have ended the watch already.
                self.over |= batch.ended;
            }
            Err(storage::Compacted { current }) => self.expire(self.cursor.revision, current),
        }
        found
    }

    /// Repeats changes that were shown, as far as the log still holds them.
    fn again(&mut self, back: u64, only_one: bool) {
        let resource = &self.kind.storage;
        let from = self.cursor.revision.saturating_sub(back);
        let Ok(mut cursor) = self.core.store.follow_from(resource, from) else { return };
        if !only_one {
            // The whole range is read again, by moving the cursor back.
            self.cursor = cursor;
            return;
        }
        let first = self.core.store.changes(resource, &mut cursor, 1);
        self.ticket = self.core.store.ticket();
        let first = first.into_iter().flat_map(|batch| batch.changes);
        // Only changes that the client has seen: a later change would be no repetition.
        let seen = first.filter(|change| change.revision <= self.cursor.revision);
        let events: Vec<_> = seen.filter_map(|change| self.event(&change)).collect();
        self.ready.extend(events);
    }

    /// Returns the event of a change for this selection; `None` if the change does not concern it.
    fn event(&self, change: &StoredChange) -> Option<WatchEvent> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let value = |object: &Option<Arc<storage::StoredObject>>| {
            object.as_ref().map(|object| object.value.clone())
        };
        if self.converts {
            let (before, after) = (value(&change.before), value(&change.after));
            let change = Unconverted { before, after, revision: change.revision };
            return Some(WatchEvent::Unconverted(Box::new(change)));
        }
        let chosen = |held: &&Arc<storage::StoredObject>| self.selection.matches(&held.value);
        let was = change.before.as_ref().filter(chosen);
        let is = change.after.as_ref().filter(chosen);
        let name = name_of(was.is_some(), is.is_some())?;
        let mut shown = self.kind.present(&is.or(was)?.value);
        if is.is_none() {
            // The last state of a deleted or deselected object carries the version of that change.
            meta::set(&mut shown, "resourceVersion", change.revision.to_string().into());
        }
        Some(WatchEvent::Object(name, shown))
    }

    /// Returns the event of a converted change.
    fn named(
        &self,
        before: Option<Value>,
        after: Option<Value>,
        revision: u64,
    ) -> Option<WatchEvent> {
        let selected = |object: Option<Value>| object.filter(|one| self.selection.matches(one));
        let (was, is) = (selected(before), selected(after));
        let name = name_of(was.is_some(), is.is_some())?;
        if let Some(shown) = is {
            return Some(WatchEvent::Object(name, shown));
        }
        let mut last = was?;
        meta::set(&mut last, "resourceVersion", revision.to_string().into());
        Some(WatchEvent::Object(name, last))
    }

    /// Returns a bookmark; `initial` marks the end of the initial state.
    fn bookmark(&self, initial: bool) -> WatchEvent {
        let mut metadata = json!({"resourceVersion": self.cursor.revision.to_string()});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let served = &self.kind.served;
        WatchEvent::Bookmark(json!({
            "kind": served.kind, "apiVersion": served.api_version(), "metadata": metadata,
        }))
    }
}

/// Returns the name of an event, by whether the selection held the object before and holds the
/// object now.
fn name_of(was: bool, is: bool) -> Option<&'static str> {
    match (was, is) {
        (false, true) => Some("ADDED"),
        (true, true) => Some("MODIFIED"),
        (true, false) => Some("DELETED"),
        (false, false) => None,
    }
}

/// Returns the failure with a code that a fault asks for.
pub(crate) fn failure(code: u16) -> ApiError {
    match code {
        410 => ApiError::expired("too old resource version: 1 (2)"),
        401 => ApiError::unauthorized(),
        429 => ApiError::too_many("storage is (re)initializing", 1),
        500 => ApiError::internal("made to fail"),
        503 => ApiError::custom(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => ApiError::custom(
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        ),
        409 => ApiError::custom(409, "Conflict", "Operation cannot be fulfilled: made to fail"),
        403 => ApiError::custom(403, "Forbidden", "forbidden: made to fail"),
        404 => ApiError::no_resource(),
        _ => ApiError::custom(code, "", "made to fail"),
    }
}
