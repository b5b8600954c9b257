//! A page of a list, split into items during the transfer.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{Chunks, ListWatch, Read};
use crate::reflector::NO_PROGRESS;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::{ListMeta, ListSplitter, StreamPiece};

/// Deadline of a page: a page that still arrives then only trickles; API servers give up lists
/// after a minute.
const LONGEST_PAGE: Duration = Duration::from_secs(600);

/// Sends a request; fails when no answer begins in time.
pub(in crate::reflector) async fn open(
    source: &dyn ListWatch,
    read: Read,
    clock: &Clock,
    what: &str,
) -> Result<Chunks, Error> {
    let verb = read.verb().as_str();
    match clock.timeout(NO_PROGRESS, source.open(read)).await {
        Some(answer) => answer,
        None => {
            let text = format!("no answer within {} s to {verb} {what}", NO_PROGRESS.as_secs());
            Err(Error::new(ErrorKind::Timeout, text))
        }
    }
}

/// A page that is being read: holds at most one piece of the network and one unfinished item.
pub(in crate::reflector) struct PageReader<'a> {
    chunks: Chunks,
    splitter: ListSplitter,
    clock: &'a Clock,
    what: &'a str,
    until: Instant,
    /// The continue token with which this page was requested.
    token: Option<String>,
}

impl<'a> PageReader<'a> {
    /// Requests a page. `what` describes the list in error texts; of items beyond `limit` bytes
    /// only the beginning is returned.
    pub(in crate::reflector) async fn open(
        source: &dyn ListWatch,
        read: Read,
        clock: &'a Clock,
        what: &'a str,
        limit: usize,
    ) -> Result<Self, Error> {
        let token = match &read {
            Read::Page { continue_token, .. } => continue_token.clone(),
            _ => None,
        };
        let chunks = open(source, read, clock, what).await?;
        let splitter = ListSplitter::with_limit(limit);
        Ok(Self { chunks, splitter, clock, what, until: clock.now() + LONGEST_PAGE, token })
    }

    /// Returns the next piece; `None` at the end.
    pub(in crate::reflector) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let left = self.until.saturating_duration_since(self.clock.now());
        if left.is_zero() {
            let seconds = LONGEST_PAGE.as_secs();
            return Err(
                self.failed(ErrorKind::Timeout, format!("it was not complete after {seconds} s"))
            );
        }
        // The last wait ends with the page's deadline.
        let patience = NO_PROGRESS.min(left);
        match self.clock.timeout(patience, self.chunks.next()).await {
            Some(next) => next.transpose(),
            None => Err(self
                .failed(ErrorKind::Timeout, format!("nothing came for {} s", patience.as_secs()))),
        }
    }

    /// Calls `each` for every item that ends in this piece.
    pub(in crate::reflector) fn split(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(StreamPiece<'_>),
    ) -> Result<(), Error> {
        let outcome = self.splitter.push(piece, each);
        outcome.map_err(|error| self.failed(ErrorKind::Decode, error.to_string()))
    }

    /// Returns the list's metadata. Fails for a page that names itself as the next page, which
    /// would repeat for ever.
    pub(in crate::reflector) fn finish(self) -> Result<ListMeta, Error> {
        let what = self.what;
        let failed = |why| Error::new(ErrorKind::Decode, format!("cannot list {what}: {why}"));
        let meta = self.splitter.finish().map_err(|error| failed(error.to_string()))?;
        if meta.continue_token.is_some() && meta.continue_token == self.token {
            return Err(failed("the server names the same page as the next one again".to_owned()));
        }
        Ok(meta)
    }

    /// Returns an error that names the list.
    fn failed(&self, kind: ErrorKind, why: String) -> Error {
        Error::new(kind, format!("cannot list {}: {why}", self.what))
    }
}
