//! `conformance`: plays the corpus against a server, or records the answers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use windlass_conformance::script::{self, Answer, Recording, Script};
use windlass_conformance::target::Target;
use windlass_conformance::{compare, play};

/// Plays scripts of requests against an API server.
#[derive(Debug, Parser)]
struct Arguments {
    /// Access to the server: its first cluster, and the token of its first user.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Number of scripts that run at the same time.
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Only the scripts whose area or id begins with this text, and the fixtures.
    #[arg(long, default_value = "")]
    only: String,
    /// Use of the answers.
    mode: Mode,
}

/// Treatment of the answers.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Mode {
    /// Compares the answers with the recorded answers.
    Play,
    /// Writes the answers as the recorded answers.
    Record,
    /// Compares them, and marks the recorded answers that differ as unstable.
    Again,
}

/// Runs the program and reports a failure.
#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the chosen scripts.
async fn run(arguments: Arguments) -> Result<(), String> {
    let text = std::fs::read_to_string(&arguments.kubeconfig).map_err(|e| e.to_string())?;
    let target = Arc::new(Target::remote(&text)?);
    let only = &arguments.only;
    let is_chosen = |script: &Script| {
        script.area == script::FIXTURES
            || script.area.starts_with(only)
            || script.id.starts_with(only)
    };
    let scripts: Vec<Script> = script::scripts()?.into_iter().filter(is_chosen).collect();
    let scripts = Arc::new(scripts);
    let answers = play::all(target, scripts.clone(), arguments.at_once).await?;
    if arguments.mode == Mode::Record {
        return record(&scripts, answers);
    }
    let mut recorded = script::recordings()?;
    let mut levels = Vec::new();
    for (script, answers) in scripts.iter().zip(&answers) {
        let known = recorded.entry(script.id.clone()).or_default();
        levels.push(judge(script, known, answers, arguments.mode));
    }
    print!("{}", compare::table(&scripts, &levels));
    if arguments.mode == Mode::Again {
        let marked = scripts.iter().map(|script| recorded.remove(&script.id).unwrap_or_default());
        return record(&scripts, marked.collect());
    }
    Ok(())
}

/// Returns the levels of a script's answers; marks the recorded answers that are not repeated.
fn judge(
    script: &Script,
    recorded: &mut [Answer],
    answers: &[Answer],
    mode: Mode,
) -> Vec<compare::Level> {
    let mut levels = Vec::new();
    for (at, (known, answer)) in recorded.iter_mut().zip(answers).enumerate() {
        let level = compare::level(known, answer);
        if level < compare::Level::Exact {
            println!("{}/{at} {}", script.id, compare::describe(known, answer));
            if mode == Mode::Again {
                // Code 0 stands for any code.
                known.code = if level == compare::Level::Nothing { 0 } else { known.code };
                known.unstable = true;
            }
        }
        levels.push(level);
    }
    levels
}

/// Writes the answers by area.
fn record(scripts: &[Script], answers: Vec<Vec<Answer>>) -> Result<(), String> {
    let mut areas = std::collections::BTreeMap::<&str, Vec<Recording>>::new();
    for (script, answers) in scripts.iter().zip(answers) {
        let recording = Recording { id: script.id.clone(), answers };
        areas.entry(&script.area).or_default().push(recording);
    }
    areas.iter().try_for_each(|(area, recordings)| script::write(area, recordings))
}
