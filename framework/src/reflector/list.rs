//! A list in pages: its version, the size of its pages, and the handling of its items.

use std::cmp::Ordering;

use super::machine::{AttemptEnd, During, judge};
use super::options::PAGE;
use super::sink::{RawObject, ReflectorSink, StreamProgress};
use super::source::PageReader;
use super::source::Read;
use super::{IN_PART_PAUSE, Reflector, State};
use crate::metrics::names;
use crate::store::order;
use crate::wire::{ListMeta, Malformed, MetadataScan, Part};

/// The failure of a list in pages.
struct Failed {
    setback: AttemptEnd,
    /// Whether the failed page was not the first.
    is_later: bool,
}

impl<T: ReflectorSink> Reflector<T> {
    /// Lists the whole scope.
    pub(super) async fn list(&mut self) -> Result<(), AttemptEnd> {
        let version = self.list_version();
        let limit = self.limit(version.as_deref());
        match self.list_pages(version, limit).await {
            Ok(()) => Ok(()),
            // B4 (lists that expire before they end): the position between two pages has expired. A
            // list without a limit does not depend on its duration.
            Err(Failed { setback: AttemptEnd::Stale { why, .. }, is_later: true }) => {
                tracing::warn!(
                    resource = self.what,
                    why,
                    "pages expire while they are read: the list is read as a whole"
                );
                self.unpaged = true;
                self.cause = "expired_page";
                self.list_pages(None, None).await.map_err(|failed| failed.setback)
            }
            Err(failed) => Err(failed.setback),
        }
    }

    /// Returns the version that the next list must not be older than; `None` is a consistent read.
    pub(super) fn list_version(&self) -> Option<String> {
        if !self.options.stale_ok || self.needs_consistent {
            return None;
        }
        Some(self.position.newest().unwrap_or("0").to_owned())
    }

    /// Returns the items per page. Servers answer a list that names a version from memory, and
    /// whole.
    fn limit(&self, version: Option<&str>) -> Option<u32> {
        if self.unpaged {
            return None;
        }
        match self.options.page_size {
            Some(items) => Some(items).filter(|items| *items > 0),
            None if self.pages_any_version || matches!(version, None | Some("0")) => Some(PAGE),
            None => None,
        }
    }

    /// Reads all pages of one list.
    async fn list_pages(
        &mut self,
        version: Option<String>,
        limit: Option<u32>,
    ) -> Result<(), Failed> {
        self.begin_list(version.clone());
        let mut continue_token = None;
        let mut asked = version.clone();
        loop {
            let is_later = continue_token.is_some();
            // Only the first page names a version; later ones follow the token.
            let page = Read::Page { resource_version: asked.take(), limit, continue_token };
            let meta = self.page(page).await.map_err(|setback| Failed { setback, is_later })?;
            if meta.continue_token.is_none() {
                let ended = self.end_list(&meta.resource_version);
                // Handed over now: the watch that follows may be silent for long.
                self.target.room().await;
                return ended.map_err(|setback| Failed { setback, is_later: false });
            }
            // A server that pages such a list reads its storage, whatever version is named.
            self.pages_any_version |= version.as_deref() == Some("0");
            continue_token = meta.continue_token;
        }
    }

    /// Reads one page and hands its items over as they arrive; returns the list's metadata.
    async fn page(&mut self, page: Read) -> Result<ListMeta, AttemptEnd> {
        let (clock, what) = (self.environment.clock.clone(), self.what.clone());
        let source = std::sync::Arc::clone(&self.source);
        let judged = |error| judge(&error, During::Page);
        let limit = self.options.frame_limit;
        let mut reader =
            PageReader::open(&*source, page, &clock, &what, limit).await.map_err(judged)?;
        while let Some(piece) = reader.next().await.map_err(judged)? {
            let before = self.listed;
            // Handed over piece by piece: at most one piece and one item are held beside the cache
            // (A12: lists of gigabytes).
            reader.split(&piece, &mut |part| self.item(part)).map_err(judged)?;
            self.status.heard(clock.now(), false);
            self.count_items(before);
            self.target.room().await;
        }
        reader.finish().map_err(judged)
    }

    /// Handles one item of a page.
    fn item(&mut self, part: Part<'_>) {
        self.listed += 1;
        let skim = match part {
            Part::Whole(item) => {
                MetadataScan::of(item).map(|skim| match self.expected.other_item(item) {
                    None => self.target.listed(&RawObject::new(&skim, item)),
                    Some(other) => {
                        self.unexpected(&other);
                        self.unreadable += 1;
                    }
                })
            }
            Part::TooLarge(item) => MetadataScan::of_beginning(item)
                .map(|skim| self.too_large(&RawObject::new(&skim, item))),
        };
        if let Err(error) = skim {
            self.unreadable(&error);
        }
    }

