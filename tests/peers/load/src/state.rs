//! State of the server: objects, their versions, and the changes to send next.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::objects::{Filling, Kind, Object, mix, words};
use crate::protobuf;

/// The first version is the next number; eight digits for ever.
const BASE: u64 = 10_000_000;
/// Text that paddings are cut from.
const WORDS: usize = 64 << 10;

/// Next work of a watch.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// A number of changes, round robin; at most `window` of them unacknowledged (0: no limit);
    /// `rate` a second (0: at full speed).
    Events { count: u64, window: u64, rate: u64 },
    /// Send 410 and end.
    Expire,
}

/// The version and the time stamp of an object.
#[derive(Debug, Default)]
struct Cell {
    version: AtomicU64,
    stamp: AtomicU64,
}

/// A watch with assigned work.
#[derive(Debug, Default)]
struct Turn {
    watch: u64,
    is_attached: bool,
    is_working: bool,
    job: Option<Job>,
}

/// Numbers of objects and events served so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub pages: AtomicU64,
    pub streaming_lists: AtomicU64,
    /// Objects in pages and streaming lists.
    pub listed: AtomicU64,
    pub watches: AtomicU64,
    pub events: AtomicU64,
    pub expired: AtomicU64,
    pub bytes: AtomicU64,
    pub unknown: AtomicU64,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub listed: u64,
    pub events: u64,
    pub expired: u64,
}

impl Counts {
    pub fn tally(&self) -> Tally {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Tally { listed: of(&self.listed), events: of(&self.events), expired: of(&self.expired) }
    }
}

#[derive(Debug)]
pub struct State {
    pub kind: Kind,
    pub objects: Vec<Object>,
    pub protobuf: Option<Vec<protobuf::Object>>,
    pub counts: Counts,
    pub acknowledged: AtomicU64,
    /// The counts when a phase began.
    pub marked: Mutex<Tally>,
    seed: u64,
    words: String,
    cells: Vec<Cell>,
    current: AtomicU64,
    cursor: AtomicUsize,
    turn: Mutex<Turn>,
    news: Condvar,
}

impl State {
    pub fn new(kind: Kind, count: usize, seed: u64) -> Self {
        let cell = |version| Cell { version: AtomicU64::new(version), stamp: AtomicU64::new(0) };
        Self {
            kind,
            objects: (0..count).map(|index| Object::new(kind, seed, index)).collect(),
            protobuf: None,
            counts: Counts::default(),
            acknowledged: AtomicU64::new(0),
            marked: Mutex::default(),
            seed,
            words: words(seed, WORDS),
            cells: (BASE + 1..=BASE + count as u64).map(cell).collect(),
            current: AtomicU64::new(BASE + count as u64),
            cursor: AtomicUsize::new(0),
            turn: Mutex::default(),
            news: Condvar::new(),
        }
    }

    /// The newest version.
    pub fn current(&self) -> u64 {
        self.current.load(Ordering::SeqCst)
    }

    pub fn version(&self, index: usize) -> u64 {
        self.cells[index].version.load(Ordering::SeqCst)
    }

    /// Values for the holes of an object.
    pub fn filling(&self, index: usize) -> Filling<'_> {
        let version = self.version(index);
        let draw = mix(self.seed, version);
        let length = usize::try_from(draw % (self.kind.padding() as u64 + 1)).unwrap_or(0);
        let from =
            usize::try_from((draw >> 32) % (WORDS - self.kind.padding()) as u64).unwrap_or(0);
        Filling {
            version,
            stamp: self.cells[index].stamp.load(Ordering::SeqCst),
            padding: &self.words[from..from + length],
        }
    }

    /// Makes the next change; returns the object.
    pub fn change(&self, stamp: u64) -> usize {
        let cursor = self.cursor.fetch_add(1, Ordering::SeqCst);
        let index = cursor % self.objects.len();
        self.change_at(index, stamp);
        index
    }

    /// Changes `count` objects that lie evenly among all, the last one last; returns the last
    /// object.
    pub fn change_spread(&self, count: u64) -> &Object {
        let total = self.objects.len() as u64;
        let count = count.clamp(1, total);
        for at in 1..=count {
            self.change_at(usize::try_from(at * total / count - 1).unwrap_or(0), 0);
        }
        &self.objects[self.objects.len() - 1]
    }

    fn change_at(&self, index: usize, stamp: u64) {
        let version = self.current.fetch_add(1, Ordering::SeqCst) + 1;
        self.cells[index].version.store(version, Ordering::SeqCst);
        self.cells[index].stamp.store(stamp, Ordering::SeqCst);
    }

    /// The object of the change that comes `ahead` changes from now; 1 is the next change.
    pub fn upcoming(&self, ahead: u64) -> &Object {
        let at = self.cursor.load(Ordering::SeqCst) as u64 + ahead.saturating_sub(1);
        &self.objects[usize::try_from(at % self.objects.len() as u64).unwrap_or(0)]
    }

    /// Writes an object in the present state, in JSON, without the opening brace.
    pub fn render(&self, index: usize, out: &mut Vec<u8>) {
        self.objects[index].render(self.filling(index), out);
    }

    /// This watch gets all later changes, if `version` is the present.
    pub fn attach(&self, version: Option<u64>) -> Option<u64> {
        let mut turn = self.turn();
        if version.is_some_and(|version| version != self.current()) {
            return None;
        }
        turn.watch += 1;
        turn.is_attached = true;
        turn.is_working = false;
        self.news.notify_all();
        Some(turn.watch)
    }

    /// This watch has ended.
    pub fn detach(&self, watch: u64) {
        let mut turn = self.turn();
        if turn.watch == watch {
            turn.is_attached = false;
            turn.is_working = false;
        }
        self.news.notify_all();
    }

    /// Waits for work for this watch until `deadline`; an error when another watch replaced this
    /// watch.
    pub fn next(&self, watch: u64, deadline: Instant) -> Result<Option<Job>, Superseded> {
        let mut turn = self.turn();
        turn.is_working &= turn.watch != watch;
        self.news.notify_all();
        loop {
            if turn.watch != watch {
                return Err(Superseded);
            }
            if let Some(job) = turn.job.take() {
                turn.is_working = true;
                return Ok(Some(job));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            turn = self.wait(turn, left);
        }
    }

    /// Gives the watch work, once the earlier work has ended.
    pub fn order(&self, job: Job) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut turn = self.turn();
        while turn.is_working || turn.job.is_some() || !turn.is_attached {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            turn = self.wait(turn, left);
        }
        turn.job = Some(job);
        self.news.notify_all();
        true
    }

    /// Waits until there is a watch without work.
    pub fn is_watched(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut turn = self.turn();
        while turn.is_working || turn.job.is_some() || !turn.is_attached {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            turn = self.wait(turn, left);
        }
        true
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, turn: MutexGuard<'a, Turn>, left: Duration) -> MutexGuard<'a, Turn> {
        let waited = self.news.wait_timeout(turn, left);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Another watch came later.
#[derive(Debug)]
pub struct Superseded;
