//! The embedded server gives the recorded answers, but for a list of known differences.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_conformance::compare::{self, Level};
use windlass_conformance::differences::{self, Difference};
use windlass_conformance::play;
use windlass_conformance::script;
use windlass_conformance::target::Target;

/// Number of scripts that run at the same time.
const AT_ONCE: usize = 16;

/// Plays the corpus and compares the differing steps with the list.
async fn run() -> Result<(), String> {
    let scripts = Arc::new(script::scripts()?);
    let target = Arc::new(Target::embedded());
    let answers = play::all(target.clone(), scripts.clone(), AT_ONCE).await?;
    target.stop().await;
    let recorded = script::recordings()?;
    let mut found = BTreeMap::new();
    let mut levels = Vec::new();
    for (script, answers) in scripts.iter().zip(&answers) {
        let known = recorded.get(&script.id).map(Vec::as_slice).unwrap_or_default();
        if known.len() != answers.len() {
            return Err(format!("{}: {} answers are recorded", script.id, known.len()));
        }
        let reached: Vec<Level> = known
            .iter()
            .zip(answers)
            .map(|(known, answer)| compare::level(known, answer))
            .collect();
        for (at, level) in reached.iter().enumerate().filter(|(_, level)| **level < Level::Exact) {
            if std::env::var("WINDLASS_CONFORMANCE_SHOW")
                .is_ok_and(|shown| format!("{}/{at:02}", script.id).starts_with(&shown))
            {
                let show = |answer| serde_json::to_string(answer).unwrap_or_default();
                println!("{}/{at:02}", script.id);
                println!("recorded {}\nplayed   {}", show(&known[at]), show(&answers[at]));
            }
            let reason = compare::describe(&known[at], &answers[at]);
            found.insert(format!("{}/{at:02}", script.id), Difference { level: *level, reason });
        }
        levels.push(reached);
    }
    println!("{}", compare::table(&scripts, &levels));
    if std::env::var("WINDLASS_CONFORMANCE").is_ok_and(|value| value == "accept") {
        return differences::write(&found);
    }
    let faults = differences::judge(&found, &differences::listed()?);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_differs_from_the_real_one_only_in_listed_steps() {
    if let Err(faults) = run().await {
        panic!("{faults}");
    }
}