    /// Counts items while the list is read, which may take minutes.
    pub(super) fn count_items(&self, before: u64) {
        if self.listed > before {
            let items = self.listed - before;
            self.environment.metrics.count(&names::INFORMER_LISTED, &[&self.resource], items);
        }
    }

    /// Keeps the last known state of an object that is too large; the stream goes on (A13: one huge
    /// object).
    pub(super) fn too_large(&mut self, seen: &RawObject<'_>) {
        self.dropped("too_large");
        tracing::error!(
            resource = self.what,
            namespace = seen.namespace(),
            name = seen.name(),
            "the object is larger than {} bytes: its new state is not cached",
            self.options.frame_limit
        );
        self.target.kept(seen);
    }

    /// Drops an object of another kind than was asked for; logged once per stream.
    pub(super) fn unexpected(&mut self, other: &str) {
        self.dropped("unexpected_kind");
        if !std::mem::replace(&mut self.said_unexpected, true) {
            tracing::error!(
                resource = self.what,
                other,
                "the server sends objects of another kind than was asked for: they are left out"
            );
        }
    }

    /// Counts an item or event whose name cannot be read.
    pub(super) fn unreadable(&mut self, why: &Malformed) {
        self.unreadable += 1;
        self.dropped("unreadable");
        tracing::error!(resource = self.what, %why, "an object's metadata cannot be read");
    }

    /// Begins a list that asks for `version`.
    pub(super) fn begin_list(&mut self, version: Option<String>) {
        self.note_listed();
        self.target.list_begins();
        // Needed at the list's end: only a consistent read proves that the store was set back.
        self.asked_version = version;
        self.unreadable = 0;
        self.listed = 0;
        self.again_at = None;
        self.said_unexpected = false;
        self.list_began = self.environment.clock.now();
        self.environment.metrics.count(&names::INFORMER_RELISTS, &[&self.resource, self.cause], 1);
        // An absent or refused kind stays in its state until the list succeeds: no log line per
        // attempt.
        if matches!(self.status.get(), State::Idle | State::Watching) {
            self.status.set(State::Listing);
        }
    }

    /// Ends a list that is complete as of `version`.
    pub(super) fn end_list(&mut self, version: &str) -> Result<(), AttemptEnd> {
        let now = self.environment.clock.now();
        if let Some(newest) = self.position.newest()
            && (order(version, newest) == Some(Ordering::Less) || self.shows_an_older_state())
        {
            return Err(self.went_backwards(version, newest.to_owned()));
        }
        let is_whole = self.unreadable == 0;
        // A partial list cannot show which objects are gone; a later one may.
        self.again_at = (!is_whole).then(|| now + IN_PART_PAUSE);
        self.target.reached(
            if is_whole { StreamProgress::Listed } else { StreamProgress::ListedInPart },
            version,
        );
        self.position.begin(version);
        self.broken_streams = 0;
        self.failed_lists = 0;
        self.unpaged = false;
        self.needs_consistent = false;
        self.absence = None;
        self.doubted_since = None;
        self.doubt.settle();
        let metrics = &self.environment.metrics;
        metrics.observe(&names::INFORMER_LIST_SECONDS, &[&self.resource], now - self.list_began);
        metrics.record(&names::INFORMER_LIST_ITEMS, &[&self.resource], self.listed as f64);
        self.status.heard(now, true);
        self.status.set(self.in_step());
        Ok(())
    }

    /// Returns the state of a reflector that follows changes: healthy, unless deletions may have
    /// been missed.
    pub(super) fn in_step(&self) -> State {
        if self.again_at.is_none() {
            return State::Watching;
        }
        let items = self.unreadable;
        State::Degraded(format!("{items} items could not be taken: deletions may be missed"))
    }

    /// Handles a list of an older version. Only a consistent read proves that the store was set
    /// back (B8: versions that go back); any other list is made again as one.
    fn went_backwards(&mut self, version: &str, newest: String) -> AttemptEnd {
        if self.asked_version.is_some() {
            let why = format!("the list of {} is of {version}, before {newest}", self.what);
            return AttemptEnd::Stale { cause: "older", why };
        }
        self.set_back(version, &newest)
    }

    /// Returns whether a consistent read has shown an object in an older state than the one handed
    /// over. The store was set back then, even if versions have passed the position since.
    fn shows_an_older_state(&self) -> bool {
        self.asked_version.is_none() && self.target.was_set_back()
    }
}
