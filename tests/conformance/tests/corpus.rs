//! The embedded server gives the recorded answers, but for a list of known differences.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_conformance::compare::{self, Level};
use windlass_conformance::differences::{self, Difference};
use windlass_conformance::play;
use windlass_conformance::script::{self, Answer, FIXTURES, Script};
use windlass_conformance::target::Target;

/// Number of scripts that run at the same time.
const AT_ONCE: usize = 16;
/// Number of runs of the differing scripts alone.
const SMALLER_RUNS: usize = 2;

/// The differing steps of a run, and the levels of all steps.
type Outcome = (BTreeMap<String, Difference>, Vec<Vec<Level>>);

/// Plays scripts against a new server and compares the answers with the recorded answers.
async fn play(
    scripts: &Arc<Vec<Script>>,
    recorded: &BTreeMap<String, Vec<Answer>>,
) -> Result<Outcome, String> {
    let target = Arc::new(Target::embedded()?);
    let answers = play::all(target.clone(), scripts.clone(), AT_ONCE).await?;
    target.stop().await;
    let (mut found, mut levels) = (BTreeMap::new(), Vec::new());
    for (script, answers) in scripts.iter().zip(&answers) {
        let known = recorded.get(&script.id).map(Vec::as_slice).unwrap_or_default();
        if known.len() != answers.len() {
            return Err(format!("{}: {} answers are recorded", script.id, known.len()));
        }
        let pairs = known.iter().zip(answers);
        let reached: Vec<Level> =
            pairs.map(|(known, answer)| compare::level(known, answer)).collect();
        for (at, level) in reached.iter().enumerate().filter(|(_, level)| **level < Level::Exact) {
            let step = format!("{}/{at:02}", script.id);
            show(&step, &known[at], &answers[at]);
            let reason = compare::describe(&known[at], &answers[at]);
            found.insert(step, Difference { level: *level, reason });
        }
        levels.push(reached);
    }
    Ok((found, levels))
}

/// Prints both answers of a step that `WINDLASS_CONFORMANCE_SHOW` names.
fn show(step: &str, recorded: &Answer, played: &Answer) {
    if std::env::var("WINDLASS_CONFORMANCE_SHOW").is_ok_and(|shown| step.starts_with(&shown)) {
        let text = |answer| serde_json::to_string(answer).unwrap_or_default();
        println!("{step}\nrecorded {}\nplayed   {}", text(recorded), text(played));
    }
}

/// Returns the fixtures and the scripts that the faults are about.
fn faulty(scripts: &[Script], faults: &[String]) -> Arc<Vec<Script>> {
    let is_about = |script: &&Script| {
        script.area == FIXTURES
            || faults.iter().any(|fault| fault.starts_with(&format!("{}/", script.id)))
    };
    Arc::new(scripts.iter().filter(is_about).cloned().collect())
}

/// Plays the corpus and compares the differing steps with the list.
async fn run() -> Result<(), String> {
    let scripts = Arc::new(script::scripts()?);
    let recorded = script::recordings()?;
    let (mut found, levels) = play(&scripts, &recorded).await?;
    println!("{}", compare::table(&scripts, &levels));
    if std::env::var("WINDLASS_CONFORMANCE").is_ok_and(|value| value == "accept") {
        // As below: scripts that run at the same time may disturb each other.
        let steps: Vec<String> = found.keys().cloned().collect();
        let (again, _) = play(&faulty(&scripts, &steps), &recorded).await?;
        found.retain(|step, _| again.contains_key(step));
        return differences::write(&found);
    }
    let listed = differences::listed()?;
    let faults = differences::judge(&found, &listed);
    if faults.is_empty() {
        return Ok(());
    }
    // Scripts meet each other's node ports and ranges, and controllers and watches take their time:
    // only a difference that all smaller runs show, too, is a fault.
    let mut left = faults;
    for _ in 0..SMALLER_RUNS {
        let few = faulty(&scripts, &left);
        let (again, _) = play(&few, &recorded).await?;
        let is_played =
            |step: &str| few.iter().any(|one| step.starts_with(&format!("{}/", one.id)));
        let listed = listed.iter().filter(|(step, _)| is_played(step));
        let listed = listed.map(|(step, one)| (step.clone(), one.clone())).collect();
        left = differences::judge(&again, &listed);
        if left.is_empty() {
            return Ok(());
        }
    }
    Err(left.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_differs_from_the_real_one_only_in_listed_steps() {
    if let Err(faults) = run().await {
        panic!("{faults}");
    }
}
