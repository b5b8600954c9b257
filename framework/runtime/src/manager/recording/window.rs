//! The entries within the bounds of time and memory, and the state before the oldest of them.

// DESIGN.md, 280: Entries that leave a recording change its first lists

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use windlass_client::client::{ExchangeEnd, SentRequest};
use windlass_core::wire::EventType;

use super::RecordingOptions;
use super::mask::Mask;
use super::streams::{
    self, CacheEvent, CacheState, CallResponse, ObjectId, Objects, OpenExchange, RecordedCache,
};

/// Most caches; a program that makes informers without end is not recorded.
const MOST_CACHES: usize = 4096;

/// Content of an entry.
#[derive(Clone, Debug)]
pub(super) enum EntryContent {
    /// A complete list of a cache, or its refusal.
    List { cache: usize, state: CacheState },
    /// An event of a watch of a cache.
    Event { cache: usize, event: EventType, id: Option<ObjectId>, version: String, object: Bytes },
    /// Any other entry, as it is exported. Shared with the copy that an export is written from.
    Line(Arc<str>),
}

impl EntryContent {
    fn cost(&self) -> usize {
        match self {
            Self::List { state, .. } => streams::cost(&[]) + state.cost(),
            Self::Event { object, .. } => streams::cost(object),
            Self::Line(line) => streams::cost(line.as_bytes()),
        }
    }
}

#[derive(Clone, Debug)]
struct TimedEntry {
    at: Duration,
    content: EntryContent,
}

/// The recording's state.
#[derive(Debug)]
pub(super) struct Window {
    options: RecordingOptions,
    entries: VecDeque<TimedEntry>,
    pub(super) caches: Vec<RecordedCache>,
    /// The last answer of each path of discovery.
    pub(super) documents: BTreeMap<String, (u16, Bytes)>,
    running: HashMap<u64, OpenExchange>,
    /// Memory of everything above.
    pub(super) bytes: usize,
    /// Time of the state before the first entry.
    pub(super) began: Duration,
    /// Whether no entry has left.
    pub(super) is_whole: bool,
    /// Reason for which the recording has ended.
    pub(super) flaw: Option<String>,
    last: u64,
}

impl Window {
    pub(super) fn new(options: RecordingOptions) -> Self {
        Self {
            options,
            entries: VecDeque::new(),
            caches: Vec::new(),
            documents: BTreeMap::new(),
            running: HashMap::new(),
            bytes: 0,
            began: Duration::ZERO,
            is_whole: true,
            flaw: None,
            last: 0,
        }
    }

    /// Returns the number of a new exchange.
    pub(super) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Returns the copy from which an export is written. Bodies are shared, and exchanges that run
    /// are no part of an export, so that the copy takes a small part of the recording's memory.
    pub(super) fn snapshot(&self) -> Self {
        Self {
            options: self.options,
            entries: self.entries.clone(),
            caches: self.caches.clone(),
            documents: self.documents.clone(),
            running: HashMap::new(),
            bytes: self.bytes,
            began: self.began,
            is_whole: self.is_whole,
            flaw: self.flaw.clone(),
            last: self.last,
        }
    }

