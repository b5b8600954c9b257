//! Faults of the server: a single fault at a time, drawn from the seed.

use std::time::Duration;

use windlass::rng::Rng;
use windlass_apiserver::ApiServer;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::Stats;
use super::kinds::NAMES;

/// Requests that caches make.
const READS: [&str; 3] = ["list", "watch", "list|watch"];

/// Injects a fault into the server.
pub(super) async fn strike(server: &ApiServer, dice: &Rng, stats: &Stats) {
    let pick = |count: usize| usize::try_from(dice.below(count as u64)).unwrap_or_default();
    let resource = if dice.below(3) == 0 { "*" } else { NAMES[pick(NAMES.len())] };
    let faults = server.faults();
    let add = |name: &str, action: FaultAction, verb: &str, more: Option<FaultAction>| {
        stats.count(&format!("server: {name}"));
        let fault = Fault::new(action).on(verb).times(1 + pick(6));
        let fault = if resource == "*" { fault } else { fault.resource(resource) };
        faults.add(match more {
            Some(more) => fault.then(more),
            None => fault,
        });
    };
    match dice.below(16) {
        0 => {
            stats.count("server: closed watches");
            faults.close_watches(resource);
        }
        1 => {
            let code = [410, 410, 429, 500, 503][pick(5)];
            stats.count(&format!("server: ended watches with {code}"));
            faults.fail_watches(resource, code);
        }
        2 | 3 => {
            stats.count("server: showed old changes again");
            faults.repeat_watches(resource, 1 + dice.below(200), dice.below(2) == 0);
        }
        4 => add(
            "began watches too early",
            FaultAction::RepeatWatch(1 + dice.below(300)),
            "watch",
            None,
        ),
        5 => {
            stats.count("server: compacted");
            server.compact();
        }
        6 => {
            stats.count("server: restarted");
            server.restart().await;
        }
        7 => {
            let code = [429, 500, 503, 504, 403, 401][pick(6)];
            add(&format!("answered {code}"), FaultAction::Answer(code), READS[pick(3)], None);
        }
        8 => {
            let after = FaultAction::RetryAfter((1 + dice.below(5)).to_string());
            add("asked to come back later", FaultAction::Answer(429), READS[pick(3)], Some(after));
        }
        9 => add("dropped requests", FaultAction::Drop, READS[pick(3)], None),
        10 => add("never answered", FaultAction::Hang, READS[pick(3)], None),
        11 => {
            let delay = dice.jitter(Duration::from_secs(20));
            add("answered late", FaultAction::Delay(delay), READS[pick(3)], None);
        }
        12 => {
            let code = [410, 500, 429][pick(3)];
            add(&format!("began watches with {code}"), FaultAction::FailWatch(code), "watch", None);
        }
        13 => add("closed watches at once", FaultAction::CloseWatch, "watch", None),
        14 => {
            stats.count("server: delivered nothing");
            faults.pause_watches(resource);
        }
        _ => {
            stats.count("server: sent bytes that cannot be read");
            let bytes = ["{\"type\":\"MODIFIED\",\"object\":{\"meta\n", "\n", "nonsense\n"];
            faults.inject(resource, bytes[pick(3)]);
        }
    }
}

/// Lets paused watches go on.
pub(super) fn resume(server: &ApiServer) {
    for resource in NAMES.iter().chain(&["*"]) {
        server.faults().resume_watches(resource);
    }
}
