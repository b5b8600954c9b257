//! The run: sequences side by side on both servers, and the differences.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::kinds::{self, Kind};
use super::{known, sequence, shrink};
use crate::compare::{self, Level};
use crate::play;
use crate::script::{self, Answer, FIXTURES, Script};
use crate::target::Target;

/// First number of the names of sequences that are played again.
const AGAIN: usize = 0x0010_0000;

/// Extent of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all sequences.
    pub seed: u64,
    /// Number of the first sequence.
    pub first: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// Number of differences after which the run ends.
    pub most: usize,
    /// Number of sequences that are played at the same time.
    pub at_once: usize,
}

/// Outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of sequences that were played on both servers.
    pub sequences: usize,
    /// Number of their requests.
    pub steps: usize,
    /// Number of sequences that differed once, and not when they were played again.
    pub unsteady: usize,
    /// The differences: the shortest script that shows each, and both answers.
    pub differences: Vec<String>,
}

/// Two servers, and the numbers of unused names.
#[derive(Debug)]
pub(super) struct Pair {
    real: Target,
    embedded: Target,
    next: AtomicUsize,
}

/// A difference: the step's place, and the answers of the real and of the embedded server.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) at: usize,
    pub(super) real: Answer,
    pub(super) embedded: Answer,
}

impl Found {
    /// Returns the kind of the difference.
    pub(super) fn signature(&self) -> String {
        compare::signature(&self.real, &self.embedded)
    }
}

impl Pair {
    /// Plays a script on both servers and returns the first difference.
    async fn once(&self, script: &Script, number: usize) -> Result<Option<Found>, String> {
        let real = play::one(&self.real, script, number);
        let embedded = play::one(&self.embedded, script, number);
        let (real, embedded) = tokio::join!(real, embedded);
        let (real, embedded) = (known::masked(real?), known::masked(embedded?));
        let differs =
            |(real, embedded): &(Answer, Answer)| compare::level(real, embedded) < Level::Exact;
        let pairs: Vec<(Answer, Answer)> = real.into_iter().zip(embedded).collect();
        // Other codes first: an object that only a single server refuses changes the symbols of
        // earlier answers.
        let has_codes = |(real, embedded): &(Answer, Answer)| real.code != embedded.code;
        let at = pairs.iter().position(has_codes).or_else(|| pairs.iter().position(differs));
        let found = at.and_then(|at| Some((at, pairs.into_iter().nth(at)?)));
        Ok(found.map(|(at, (real, embedded))| Found { at, real, embedded }))
    }

    /// Plays a script with new names and returns a difference that three plays show.
    pub(super) async fn again(&self, script: &Script) -> Result<Option<Found>, String> {
        let mut last: Option<Found> = None;
        for _ in 0..3 {
            let number = AGAIN + self.next.fetch_add(1, Ordering::Relaxed);
            let Some(found) = self.once(script, number).await? else { return Ok(None) };
            // A server that answers now so and now so is no measure.
            if last.as_ref().is_some_and(|last| last.real != found.real) {
                return Ok(None);
            }
            last = Some(found);
        }
        Ok(last)
    }
}

/// Plays the fixtures of the corpus, whose definitions sequences use, on both servers.
async fn fixtures(pair: &Pair) -> Result<(), String> {
    let scripts = script::scripts()?;
    for script in scripts.iter().filter(|script| script.area == FIXTURES) {
        play::one(&pair.real, script, 0).await?;
        play::one(&pair.embedded, script, 0).await?;
    }
    Ok(())
}

/// Plays the next sequence until none is left, and sends the sequences that differ.
async fn player(
    pair: Arc<Pair>,
    kinds: Arc<Vec<Kind>>,
    options: Options,
    next: Arc<AtomicUsize>,
    sender: mpsc::Sender<Result<(Script, bool), String>>,
) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        if at >= options.sequences {
            return;
        }
        let number = options.first + at;
        let script = sequence(&kinds, options.seed, number as u64);
        let found = pair.once(&script, number + 1).await;
        let sent = sender.send(found.map(|found| (script, found.is_some()))).await;
        if sent.is_err() {
            return;
        }
    }
}

/// Plays sequences on both servers; a difference is shortened and passed to `tell`.
///
/// # Errors
/// A server cannot be reached.
pub async fn run(
    real: Target,
    embedded: Target,
    options: Options,
    tell: impl Fn(&str),
) -> Result<Report, String> {
    let kinds = Arc::new(kinds::kinds()?);
    let pair = Arc::new(Pair { real, embedded, next: AtomicUsize::new(0) });
    fixtures(&pair).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = mpsc::channel(1);
    for _ in 0..options.at_once {
        let (pair, kinds) = (pair.clone(), kinds.clone());
        tokio::spawn(player(pair, kinds, options.clone(), next.clone(), sender.clone()));
    }
    drop(sender);
    let mut report = Report::default();
    while let Some(played) = receiver.recv().await {
        let (script, differs) = played?;
        report.sequences += 1;
        report.steps += script.steps.len();
        if !differs {
            continue;
        }
        let Some(found) = pair.again(&script).await? else {
            report.unsteady += 1;
            continue;
        };
        let (script, found) = shrink::shortest(&pair, script, found).await?;
        let text = describe(&script, &found);
        tell(&text);
        report.differences.push(text);
        if report.differences.len() >= options.most {
            break;
        }
    }
    receiver.close();
    pair.embedded.stop().await;
    Ok(report)
}

/// Returns the lines about a difference.
fn describe(script: &Script, found: &Found) -> String {
    let text = |answer: &Answer| serde_json::to_string(answer).unwrap_or_default();
    let line = serde_json::to_string(script).unwrap_or_default();
    let place = compare::describe(&found.real, &found.embedded);
    format!(
        "{}/{}: {place}\n  script   {line}\n  real     {}\n  embedded {}",
        script.id,
        found.at,
        text(&found.real),
        text(&found.embedded)
    )
}
