//! Decision which children get which revision. No I/O, and no time.

/// The revision of an existing child, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildRevision {
    /// The target revision.
    Target,
    /// Any other.
    Other,
}

/// A wanted child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WantedChild {
    /// Its revision; `None` while there is no such child.
    pub(super) at: Option<ChildRevision>,
    /// Whether it is ready; false for a missing one.
    pub(super) is_ready: bool,
}

/// Limits of one decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionLimits {
    /// Most children that may be unready while a ready one is updated.
    pub(super) max_unavailable: usize,
    /// Number of children, from the first, that keep their revisions.
    pub(super) partition: usize,
    /// Whether there is a good revision, from which missing children below the partition are made.
    pub(super) has_good: bool,
}

/// Revision from which a child is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// The target revision.
    Target,
    /// The last in which all children were ready.
    Good,
    /// Its current revision.
    Own,
}

/// Returns the revision for each child.
pub(super) fn decide(children: &[WantedChild], limits: &DecisionLimits) -> Vec<Assigned> {
    let mut assigned: Vec<Assigned> = children
        .iter()
        .enumerate()
        .map(|(place, child)| match child.at {
            // A missing child serves no traffic, so it is made at once.
            None if place < limits.partition && limits.has_good => Assigned::Good,
            None | Some(ChildRevision::Target) => Assigned::Target,
            Some(ChildRevision::Other) => Assigned::Own,
        })
        .collect();
    let mut unavailable = children.iter().filter(|child| !child.is_ready).count();
    let is_due = |child: &WantedChild| child.at == Some(ChildRevision::Other);
    let above = || children.iter().enumerate().skip(limits.partition).rev();
    // Updating a child that is not ready takes nothing away, so that a broken revision can always
    // be replaced.
    for (place, _) in above().filter(|(_, child)| is_due(child) && !child.is_ready) {
        assigned[place] = Assigned::Target;
    }
    for (place, _) in above().filter(|(_, child)| is_due(child) && child.is_ready) {
        if unavailable >= limits.max_unavailable {
            break;
        }
        assigned[place] = Assigned::Target;
        unavailable += 1;
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::rng::Rng;

    /// `T` and `O` are ready children at the target and at others, small letters are unready, `-`
    /// is missing.
    fn children(text: &str) -> Vec<WantedChild> {
        let one = |c: char| WantedChild {
            at: match c.to_ascii_uppercase() {
                'T' => Some(ChildRevision::Target),
                'O' => Some(ChildRevision::Other),
                _ => None,
            },
            is_ready: c.is_ascii_uppercase(),
        };
        text.chars().map(one).collect()
    }

    fn decided(text: &str, max_unavailable: usize, partition: usize) -> String {
        let limits = DecisionLimits { max_unavailable, partition, has_good: true };
        let letter = |assigned: &Assigned| match assigned {
            Assigned::Target => 'T',
            Assigned::Good => 'G',
            Assigned::Own => '=',
        };
        decide(&children(text), &limits).iter().map(letter).collect()
    }

    #[test]
    fn ready_children_are_updated_from_the_last_to_the_first_within_the_limit() {
        assert_eq!(decided("OOOO", 1, 0), "===T");
        assert_eq!(decided("OOOO", 2, 0), "==TT");
        assert_eq!(decided("OOOt", 1, 0), "===T");
        assert_eq!(decided("OOOT", 1, 0), "==TT");
        assert_eq!(decided("TTTT", 1, 0), "TTTT");
    }

    #[test]
    fn children_that_are_not_ready_are_updated_first_and_without_a_limit() {
        assert_eq!(decided("oOoO", 1, 0), "T=T=");
        assert_eq!(decided("ooo", 1, 0), "TTT");
    }

    #[test]
    fn children_below_the_partition_keep_their_revisions_and_missing_ones_get_the_good_one() {
        assert_eq!(decided("OO", 1, 1), "=T");
        assert_eq!(decided("-O", 1, 1), "G=");
        assert_eq!(decided("oO", 2, 1), "=T");
        assert_eq!(decided("--", 1, 0), "TT");
        assert_eq!(decided("-T", 9, 9), "GT");
        let limits = DecisionLimits { max_unavailable: 1, partition: 2, has_good: false };
        assert_eq!(decide(&children("--"), &limits), [Assigned::Target; 2]);
    }

    #[test]
    fn no_decision_takes_more_children_away_than_permitted_and_every_change_ends() {
        let rng = Rng::seeded(7);
        let below = |n: u64| usize::try_from(rng.below(n)).unwrap();
        for _ in 0..2000 {
            let count = 1 + below(8);
            let text: String = (0..count).map(|_| "TOto-".chars().nth(below(5)).unwrap()).collect();
            let mut now = children(&text);
            let max = 1 + below(3);
            let limits =
                DecisionLimits { max_unavailable: max, partition: below(3), has_good: true };
            for _round in 0..100 {
                let unready = now.iter().filter(|child| !child.is_ready).count();
                let assigned = decide(&now, &limits);
                let is_taken = |(child, to): &(&WantedChild, &Assigned)| {
                    child.is_ready
                        && child.at == Some(ChildRevision::Other)
                        && **to == Assigned::Target
                };
                let taken = now.iter().zip(&assigned).filter(is_taken).count();
                assert!(taken == 0 || unready + taken <= max, "{text}: {now:?} {assigned:?}");
                let below = now.iter().zip(&assigned).take(limits.partition);
                assert!(
                    below.filter(is_taken).count() == 0,
                    "{text}: a child below the partition is updated"
                );
                // One of the children that are not ready becomes ready; updated ones stop being so.
                for (child, to) in now.iter_mut().zip(&assigned) {
                    if *to == Assigned::Target && child.at != Some(ChildRevision::Target) {
                        *child = WantedChild { at: Some(ChildRevision::Target), is_ready: false };
                    } else if *to == Assigned::Good {
                        *child = WantedChild { at: Some(ChildRevision::Other), is_ready: false };
                    }
                }
                if let Some(child) = now.iter_mut().find(|child| !child.is_ready) {
                    child.is_ready = true;
                }
            }
            let above = now.iter().skip(limits.partition);
            assert!(
                above.clone().all(|child| child.at == Some(ChildRevision::Target)),
                "{text}: {now:?}"
            );
        }
    }
}
