//! A list in pages, split while it streams.

use std::time::Duration;

use super::setback::{During, Setback, judge};
use super::source::Read;
use super::{NO_PROGRESS, Reflector};
use crate::wire::{ListMeta, ListSplitter, Part, Skim};

/// Items a page, as kubectl and client-go ask for.
const PAGE: u32 = 500;
/// A page that is still arriving after so long only drips; API servers give up lists after a minute.
const LONGEST_PAGE: Duration = Duration::from_secs(600);

impl Reflector {
    /// Reads the whole scope, consistently.
    pub(super) async fn list(&mut self) -> Result<(), Setback> {
        self.begin_list();
        let limit = (!self.unpaged).then_some(PAGE);
        let mut continue_token = None;
        loop {
            let page = Read::Page { limit, continue_token };
            let is_later = matches!(&page, Read::Page { continue_token: Some(_), .. });
            let meta = self.page(page).await.inspect_err(|setback| {
                // B4: the next list must not depend on how long it takes.
                self.unpaged |= is_later && matches!(setback, Setback::Stale { .. });
            })?;
            if meta.continue_token.is_none() {
                self.end_list(&meta.resource_version)?;
                // The watch that follows may be silent for long.
                self.feed.flush().await;
                return Ok(());
            }
            continue_token = meta.continue_token;
        }
    }

    async fn page(&mut self, page: Read) -> Result<ListMeta, Setback> {
        let mut chunks = self.open(page, During::Page).await?;
        let mut splitter = ListSplitter::new();
        let info = self.feed.store.info().clone();
        let failed = |why: String| Setback::Failed(format!("cannot list {info}: {why}"));
        let until = self.seams.clock.now() + LONGEST_PAGE;
        loop {
            let left = until.saturating_duration_since(self.seams.clock.now());
            if left.is_zero() {
                let seconds = LONGEST_PAGE.as_secs();
                return Err(failed(format!("it was not complete after {seconds} s")));
            }
            let patience = NO_PROGRESS.min(left);
            let chunk = match self.seams.clock.within(patience, chunks.next()).await {
                None => {
                    return Err(failed(format!("nothing came for {} s", patience.as_secs())));
                }
                Some(None) => break,
                Some(Some(Err(error))) => return Err(judge(&error, During::Page)),
                Some(Some(Ok(chunk))) => chunk,
            };
            splitter
                .push(&chunk, &mut |part| self.item(part))
                .map_err(|error| failed(error.to_string()))?;
            self.feed.flush().await;
        }
        splitter.finish().map_err(|error| failed(error.to_string()))
    }

    fn item(&mut self, part: Part<'_>) {
        let skim = match part {
            Part::Whole(item) => Skim::of(item).map(|skim| self.feed.listed(&skim)),
            Part::TooLarge(beginning) => {
                Skim::of_beginning(beginning).map(|skim| self.too_large(&skim))
            }
        };
        if let Err(error) = skim {
            self.unreadable(&error);
        }
    }

    /// A13: the object stays as it was known; the others go on.
    pub(super) fn too_large(&mut self, skim: &Skim<'_>) {
        self.feed.dropped("too_large");
        tracing::error!(
            resource = %self.feed.store.info(), namespace = skim.namespace.as_deref(), name = &*skim.name,
            "the object is larger than 16 MiB: its new state is not cached"
        );
        self.feed.keep(skim);
    }
}
