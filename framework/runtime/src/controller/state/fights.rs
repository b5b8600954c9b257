//! Children whose fields others change again and again, so that the status of their owner can say
//! so.

// DESIGN.md, 211: A field that is taken back again and again is the message of a success

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use windlass_core::resource::ObjectKey;

/// Longest time between two corrections of a fight, and from the last correction until the fight is
/// over.
const QUIET: Duration = Duration::from_secs(600);
/// Number of corrections that count as a fight: one or two are an error of a person.
const FIGHT: u32 = 3;
/// Most children that are remembered, per controller. Those beyond are in the log and the metrics
/// alone.
const MOST: usize = 1024;

/// Name of a child in texts, unique among the children of an owner.
type ChildName = String;

/// Corrections of a child in a row.
#[derive(Debug)]
struct Corrections {
    count: u32,
    last: Instant,
    /// The fields of the correction that started the fight: others follow without a change of the
    /// status.
    fields: String,
}

impl Corrections {
    /// Returns the time until the fight is over; `None` if over.
    fn rest(&self, now: Instant) -> Option<Duration> {
        let rest = QUIET.saturating_sub(now.saturating_duration_since(self.last));
        Some(rest).filter(|rest| !rest.is_zero())
    }
}

/// A fight about fields of a child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fight {
    pub(crate) text: String,
    /// The time until the fight is over, unless the child is corrected again.
    pub(crate) rest: Duration,
}

/// The children that were corrected not long ago, by owner.
#[derive(Debug, Default)]
pub(crate) struct Fights {
    children: Mutex<BTreeMap<(ObjectKey, ChildName), Corrections>>,
    /// Their number, so that workers share no lock while there are none.
    count: AtomicUsize,
}

/// Beginning of the text of a fight, before the child.
const BEGIN: &str = "others change ";
/// Words between the child and the fields.
const REPEATEDLY: &str = " again and again: ";

/// Returns the message of a condition without the texts of fights, which only the process that
/// takes part in them remembers.
pub(in crate::controller) fn without_fights(message: &str) -> String {
    let is_fight = |part: &&str| part.starts_with(BEGIN) && part.contains(REPEATEDLY);
    message.split("; ").filter(|part| !is_fight(part)).collect::<Vec<_>>().join("; ")
}

impl Fights {
    /// Notes that fields of a child were set back.
    pub(crate) fn corrected(&self, owner: &ObjectKey, child: &str, fields: &str, now: Instant) {
        let mut children = self.children.lock();
        let key = (owner.clone(), child.to_owned());
        if children.len() >= MOST && !children.contains_key(&key) {
            children.retain(|_, corrections| corrections.rest(now).is_some());
            if children.len() >= MOST {
                return;
            }
        }
        let before = children.remove(&key).filter(|corrections| corrections.rest(now).is_some());
        let count = before.as_ref().map_or(0, |before| before.count).saturating_add(1);
        let shown = before.filter(|before| before.count >= FIGHT).map(|before| before.fields);
        let fields = shown.unwrap_or_else(|| fields.to_owned());
        children.insert(key, Corrections { count, last: now, fields });
        // Under the lock, so that the number is that of the map. Relaxed: see `of`.
        self.count.store(children.len(), Ordering::Relaxed);
    }

    /// Returns the fights about children of an owner, in the order of their names.
    pub(crate) fn of(&self, owner: &ObjectKey, now: Instant) -> Vec<Fight> {
        // `Relaxed`: a correction of this owner was noted by this worker, or before this worker got
        // the owner's key.
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let children = self.children.lock();
        let own = children.range((owner.clone(), String::new())..);
        let own = own.take_while(|((its, _), _)| its == owner);
        let fights = own.filter(|(_, corrections)| corrections.count >= FIGHT);
        let fights = fights.filter_map(|((_, child), corrections)| {
            let fields = &corrections.fields;
            let text = format!("{BEGIN}{child}{REPEATEDLY}{fields}");
            Some(Fight { text, rest: corrections.rest(now)? })
        });
        fights.collect()
    }

    /// Forgets an owner that is gone.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut children = self.children.lock();
        let own = children.range((owner.clone(), String::new())..);
        let own: Vec<_> =
            own.map(|(key, _)| key.clone()).take_while(|(its, _)| its == owner).collect();
        for key in own {
            children.remove(&key);
        }
        // As in `corrected`.
        self.count.store(children.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn texts(fights: &Fights, owner: &ObjectKey, now: Instant) -> Vec<String> {
        fights.of(owner, now).into_iter().map(|fight| fight.text).collect()
    }

    #[test]
    fn a_message_without_its_fights_has_the_other_parts() {
        let fight = "others change ConfigMap \"a\" again and again: .data.mode";
        assert_eq!(without_fights(fight), "");
        assert_eq!(without_fights(&format!("two of three; {fight}; wait")), "two of three; wait");
        assert_eq!(without_fights("others change their mind"), "others change their mind");
    }

    #[tokio::test(start_paused = true)]
    async fn three_corrections_in_a_row_are_a_fight_until_ten_minutes_are_quiet() {
        let (fights, owner) = (Fights::default(), ObjectKey::new(Some("shop"), "home"));
        let start = Instant::now();
        let correct =
            |minute: u32, field| fights.corrected(&owner, "map", field, start + minute * MINUTE);
        correct(0, ".a");
        correct(9, ".a");
        assert!(fights.of(&owner, start + 9 * MINUTE).is_empty(), "two of them");
        correct(18, ".b");
        let expected = "others change map again and again: .b";
        assert_eq!(texts(&fights, &owner, start + 18 * MINUTE), [expected]);
        correct(20, ".c");
        assert_eq!(fights.of(&owner, start + 25 * MINUTE)[0].rest, 5 * MINUTE);
        assert_eq!(texts(&fights, &owner, start + 25 * MINUTE), [expected], "the text stays");
        assert!(fights.of(&owner, start + 30 * MINUTE).is_empty(), "it is over");
        correct(31, ".c");
        assert!(fights.of(&owner, start + 31 * MINUTE).is_empty(), "a new count");
        fights.forget(&owner);
        assert!(fights.children.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn fights_are_those_of_one_owner_and_not_more_than_the_bound() {
        let (fights, now) = (Fights::default(), Instant::now());
        let owner = |n: usize| ObjectKey::new(Some("shop"), &format!("o-{n:05}"));
        for n in 0..=MOST {
            for _ in 0..3 {
                fights.corrected(&owner(n), "map", ".a", now);
            }
        }
        assert_eq!(fights.of(&owner(7), now).len(), 1);
        assert!(fights.of(&owner(MOST), now).is_empty());
        fights.forget(&owner(7));
        assert_eq!((fights.of(&owner(7), now).len(), fights.of(&owner(8), now).len()), (0, 1));
        for late in [MOST, MOST + 1] {
            fights.corrected(&owner(late), "map", ".a", now + 11 * MINUTE);
        }
        assert_eq!(fights.children.lock().len(), 2, "those that are over make room");
    }
}
