//! Decides whether an occurrence becomes a new Event, is counted in a series, or is dropped,
//! without I/O and without reading time.
//!
//! The counterpart of client-go's `EventCorrelator`: a single Event for equal occurrences, and a
//! token bucket of 25 Events per object with another in 5 min, client-go's defaults. Memory is
//! bounded by the number of series and of budgets; beyond that bound the oldest half is forgotten,
//! which costs further Events and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Occurrence, Regarding};

/// Time without an equal occurrence after which a series ends.
const WINDOW: Duration = Duration::from_secs(360);
/// Time after which a series with new occurrences is written.
const REFRESH: Duration = Duration::from_secs(60);
/// Number of new Events that an object may cause at once, and the time after which the object gets
/// another token.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);
/// Largest number of series, and of token buckets, that are stored.
const MOST_ENTRIES: usize = 4096;

/// Request that writes an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventWrite {
    /// Create a new Event of that name.
    Create { occurrence: Occurrence, namespace: String, name: String, time: Timestamp },
    /// Patch the series of an Event that has occurred `count` times by now.
    Update { namespace: String, name: String, count: i32, time: Timestamp },
}

/// Occurrences of an Event that was written.
#[derive(Debug)]
struct Series {
    /// Namespace of the Event.
    namespace: String,
    /// Name of the Event.
    name: String,
    /// Occurrences so far.
    count: i32,
    /// Occurrences that the API server knows of.
    written: i32,
    /// Time of the last occurrence, by both clocks.
    last: (Instant, Timestamp),
    /// Time of the last write, from which the refresh counts.
    last_written: Instant,
}

impl Series {
    /// Marks all occurrences as written, and returns the write.
    fn update(&mut self, now: Instant) -> EventWrite {
        self.written = self.count;
        self.last_written = now;
        EventWrite::Update {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            count: self.count,
            time: self.last.1,
        }
    }
}

/// Limits the new Events of an object.
#[derive(Debug)]
struct TokenBucket {
    /// Events that the object may still cause now.
    tokens: u32,
    /// Time up to which earned tokens were counted.
    refilled: Instant,
}

impl TokenBucket {
    /// Takes a token; returns whether any was left.
    fn try_take(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.refilled).as_secs() / REFILL.as_secs();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        // Advances by whole intervals, so that the part of the next interval is not lost.
        self.refilled += REFILL * earned.min(BURST);
        // The bucket is full: the rest of the time adds no token.
        if earned >= BURST {
            self.refilled = now;
        }
        self.tokens = self.tokens.saturating_add(earned).min(BURST);
        let is_taken = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        is_taken
    }
}

/// Recently written series, and the token buckets of their objects.
#[derive(Debug, Default)]
pub(super) struct Aggregator {
    /// Written Events by their content, the object included.
    series: BTreeMap<Occurrence, Series>,
    /// Buckets of the objects that caused Events.
    buckets: BTreeMap<Regarding, TokenBucket>,
}

impl Aggregator {
    /// Returns the write that `occurrence` requires, if any. `suffix` makes the name of a new Event
    /// unique.
    pub(super) fn observe(
        &mut self,
        occurrence: Occurrence,
        suffix: u64,
        now: Instant,
        time: Timestamp,
    ) -> Option<EventWrite> {
        self.expire(now);
        if let Some(series) = self.series.get_mut(&occurrence) {
            series.count = series.count.saturating_add(1);
            series.last = (now, time);
            // Each doubling is written at once; counts in between wait for the refresh.
            let doubled = series.count >= series.written.saturating_mul(2);
            return doubled.then(|| series.update(now));
        }
        let full = || TokenBucket { tokens: BURST, refilled: now };
        let bucket = self.buckets.entry(occurrence.regarding.clone()).or_insert_with(full);
        if !bucket.try_take(now) {
            let Occurrence { regarding, reason, .. } = &occurrence;
            tracing::debug!(
                ?regarding,
                ?reason,
                "an Event was dropped: its object causes too many"
            );
            return None;
        }
        let namespace = occurrence.regarding.namespace.clone().unwrap_or_else(|| "default".into());
        let name = format!("{}.{suffix:016x}", subdomain(&occurrence.regarding.name));
        let series = Series {
            namespace: namespace.clone(),
            name: name.clone(),
            count: 1,
            written: 1,
            last: (now, time),
            last_written: now,
        };
        self.series.insert(occurrence.clone(), series);
        Some(EventWrite::Create { occurrence, namespace, name, time })
    }

    /// Returns the time at which [`refresh`](Self::refresh) has a series to write; `None` when no
    /// series has new occurrences.
    pub(super) fn next_refresh(&self) -> Option<Instant> {
        let grown = self.series.values().filter(|series| series.count > series.written);
        grown.map(|series| series.last_written + REFRESH).min()
    }

