//! Choice, by the environment, of the live mutant among the mutants that `tests/mutants/every` has
//! put into this crate and into others of the same program. All these crates share the numbers and
//! the log.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

static REACHED: [AtomicBool; 16_384] = [const { AtomicBool::new(false) }; 16_384];

/// Is mutant `number` alive? Logs that this process reached the mutant, if the environment names a
/// log.
pub(crate) fn is(number: usize) -> bool {
    static CHOSEN: OnceLock<(usize, Option<Mutex<File>>)> = OnceLock::new();
    let (chosen, log) = CHOSEN.get_or_init(|| {
        let chosen = std::env::var("WINDLASS_MUTANT").ok().and_then(|text| text.parse().ok());
        let log = std::env::var_os("WINDLASS_MUTANT_LOG").map(|path| {
            let file = OpenOptions::new().append(true).create(true).open(path);
            Mutex::new(file.expect("the log can be written"))
        });
        (chosen.unwrap_or_default(), log)
    });
    if let Some(log) = log
        && !REACHED[number].swap(true, Ordering::Relaxed)
    {
        let mut log = log.lock().expect("no holder of this lock panics");
        // In one piece: another crate of this program may write at the same time, and holds a
        // separate lock.
        log.write_all(format!("{number}\n").as_bytes()).expect("the log can be written");
    }
    *chosen == number
}
