//! `differential`: sends random sequences of requests to the embedded server and a real one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::time::Instant;
use windlass_conformance::differential::{self, Options};
use windlass_conformance::target::Target;

/// Compares the embedded server with another one on random sequences of requests.
#[derive(Debug, Parser)]
struct Arguments {
    /// Access to the real server: its first cluster, and the token of its first user.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Number of sequences.
    #[arg(long, default_value_t = 1000)]
    sequences: usize,
    /// Seed: the same seed gives the same sequences.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first sequence: with `--sequences 1` that sequence alone.
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Number of differences after which the run ends.
    #[arg(long, default_value_t = 1)]
    most: usize,
    /// Number of sequences that are played at the same time.
    #[arg(long, default_value_t = 6)]
    at_once: usize,
}

/// Runs the program; a difference is a failure.
#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the sequences, and returns whether both servers gave the same answers.
async fn run(arguments: Arguments) -> Result<bool, String> {
    let text = std::fs::read_to_string(&arguments.kubeconfig);
    let text = text.map_err(|error| format!("{}: {error}", arguments.kubeconfig.display()))?;
    let Arguments { sequences, seed, first, most, at_once, .. } = arguments;
    let options = Options { seed, first, sequences, most, at_once };
    let begin = Instant::now();
    let tell = |text: &str| println!("{text}\n");
    let report =
        differential::run(Target::remote(&text)?, Target::embedded()?, options, tell).await?;
    println!(
        "seed {seed}: {} sequences from {first}, {} steps, {} differences, {} sequences that the \
         real server answers now so and now so; {} s",
        report.sequences,
        report.steps,
        report.differences.len(),
        report.unsteady,
        begin.elapsed().as_secs()
    );
    Ok(report.differences.is_empty())
}