    /// Returns the writes of series with new occurrences that were last written a refresh interval
    /// ago; with `all`, those of every series with new occurrences.
    pub(super) fn refresh(&mut self, now: Instant, all: bool) -> Vec<EventWrite> {
        let grown = self.series.values_mut().filter(|series| series.count > series.written);
        let due = grown.filter(|series| all || series.last_written + REFRESH <= now);
        due.map(|series| series.update(now)).collect()
    }

    /// Removes the series of an Event that could not be written: the next occurrence creates
    /// another Event.
    pub(super) fn forget(&mut self, namespace: &str, name: &str) {
        self.series.retain(|_, series| series.namespace != namespace || series.name != name);
    }

    /// Removes series whose window is over, and the oldest half when there are too many.
    fn expire(&mut self, now: Instant) {
        if self.series.len() < MOST_ENTRIES && self.buckets.len() < MOST_ENTRIES {
            self.series.retain(|_, series| series.last.0 + WINDOW > now);
            return;
        }
        // Half of the series are removed at once, so that this sort is rare.
        let mut ages: Vec<Instant> = self.series.values().map(|series| series.last.0).collect();
        ages.sort_unstable();
        if let Some(median) = ages.get(ages.len() / 2).copied() {
            self.series.retain(|_, series| series.last.0 > median);
        }
        // A removed bucket starts full again: only those without a recent refill are removed,
        // unless too many remain.
        self.buckets.retain(|_, bucket| bucket.refilled + REFILL > now);
        if self.buckets.len() >= MOST_ENTRIES {
            self.buckets.clear();
        }
    }
}

/// Converts `name` to a part of an Event's name: at most 236 lower-case letters, digits, `-` and
/// `.`.
fn subdomain(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = name.chars().take(236).map(|c| allowed(c).to_ascii_lowercase()).collect();
    name.trim_matches(|c| c == '-' || c == '.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Normal;
    use super::*;

    fn occurrence(name: &str, note: &str) -> Occurrence {
        Occurrence {
            regarding: Regarding {
                namespace: Some("shop".into()),
                name: name.into(),
                uid: None,
                api_version: "example.dev/v1".into(),
                kind: "Website".into(),
            },
            kind: Normal,
            reason: "Applied".into(),
            action: "Reconcile".into(),
            note: note.into(),
        }
    }

    fn observe(aggregator: &mut Aggregator, note: &str, now: Instant) -> Option<EventWrite> {
        aggregator.observe(occurrence("home", note), 1, now, Timestamp::UNIX_EPOCH)
    }

    fn count(write: Option<EventWrite>) -> Option<i32> {
        match write? {
            EventWrite::Create { .. } => Some(1),
            EventWrite::Update { count, .. } => Some(count),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_occurrence_grows_a_series_with_few_writes() {
        let (mut aggregator, now) = (Aggregator::default(), Instant::now());
        let written: Vec<_> =
            (0..20).filter_map(|_| count(observe(&mut aggregator, "same", now))).collect();
        assert_eq!(written, [1, 2, 4, 8, 16]);
        assert_eq!(aggregator.next_refresh(), Some(now + REFRESH));
        let rest = aggregator.refresh(now + REFRESH, false);
        assert_eq!(rest.into_iter().filter_map(|w| count(Some(w))).collect::<Vec<_>>(), [20]);
        assert_eq!(aggregator.next_refresh(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_quiet_window_a_new_event_is_made() {
        let (mut aggregator, now) = (Aggregator::default(), Instant::now());
        observe(&mut aggregator, "same", now);
        let again = observe(&mut aggregator, "same", now + WINDOW);
        assert!(matches!(again, Some(EventWrite::Create { .. })), "{again:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_causes_too_many_events_is_cut_and_others_are_not() {
        let (mut aggregator, now) = (Aggregator::default(), Instant::now());
        let written =
            (0..100).filter_map(|n| observe(&mut aggregator, &n.to_string(), now)).count();
        assert_eq!(written, 25);
        let other = occurrence("other", "x");
        assert!(aggregator.observe(other, 2, now, Timestamp::UNIX_EPOCH).is_some());
        assert!(observe(&mut aggregator, "later", now + REFILL).is_some());
        assert!(observe(&mut aggregator, "too soon", now + REFILL).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let (mut aggregator, now) = (Aggregator::default(), Instant::now());
        for n in 0..3 * MOST_ENTRIES as u64 {
            let occurrence = occurrence(&format!("o{n}"), "x");
            aggregator.observe(
                occurrence,
                n,
                now + Duration::from_millis(n),
                Timestamp::UNIX_EPOCH,
            );
        }
        assert!(
            aggregator.series.len() <= MOST_ENTRIES && aggregator.buckets.len() <= MOST_ENTRIES
        );
    }

    #[test]
    fn names_that_an_event_may_not_have_are_made_so() {
        assert_eq!(subdomain("System:Node"), "system-node");
        assert_eq!(subdomain(&"a".repeat(253)).len(), 236);
    }
}
