//! Children whose fields others change again and again, so that the status of their owner can say
//! so.

// DESIGN.md, 211: A field that is taken back again and again is the message of a success
// DESIGN.md, 313: The text of a fight has the fields of the last ten minutes

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use windlass_core::resource::ObjectKey;
use windlass_core::text::shorten;

/// Longest time between two corrections of a fight, and from the last correction until the fight is
/// over.
const QUIET: Duration = Duration::from_secs(600);
/// Number of corrections that count as a fight: one or two are an error of a person.
const FIGHT: u32 = 3;
/// Most children that are remembered, per controller. Those beyond are in the log and the metrics
/// alone.
const MOST: usize = 1024;

/// Most fields of a child that a text names. A writer that invents fields must not change the
/// status at each correction.
const MOST_FIELDS: usize = 8;
/// Longest text about the fields of a child.
const FIELDS_LIMIT: usize = 512;

/// Name of a child in texts, unique among the children of an owner.
type ChildName = String;

/// Corrections of a child in a row.
#[derive(Debug)]
struct Corrections {
    count: u32,
    last: Instant,
    /// The paths of the corrected fields, each with the time of its last correction.
    fields: BTreeMap<String, Instant>,
    /// The last time at which a field had no place in `fields`.
    others: Option<Instant>,
}

/// Returns the time until a correction counts no more; `None` if it does not count.
fn rest(last: Instant, now: Instant) -> Option<Duration> {
    let rest = QUIET.saturating_sub(now.saturating_duration_since(last));
    Some(rest).filter(|rest| !rest.is_zero())
}

impl Corrections {
    /// Returns the corrections of a child of which none is known.
    fn none(now: Instant) -> Self {
        Self { count: 0, last: now, fields: BTreeMap::new(), others: None }
    }

    /// Whether the child was corrected not long ago.
    fn is_recent(&self, now: Instant) -> bool {
        rest(self.last, now).is_some()
    }

    /// Adds a correction of these fields, and forgets fields that others leave alone by now.
    fn add(&mut self, fields: &[String], now: Instant) {
        self.count = self.count.saturating_add(1);
        self.last = now;
        self.fields.retain(|_, last| rest(*last, now).is_some());
        for field in fields {
            if self.fields.len() < MOST_FIELDS || self.fields.contains_key(field) {
                self.fields.insert(field.clone(), now);
            } else {
                self.others = Some(now);
            }
        }
    }

    /// Returns the text about the fields, and the time until it is another one without a further
    /// correction; `None` when the fight is over.
    fn text(&self, now: Instant) -> Option<(String, Duration)> {
        let recent = self.fields.iter().filter_map(|(path, last)| Some((path, rest(*last, now)?)));
        let (mut paths, mut rests): (Vec<&str>, Vec<Duration>) =
            recent.map(|(path, rest)| (path.as_str(), rest)).unzip();
        if let Some(rest) = self.others.and_then(|last| rest(last, now)) {
            paths.push("and others");
            rests.push(rest);
        }
        // Never `; `, which separates the parts of a message.
        Some((shorten(paths.join(", "), FIELDS_LIMIT), rests.into_iter().min()?))
    }
}

