//! Holds simulated leader elections and counts framework writes of two processes that overlap:
//! `elections --count 1000000 --seed 7`. See `tests/README.md`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use windlass::testing::elections::{Defect, ElectionCounts, Elections};

/// Elections in a batch, after which progress is printed.
const BATCH: u64 = 25_000;
/// Elections within which a planted defect must be counted.
const DEFECT: u64 = 10_000;
/// Time beyond the promise that writes are on their way in a world that must be unsafe.
const LATE: Duration = Duration::from_secs(8);

fn main() -> ExitCode {
    let mut count = 100_000;
    let mut seed = 1;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse::<u64>().ok());
        match (word.as_str(), number) {
            ("--count", Some(number)) => count = number,
            ("--seed", Some(number)) => seed = number,
            _ => {
                eprintln!("usage: elections [--count N] [--seed S]");
                return ExitCode::from(2);
            }
        }
    }
    let began = now();
    let worlds = [
        ("clock rates within 1.15", Elections::skewed()),
        ("writes up to 1.7 s on their way to the server, rates within 1.02", Elections::paused()),
    ];
    let mut is_safe = true;
    for (name, world) in worlds {
        is_safe &= hold(name, world, seed, count / 2, began);
    }
    let are_counted = Defect::ALL.map(|defect| plant(defect, seed)).iter().all(|counted| *counted);
    let late = Elections::paused().late(LATE).hold(seed, DEFECT);
    println!("writes {LATE:?} later than promised: overlapping writes: {}", late.overlaps);
    println!("{:.1} s", began.elapsed().as_secs_f64());
    if is_safe && are_counted && late.overlaps > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Holds elections in a sound world; returns whether no writes overlapped, nor could have.
fn hold(name: &str, world: Elections, seed: u64, count: u64, began: Instant) -> bool {
    let mut sum = ElectionCounts::default();
    let mut batch = 0;
    while sum.elections < count {
        let tally = world.hold(seed ^ (batch << 32), BATCH.min(count - sum.elections));
        sum.add(&tally);
        batch += 1;
        if !tally.is_safe() {
            println!("{name}: unsafe in batch {batch}: {tally}");
            break;
        }
        if batch % 8 == 0 {
            println!("{:5.0} s: {} elections", began.elapsed().as_secs_f64(), sum.elections);
        }
    }
    println!("{name}: {sum}");
    sum.is_safe()
}

/// Breaks the framework on purpose; returns whether the oracle counts.
fn plant(defect: Defect, seed: u64) -> bool {
    let tally = Elections::skewed().broken(defect).hold(seed, DEFECT);
    println!("planted {defect:?}: overlapping writes: {}", tally.overlaps);
    tally.overlaps > 0
}

/// Returns the time of this machine: the elections have clocks of their own.
#[expect(clippy::disallowed_methods, reason = "the clock of the run's reader, not of the run")]
fn now() -> Instant {
    Instant::now()
}
