//! Random sequences of requests that two servers must answer alike.
//!
//! A sequence follows from a seed and a number. A sequence is a script of the corpus, so the
//! sequence is played and the answers are brought into normal form in the same way, and a
//! difference can be kept as a script.

// DESIGN.md, 152: Random sequences are scripts of the corpus

mod dice;
mod kinds;
mod known;
mod run;
mod shrink;
mod steps;

use serde_json::json;

use crate::script::{Script, Step};
use dice::Dice;
use kinds::Kind;
pub use run::{Options, Report, run};

/// Returns a sequence of a seed.
fn sequence(kinds: &[Kind], seed: u64, number: u64) -> Script {
    let mut dice = Dice::new(seed, number);
    let bad = dice.of(&[0, 8, 25]).copied().unwrap_or_default();
    let mut steps = vec![namespace()];
    let count = 5 + dice.below(9);
    if let Some(kind) = dice.of(kinds) {
        let mut maker = steps::Maker { dice, kind, bad };
        let is_watched = maker.dice.percent(30);
        if is_watched {
            steps.push(maker.first());
        }
        while steps.len() < count {
            steps.extend(maker.action());
        }
        if is_watched {
            steps.extend(maker.last());
        }
        steps.push(maker.first());
        if kind.plural == "services" {
            steps.push(Step {
                request: format!("DELETE {}", kind.path()),
                pick: vec!["/kind".to_owned()],
                ..Step::default()
            });
        }
    }
    Script {
        id: format!("differential-{seed}-{number}"),
        tier: 2,
        title: format!("random requests of seed {seed}, sequence {number}"),
        steps,
        area: "differential".to_owned(),
    }
}

/// Returns the step that makes the sequence's namespace.
fn namespace() -> Step {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${u}"}});
    Step { request: "POST /api/v1/namespaces".to_owned(), body: Some(body), ..Step::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequences() {
        let kinds = kinds::kinds().unwrap();
        let text = |seed, number| serde_json::to_string(&sequence(&kinds, seed, number)).unwrap();
        let all = |seed| (0..200).map(|number| text(seed, number)).collect::<Vec<_>>();
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }
}