/// A fight about fields of a child.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fight {
    pub(crate) text: String,
    /// The time until the fight is over, or about fewer fields, unless the child is corrected
    /// again.
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
    pub(crate) fn corrected(
        &self,
        owner: &ObjectKey,
        child: &str,
        fields: &[String],
        now: Instant,
    ) {
        let mut children = self.children.lock();
        let key = (owner.clone(), child.to_owned());
        if children.len() >= MOST && !children.contains_key(&key) {
            children.retain(|_, corrections| corrections.is_recent(now));
            if children.len() >= MOST {
                return;
            }
        }
        let corrections = children.entry(key).or_insert_with(|| Corrections::none(now));
        if !corrections.is_recent(now) {
            *corrections = Corrections::none(now);
        }
        corrections.add(fields, now);
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
            let (fields, rest) = corrections.text(now)?;
            Some(Fight { text: format!("{BEGIN}{child}{REPEATEDLY}{fields}"), rest })
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
        let fight = "others change ConfigMap \"a\" again and again: .data.mode, .data.size";
        assert_eq!(without_fights(fight), "");
        assert_eq!(without_fights(&format!("two of three; {fight}; wait")), "two of three; wait");
        assert_eq!(without_fights("others change their mind"), "others change their mind");
    }

    #[tokio::test(start_paused = true)]
    async fn three_corrections_in_a_row_are_a_fight_until_ten_minutes_are_quiet() {
        let (fights, owner) = (Fights::default(), ObjectKey::new(Some("shop"), "home"));
        let start = Instant::now();
        let correct = |minute: u32, field: &str| {
            fights.corrected(&owner, "map", &[field.to_owned()], start + minute * MINUTE);
        };
        correct(0, ".a");
        correct(9, ".a");
        assert!(fights.of(&owner, start + 9 * MINUTE).is_empty(), "two of them");
        correct(18, ".b");
        let text = |minute: u32| texts(&fights, &owner, start + minute * MINUTE).concat();
        assert_eq!(text(18), "others change map again and again: .a, .b");
        assert_eq!(fights.of(&owner, start + 18 * MINUTE)[0].rest, MINUTE, "then without `.a`");
        correct(20, ".c");
        assert_eq!(text(25), "others change map again and again: .b, .c", "those of now");
        assert_eq!(fights.of(&owner, start + 25 * MINUTE)[0].rest, 3 * MINUTE);
        assert_eq!(text(29), "others change map again and again: .c");
        assert!(fights.of(&owner, start + 30 * MINUTE).is_empty(), "it is over");
        correct(31, ".c");
        assert!(fights.of(&owner, start + 31 * MINUTE).is_empty(), "a new count");
        fights.forget(&owner);
        assert!(fights.children.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn fields_that_take_turns_and_fields_without_number_do_not_change_the_text() {
        let (fights, owner) = (Fights::default(), ObjectKey::new(Some("shop"), "home"));
        let start = Instant::now();
        let text = |second| texts(&fights, &owner, start + Duration::from_secs(second)).concat();
        for second in 0..100 {
            let field = format!(".{}", second % 2);
            fights.corrected(&owner, "map", &[field], start + Duration::from_secs(second));
        }
        assert_eq!(text(100), "others change map again and again: .0, .1");
        for second in 100..200 {
            let field = format!(".{}", second);
            fights.corrected(&owner, "map", &[field], start + Duration::from_secs(second));
        }
        let fields = ".0, .1, .100, .101, .102, .103, .104, .105, and others";
        assert_eq!(text(200), format!("others change map again and again: {fields}"));
        let long = ["x".repeat(2000)];
        fights.forget(&owner);
        (0..3).for_each(|_| fights.corrected(&owner, "map", &long, start));
        assert!(text(0).len() < 600);
    }

    #[tokio::test(start_paused = true)]
    async fn fights_are_those_of_one_owner_and_not_more_than_the_bound() {
        let (fights, now) = (Fights::default(), Instant::now());
        let owner = |n: usize| ObjectKey::new(Some("shop"), &format!("o-{n:05}"));
        for n in 0..=MOST {
            for _ in 0..3 {
                fights.corrected(&owner(n), "map", &[".a".to_owned()], now);
            }
        }
        assert_eq!(fights.of(&owner(7), now).len(), 1);
        assert!(fights.of(&owner(MOST), now).is_empty());
        fights.forget(&owner(7));
        assert_eq!((fights.of(&owner(7), now).len(), fights.of(&owner(8), now).len()), (0, 1));
        for late in [MOST, MOST + 1] {
            let fields = [".a".to_owned()];
            fights.corrected(&owner(late), "map", &fields, now + 11 * MINUTE);
        }
        assert_eq!(fights.children.lock().len(), 2, "those that are over make room");
    }
}