    /// Iterates over the entries, oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Duration, &EntryContent)> {
        self.entries.iter().map(|entry| (entry.at, &entry.content))
    }

    /// Adds an entry.
    pub(super) fn push(&mut self, at: Duration, content: EntryContent) {
        self.bytes += content.cost();
        self.entries.push_back(TimedEntry { at, content });
    }

    /// Begins to follow an exchange.
    pub(super) fn open(&mut self, number: u64, mut exchange: OpenExchange, request: &SentRequest) {
        match &mut exchange {
            OpenExchange::Page { cache, .. } => {
                *cache = self.cache(request);
                let is_first = !request.query.split('&').any(|pair| pair.starts_with("continue="));
                if let Some(cache) = self.caches.get_mut(*cache).filter(|_| is_first) {
                    self.bytes = self.bytes.saturating_sub(streams::total(&cache.pages));
                    cache.pages.clear();
                }
            }
            OpenExchange::Watch { cache, .. } => *cache = self.cache(request),
            OpenExchange::Document { .. } | OpenExchange::Call { .. } => {}
        }
        self.running.insert(number, exchange);
    }

    /// Returns the number of the cache that a request is of.
    fn cache(&mut self, request: &SentRequest) -> usize {
        let selectors = streams::selectors(&request.query);
        let is_same = |cache: &RecordedCache| {
            cache.path == request.path
                && cache.selectors == selectors
                && cache.is_metadata == request.is_metadata
        };
        if let Some(known) = self.caches.iter().position(is_same) {
            return known;
        }
        if self.caches.len() == MOST_CACHES {
            self.end(format!("the operator has more than {MOST_CACHES} caches"));
            return 0;
        }
        self.caches.push(RecordedCache {
            path: request.path.clone(),
            selectors,
            is_metadata: request.is_metadata,
            state: CacheState::Unknown,
            pages: Objects::new(),
        });
        self.caches.len() - 1
    }

    /// Notes the head of an answer.
    pub(super) fn answered(&mut self, number: u64, code: u16, retry_after: Option<&str>) {
        match self.running.get_mut(&number) {
            Some(
                OpenExchange::Page { code: known, .. }
                | OpenExchange::Watch { code: known, .. }
                | OpenExchange::Document { code: known, .. },
            ) => *known = code,
            Some(OpenExchange::Call { answer }) => {
                answer.code = code;
                answer.retry_after = retry_after.map(str::to_owned);
            }
            None => {}
        }
    }

    /// Takes a piece of an answer.
    pub(super) fn received(&mut self, at: Duration, number: u64, piece: &[u8], mask: &Mask) {
        let Some(exchange) = self.running.get_mut(&number) else { return };
        let body = match exchange {
            OpenExchange::Page { body, .. } | OpenExchange::Document { body, .. } => body,
            OpenExchange::Call { answer } if answer.is_stream => return,
            OpenExchange::Call { answer } => &mut answer.body,
            OpenExchange::Watch { code, body, .. } if *code != 200 => body,
            OpenExchange::Watch { cache, decoder, .. } => {
                let cache = *cache;
                let path = self.caches.get(cache).map(|cache| cache.path.as_str());
                let mask = Some(mask).filter(|_| path.is_some_and(Mask::concerns));
                let events = streams::events(decoder, piece, mask);
                events.into_iter().for_each(|event| self.watched(at, number, event));
                return;
            }
        };
        body.extend_from_slice(piece);
        self.bytes += piece.len();
    }

    /// Takes an event of a watch: a part of the list at its beginning, or an entry.
    fn watched(&mut self, at: Duration, number: u64, event: CacheEvent) {
        let Some(OpenExchange::Watch { cache, listing, .. }) = self.running.get_mut(&number) else {
            return;
        };
        let cache = *cache;
        let CacheEvent { event, id, version, object, completes_list } = event;
        if let (Some(objects), Some(id)) = (&mut *listing, &id) {
            self.bytes += streams::cost(&object);
            objects.insert(id.clone(), object);
            return;
        }
        if completes_list && let Some(objects) = listing.take() {
            let state = CacheState::Listed { version, objects };
            // Counted piece by piece until now.
            self.bytes = self.bytes.saturating_sub(state.cost());
            self.push(at, EntryContent::List { cache, state });
            return;
        }
        self.push(at, EntryContent::Event { cache, event, id, version, object });
    }

    /// Notes the end of an exchange; returns the answer to write down, if it is of a request.
    pub(super) fn ended(
        &mut self,
        at: Duration,
        number: u64,
        end: &ExchangeEnd,
        mask: &Mask,
    ) -> Option<CallResponse> {
        let is_whole = *end == ExchangeEnd::Whole;
        match self.running.remove(&number)? {
            OpenExchange::Call { answer } => {
                self.bytes = self.bytes.saturating_sub(answer.body.len());
                return Some(answer);
            }
            OpenExchange::Document { path, body, code } => {
                self.bytes = self.bytes.saturating_sub(body.len());
                // Errors that may pass are no answer to keep.
                if is_whole && (code == 200 || code == 404 || code == 403) {
                    self.bytes += streams::cost(&body);
                    let before = self.documents.insert(path, (code, body.into()));
                    let before = before.map_or(0, |(_, body)| streams::cost(&body));
                    self.bytes = self.bytes.saturating_sub(before);
                }
            }
            OpenExchange::Page { cache, body, code } => {
                self.bytes = self.bytes.saturating_sub(body.len());
                if is_whole {
                    self.listed(at, cache, code, body, mask);
                }
            }
            OpenExchange::Watch { cache, listing, body, code, .. } => {
                self.bytes = self.bytes.saturating_sub(body.len());
                if is_whole && listing.is_some() && code != 200 {
                    self.listed(at, cache, code, body, mask);
                }
                let listed = streams::total(&listing.unwrap_or_default());
                self.bytes = self.bytes.saturating_sub(listed);
            }
        }
        None
    }

    /// Takes a page of a list.
    fn listed(&mut self, at: Duration, number: usize, code: u16, body: Vec<u8>, mask: &Mask) {
        let Some(cache) = self.caches.get_mut(number) else { return };
        if code == 403 || code == 404 {
            let state = CacheState::Refused { code, body: body.into() };
            self.push(at, EntryContent::List { cache: number, state });
            return;
        }
        if code != 200 {
            return;
        }
        let mask = Mask::concerns(&cache.path).then_some(mask);
        self.bytes = self.bytes.saturating_sub(streams::total(&cache.pages));
        // A body that is no list is none for the cache, either.
        let end = streams::page(&body, mask, &mut cache.pages).ok();
        if let Some((version, None)) = end {
            let objects = std::mem::take(&mut cache.pages);
            let state = CacheState::Listed { version, objects };
            self.push(at, EntryContent::List { cache: number, state });
        } else {
            self.bytes += streams::total(&cache.pages);
        }
    }

    /// Removes what is beyond the bounds, oldest first. The state before the first entry takes the
    /// lists and events that leave.
    pub(super) fn evict(&mut self, now: Duration) {
        let RecordingOptions { time, bytes } = self.options;
        loop {
            let is_old = |entry: &TimedEntry| now.saturating_sub(entry.at) > time;
            let is_due = self.entries.front().is_some_and(|it| self.bytes > bytes || is_old(it));
            let Some(entry) = (if is_due { self.entries.pop_front() } else { None }) else { break };
            self.bytes = self.bytes.saturating_sub(entry.content.cost());
            self.began = entry.at;
            self.is_whole = false;
            self.fold(entry.content);
        }
        if self.flaw.is_none() && self.bytes > bytes {
            self.end(format!(
                "the objects of all caches and the answers under way need more than {bytes} bytes: raise \
                 the bound, or cache less"
            ));
        }
    }

    /// Applies an entry that leaves to the state before the first entry.
    fn fold(&mut self, content: EntryContent) {
        match content {
            EntryContent::List { cache, state } => {
                let Some(cache) = self.caches.get_mut(cache) else { return };
                let before = std::mem::replace(&mut cache.state, state);
                self.bytes = (self.bytes + cache.state.cost()).saturating_sub(before.cost());
            }
            EntryContent::Event { cache, event, id, version, object } => {
                let cache = self.caches.get_mut(cache).map(|cache| &mut cache.state);
                let Some(CacheState::Listed { version: newest, objects }) = cache else { return };
                if event == EventType::Error {
                    return;
                }
                *newest = version;
                let Some(id) = id else { return };
                let added = if event == EventType::Deleted { 0 } else { streams::cost(&object) };
                let before = match event {
                    EventType::Deleted => objects.remove(&id),
                    _ => objects.insert(id, object),
                };
                let removed = before.map_or(0, |object| streams::cost(&object));
                self.bytes = (self.bytes + added).saturating_sub(removed);
            }
            EntryContent::Line(_) => {}
        }
    }

    /// Ends the recording, and gives its memory back.
    fn end(&mut self, flaw: String) {
        let options = self.options;
        *self = Self { flaw: Some(flaw), began: self.began, is_whole: false, ..Self::new(options) };
    }
}
