//! Writes a million versions while servers and networks fail, and checks that caches keep their
//! promises: `oracle --versions 1000000 --seed 7`. See `tests/README.md`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use windlass_tests::chaos::{Options, Progress, Stats, run};

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: oracle [--versions N] [--seed S] [--keys K]");
            return ExitCode::from(2);
        }
    };
    println!("seed {}: {} versions of {} keys", options.seed, options.versions, options.keys);
    let began = now();
    let mut shown = began;
    let outcome = run(options, |progress| {
        if shown.elapsed().as_secs() >= 2 {
            shown = now();
            println!("{:4} s: {progress}", began.elapsed().as_secs());
            // A closed standard output is no reason to stop.
            let _ = std::io::stdout().flush();
        }
    });
    match outcome {
        Ok(report) => {
            print_progress(&report.progress, &report.stats, began);
            println!("trace {:016x}; every promise was kept", report.trace);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            print_progress(&failure.progress, &failure.stats, began);
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the time of this machine: the world's own clock runs a thousand times faster.
#[expect(clippy::disallowed_methods, reason = "the clock of the run's reader, not of the run")]
fn now() -> Instant {
    Instant::now()
}

fn print_progress(progress: &Progress, stats: &Stats, began: Instant) {
    for (name, number) in stats.all() {
        println!("{number:>10}  {name}");
    }
    let seconds = began.elapsed().as_secs_f64();
    let pace = progress.counts.commits as f64 / seconds.max(0.001);
    println!("{progress}; {seconds:.1} s, {pace:.0} versions/s");
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::new(1, 1_000_000);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default().replace('_', "");
        let number = value.parse().map_err(|_| format!("{word} needs a number, not {value:?}"))?;
        match word.as_str() {
            "--versions" => options.versions = number,
            "--seed" => options.seed = number,
            "--keys" => options.keys = number,
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok(options)
}
