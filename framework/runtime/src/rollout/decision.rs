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
    /// Most members that may be unready while a ready one is updated.
    pub(super) max_unavailable: usize,
    /// Number of members, from the first, that keep their revisions.
    pub(super) held: usize,
    /// Whether there is a good revision, from which missing members are made that are held.
    pub(super) has_good: bool,
}

/// Revision from which a member is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// The target revision.
    Target,
    /// The last in which all children were ready.
    Good,
    /// Its current revision.
    Own,
}

/// Returns the revision for each member.
pub(super) fn decide(members: &[WantedChild], limits: &DecisionLimits) -> Vec<Assigned> {
    let mut assigned: Vec<Assigned> = members
        .iter()
        .enumerate()
        .map(|(place, member)| match member.at {
            // A missing member serves nobody, so that it is made at once.
            None if place < limits.held && limits.has_good => Assigned::Good,
            None | Some(ChildRevision::Target) => Assigned::Target,
            Some(ChildRevision::Other) => Assigned::Own,
        })
        .collect();
    let mut unavailable = members.iter().filter(|member| !member.is_ready).count();
    let is_due = |member: &WantedChild| member.at == Some(ChildRevision::Other);
    let above = || members.iter().enumerate().skip(limits.held).rev();
    // Updating a member that is not ready takes nothing away, so that a broken revision can always
    // be replaced.
    for (place, _) in above().filter(|(_, member)| is_due(member) && !member.is_ready) {
        assigned[place] = Assigned::Target;
    }
    for (place, _) in above().filter(|(_, member)| is_due(member) && member.is_ready) {
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

    /// `T` and `O` are ready members at the target and at others, small letters are unready, `-` is
    /// missing.
    fn members(text: &str) -> Vec<WantedChild> {
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

    fn decided(text: &str, max_unavailable: usize, held: usize) -> String {
        let limits = DecisionLimits { max_unavailable, held, has_good: true };
        let letter = |assigned: &Assigned| match assigned {
            Assigned::Target => 'T',
            Assigned::Good => 'G',
            Assigned::Own => '=',
        };
        decide(&members(text), &limits).iter().map(letter).collect()
    }

    #[test]
    fn ready_members_are_updated_from_the_last_to_the_first_within_the_limit() {
        assert_eq!(decided("OOOO", 1, 0), "===T");
        assert_eq!(decided("OOOO", 2, 0), "==TT");
        assert_eq!(decided("OOOt", 1, 0), "===T");
        assert_eq!(decided("OOOT", 1, 0), "==TT");
        assert_eq!(decided("TTTT", 1, 0), "TTTT");
    }

    #[test]
    fn members_that_are_not_ready_are_updated_first_and_without_a_limit() {
        assert_eq!(decided("oOoO", 1, 0), "T=T=");
        assert_eq!(decided("ooo", 1, 0), "TTT");
    }

    #[test]
    fn held_members_keep_their_revisions_and_missing_ones_get_the_good_one() {
        assert_eq!(decided("OO", 1, 1), "=T");
        assert_eq!(decided("-O", 1, 1), "G=");
        assert_eq!(decided("oO", 2, 1), "=T");
        assert_eq!(decided("--", 1, 0), "TT");
        assert_eq!(decided("-T", 9, 9), "GT");
        let limits = DecisionLimits { max_unavailable: 1, held: 2, has_good: false };
        assert_eq!(decide(&members("--"), &limits), [Assigned::Target; 2]);
    }

    #[test]
    fn no_decision_takes_more_members_away_than_permitted_and_every_change_ends() {
        let rng = Rng::seeded(7);
        let below = |n: u64| usize::try_from(rng.below(n)).unwrap();
        for _ in 0..2000 {
            let count = 1 + below(8);
            let text: String = (0..count).map(|_| "TOto-".chars().nth(below(5)).unwrap()).collect();
            let mut now = members(&text);
            let max = 1 + below(3);
            let limits = DecisionLimits { max_unavailable: max, held: below(3), has_good: true };
            for _round in 0..100 {
                let unready = now.iter().filter(|member| !member.is_ready).count();
                let assigned = decide(&now, &limits);
                let is_taken = |(member, to): &(&WantedChild, &Assigned)| {
                    member.is_ready
                        && member.at == Some(ChildRevision::Other)
                        && **to == Assigned::Target
                };
                let taken = now.iter().zip(&assigned).filter(is_taken).count();
                assert!(taken == 0 || unready + taken <= max, "{text}: {now:?} {assigned:?}");
                let held = now.iter().zip(&assigned).take(limits.held);
                assert!(held.filter(is_taken).count() == 0, "{text}: a held member is updated");
                // One of the members that are not ready becomes ready; updated ones stop being so.
                for (member, to) in now.iter_mut().zip(&assigned) {
                    if *to == Assigned::Target && member.at != Some(ChildRevision::Target) {
                        *member = WantedChild { at: Some(ChildRevision::Target), is_ready: false };
                    } else if *to == Assigned::Good {
                        *member = WantedChild { at: Some(ChildRevision::Other), is_ready: false };
                    }
                }
                if let Some(member) = now.iter_mut().find(|member| !member.is_ready) {
                    member.is_ready = true;
                }
            }
            let above = now.iter().skip(limits.held);
            assert!(
                above.clone().all(|member| member.at == Some(ChildRevision::Target)),
                "{text}: {now:?}"
            );
        }
    }
}
