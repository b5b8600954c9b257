//! Decides whether an occurrence becomes an Event, grows a series or is dropped: no I/O, no clock.
//!
//! The counterpart of client-go's `EventCorrelator`: one Event for equal occurrences, and a token
//! bucket of 25 Events per object with one more in 5 min, client-go's defaults. Memory is bounded
//! by the number of series and of budgets; beyond it the oldest half is forgotten, which costs
//! further Events and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Occurrence, Regarding};

/// The same occurrence within this time of the last one belongs to one series.
const WINDOW: Duration = Duration::from_secs(360);
/// A growing series is written at least this often.
const REFRESH: Duration = Duration::from_secs(60);
/// New Events that one object may cause at once, and the time in which it earns another.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);
/// Most series, and most budgets of objects, that are remembered.
const REMEMBERED: usize = 4096;

/// A write to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// Create a new Event of that name.
    Create { occurrence: Occurrence, namespace: String, name: String, time: Timestamp },
    /// Update an Event that has occurred `count` times by now.
    Grow { namespace: String, name: String, count: i32, time: Timestamp },
}

/// The occurrences of one Event that was written.
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
    fn grow(&mut self, now: Instant) -> Writing {
        self.written = self.count;
        self.last_written = now;
        Writing::Grow {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            count: self.count,
            time: self.last.1,
        }
    }
}

/// A token bucket of one object.
#[derive(Debug)]
struct Budget {
    /// Events that the object may still cause now.
    left: u32,
    /// Time up to which earned tokens were counted.
    since: Instant,
}

impl Budget {
    /// Takes one token; returns whether there was one.
    fn spend(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.since).as_secs() / REFILL.as_secs();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        // Advances by whole intervals, so that the part of the next one is not lost.
        self.since += REFILL * earned.min(BURST);
        // Full: the time beyond that earns nothing.
        if earned >= BURST {
            self.since = now;
        }
        self.left = self.left.saturating_add(earned).min(BURST);
        let spent = self.left > 0;
        self.left = self.left.saturating_sub(1);
        spent
    }
}

/// Recently written series and the budgets of their objects.
#[derive(Debug, Default)]
pub(super) struct Aggregator {
    /// Written Events by their content, the object included.
    series: BTreeMap<Occurrence, Series>,
    /// Buckets of the objects that caused Events.
    budgets: BTreeMap<Regarding, Budget>,
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
    ) -> Option<Writing> {
        self.expire(now);
        if let Some(series) = self.series.get_mut(&occurrence) {
            series.count = series.count.saturating_add(1);
            series.last = (now, time);
            // Each doubling is written at once; counts in between wait for the refresh.
            let doubled = series.count >= series.written.saturating_mul(2);
            return doubled.then(|| series.grow(now));
        }
        let fresh = || Budget { left: BURST, since: now };
        let budget = self.budgets.entry(occurrence.regarding.clone()).or_insert_with(fresh);
        if !budget.spend(now) {
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
        Some(Writing::Create { occurrence, namespace, name, time })
    }

    /// The time at which [`refresh`](Self::refresh) has something to write next.
    pub(super) fn next_refresh(&self) -> Option<Instant> {
        let grown = self.series.values().filter(|series| series.count > series.written);
        grown.map(|series| series.last_written + REFRESH).min()
    }

    /// Writes of series that grew and were last written a refresh interval ago, or of `all` that
    /// grew.
    pub(super) fn refresh(&mut self, now: Instant, all: bool) -> Vec<Writing> {
        let grown = self.series.values_mut().filter(|series| series.count > series.written);
        let due = grown.filter(|series| all || series.last_written + REFRESH <= now);
        due.map(|series| series.grow(now)).collect()
    }

    /// Forgets an Event that could not be written: the next occurrence makes a new one.
    pub(super) fn forget(&mut self, namespace: &str, name: &str) {
        self.series.retain(|_, series| series.namespace != namespace || series.name != name);
    }

    /// Drops series whose window is over, and the oldest half when the memory is full.
    fn expire(&mut self, now: Instant) {
        if self.series.len() < REMEMBERED && self.budgets.len() < REMEMBERED {
            self.series.retain(|_, series| series.last.0 + WINDOW > now);
            return;
        }
        // Full: drops the half that was quiet longest, at once, so that this is rare.
        let mut ages: Vec<Instant> = self.series.values().map(|series| series.last.0).collect();
        ages.sort_unstable();
        if let Some(median) = ages.get(ages.len() / 2).copied() {
            self.series.retain(|_, series| series.last.0 > median);
        }
        // A forgotten budget starts full again: only those without a recent refill go, unless too
        // many remain.
        self.budgets.retain(|_, budget| budget.since + REFILL > now);
        if self.budgets.len() >= REMEMBERED {
            self.budgets.clear();
        }
    }
}

/// `name` as a part of an Event's name: 236 bytes of lower-case letters, digits, `-` and `.`.
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

    fn observe(aggregator: &mut Aggregator, note: &str, now: Instant) -> Option<Writing> {
        aggregator.observe(occurrence("home", note), 1, now, Timestamp::UNIX_EPOCH)
    }

    fn count(writing: Option<Writing>) -> Option<i32> {
        match writing? {
            Writing::Create { .. } => Some(1),
            Writing::Grow { count, .. } => Some(count),
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
        assert!(matches!(again, Some(Writing::Create { .. })), "{again:?}");
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
        for n in 0..3 * REMEMBERED as u64 {
            let occurrence = occurrence(&format!("o{n}"), "x");
            aggregator.observe(
                occurrence,
                n,
                now + Duration::from_millis(n),
                Timestamp::UNIX_EPOCH,
            );
        }
        assert!(aggregator.series.len() <= REMEMBERED && aggregator.budgets.len() <= REMEMBERED);
    }

    #[test]
    fn names_that_an_event_may_not_have_are_made_so() {
        assert_eq!(subdomain("System:Node"), "system-node");
        assert_eq!(subdomain(&"a".repeat(253)).len(), 236);
    }
}
