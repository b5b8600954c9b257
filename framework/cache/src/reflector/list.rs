//! A list in pages, the handling of the list's items, and the beginning and end of every list.

use super::machine::{AttemptEnd, EndedRequest, ListFigures, ListVerdict, judge};
use super::sink::{RawObject, ReflectorSink};
use super::source::{PageReader, Read};
use super::{Reflector, ReflectorState};
use windlass_core::metrics::names;
use windlass_core::wire::{ListMeta, Malformed, MetadataScan, StreamPiece};

/// The failure of a list in pages.
struct ListFailure {
    end: AttemptEnd,
    /// Whether the failed page was not the first.
    is_later: bool,
}

impl<T: ReflectorSink> Reflector<T> {
    /// Lists the whole scope, by pages of `limit` items.
    pub(super) async fn list(
        &mut self,
        version: Option<String>,
        limit: Option<u32>,
    ) -> Result<(), AttemptEnd> {
        match self.list_pages(version, limit).await {
            Ok(()) => Ok(()),
            // B4 (lists that expire before they end): the position between two pages has expired. A
            // list without a limit does not depend on the duration.
            Err(ListFailure { end: AttemptEnd::Stale { why, .. }, is_later: true }) => {
                tracing::warn!(
                    resource = self.subject.what,
                    why,
                    "pages expire while they are read: the list is read as a whole"
                );
                self.machine.pages_expired();
                self.list_pages(None, None).await.map_err(|failed| failed.end)
            }
            Err(failed) => Err(failed.end),
        }
    }

    /// Reads all pages of a list.
    async fn list_pages(
        &mut self,
        version: Option<String>,
        limit: Option<u32>,
    ) -> Result<(), ListFailure> {
        self.begin_list(version.clone());
        let mut continue_token = None;
        let mut asked = version;
        loop {
            let is_later = continue_token.is_some();
            // Only the first page names a version; later pages follow the token.
            let page = Read::Page { resource_version: asked.take(), limit, continue_token };
            let meta = self.page(page).await.map_err(|end| ListFailure { end, is_later })?;
            if meta.continue_token.is_none() {
                let ended = self.end_list(&meta.resource_version);
                // Handed over now: the watch that follows may be silent for long.
                self.sink.hand_over().await;
                return ended.map_err(|end| ListFailure { end, is_later: false });
            }
            self.machine.page_follows();
            continue_token = meta.continue_token;
        }
    }

    /// Reads a single page and hands the items over on arrival; returns the list's metadata.
    async fn page(&mut self, page: Read) -> Result<ListMeta, AttemptEnd> {
        let (clock, what) = (self.environment.clock.clone(), self.subject.what.clone());
        let source = std::sync::Arc::clone(&self.source);
        let judged = |error| judge(&error, EndedRequest::Page);
        let limit = self.options.frame_limit;
        let mut reader =
            PageReader::open(&*source, page, &clock, &what, limit).await.map_err(judged)?;
        while let Some(piece) = reader.next().await.map_err(judged)? {
            // Handed over piece by piece: at most one piece and one item are held beside the cache
            // (A12: lists of gigabytes).
            reader.split(&piece, &mut |part| self.item(part)).map_err(judged)?;
            self.status.note_received(clock.now(), false);
            self.count_items();
            self.sink.hand_over().await;
        }
        reader.finish().map_err(judged)
    }

    /// Handles an item of a page.
    fn item(&mut self, part: StreamPiece<'_>) {
        self.machine.count_item();
        let scan = match part {
            StreamPiece::Whole(item) => {
                MetadataScan::of(item).map(|scan| match self.subject.expected.other_item(item) {
                    None => self.sink.listed(&RawObject::new(&scan, item)),
                    Some(other) => {
                        self.unexpected(&other);
                        self.machine.count_unreadable();
                    }
                })
            }
            StreamPiece::TooLarge(item) => MetadataScan::of_beginning(item)
                .map(|scan| self.too_large(&RawObject::new(&scan, item))),
        };
        if let Err(error) = scan {
            self.unreadable(&error);
        }
    }

    /// Counts items while the list is read, which may take minutes.
    pub(super) fn count_items(&mut self) {
        let items = self.machine.take_uncounted_items();
        if items > 0 {
            let labels = [self.subject.resource.as_str()];
            self.environment.metrics.count(&names::INFORMER_LISTED, &labels, items);
        }
    }

    /// Keeps the last known state of an object that is too large; the stream goes on (A13: one huge
    /// object).
    pub(super) fn too_large(&mut self, seen: &RawObject<'_>) {
        self.dropped("too_large");
        tracing::error!(
            resource = self.subject.what,
            namespace = seen.namespace(),
            name = seen.name(),
            "the object is larger than {} bytes: its new state is not cached",
            self.options.frame_limit
        );
        self.sink.kept(seen);
    }

    /// Drops an object of another kind than was asked for; logged once per stream.
    pub(super) fn unexpected(&mut self, other: &str) {
        self.dropped("unexpected_kind");
        if self.machine.is_first_unexpected() {
            tracing::error!(
                resource = self.subject.what,
                other,
                "the server sends objects of another kind than was asked for: they are left out"
            );
        }
    }

    /// Counts an item or event whose name cannot be read.
    pub(super) fn unreadable(&mut self, why: &Malformed) {
        self.machine.count_unreadable();
        self.dropped("unreadable");
        tracing::error!(resource = self.subject.what, %why, "an object's metadata cannot be read");
    }

    /// Begins a list that asks for `version`.
    pub(super) fn begin_list(&mut self, version: Option<String>) {
        self.sink.list_begins();
        let cause = self.machine.list_begins(version, self.environment.clock.now());
        let labels = [self.subject.resource.as_str(), cause];
        self.environment.metrics.count(&names::INFORMER_RELISTS, &labels, 1);
        // An absent or refused kind stays in the state until the list succeeds: no log line per
        // attempt.
        if matches!(self.status.get(), ReflectorState::Idle | ReflectorState::Watching) {
            self.status.set(ReflectorState::Listing);
        }
    }

    /// Ends a list that is complete as of `version`.
    pub(super) fn end_list(&mut self, version: &str) -> Result<(), AttemptEnd> {
        let now = self.environment.clock.now();
        // The phase ends here, so the items that were not counted yet are counted.
        self.count_items();
        let progress = match self.machine.judge_list(version, || self.sink.was_set_back()) {
            ListVerdict::Complete(progress) => progress,
            ListVerdict::SetBack { had } => return Err(self.set_back(version, &had)),
            ListVerdict::Older { newest } => {
                let what = &self.subject.what;
                let why = format!("the list of {what} is of {version}, before {newest}");
                return Err(AttemptEnd::Stale { cause: "older", why });
            }
        };
        self.sink.reached(progress, version);
        let figures = self.machine.list_ended(version, now);
        self.rollback.resolve();
        if let Some(ListFigures { items, took }) = figures {
            let (metrics, labels) = (&self.environment.metrics, [self.subject.resource.as_str()]);
            metrics.observe(&names::INFORMER_LIST_SECONDS, &labels, took);
            metrics.record(&names::INFORMER_LIST_ITEMS, &labels, items as f64);
        }
        self.status.note_received(now, true);
        self.status.set(self.machine.watching_state());
        Ok(())
    }
}
