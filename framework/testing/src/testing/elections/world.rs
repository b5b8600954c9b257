//! The world of simulated elections: nodes, their clocks, a server, and their faults.

mod faults;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::events::{EventKind, EventQueue, SimulatedEvent};
use super::oracle::{ElectionCounts, Oracle};
use super::{Defect, Elections};
use windlass_core::clock::{Clock, ClockReading};
use windlass_core::rng::Rng;
use windlass_runtime::leader::ObservedRecord;
use windlass_runtime::leader::simulated::{
    Handover, HandoverPolicy, LockRequest, LockResponse, Machine, OwnRecords, WRITE_DRAIN,
    remaining, worth_sending,
};

/// Microseconds of a second.
const SECOND: u64 = 1_000_000;

/// A process on a machine.
struct ElectionNode {
    /// The framework's election of this process, with the rules for asking for and lending a lease.
    handover: Handover,
    /// Records that this process wrote; shared with the election's machine.
    own_records: OwnRecords,
    /// Number of restarts so far; events of an earlier process are void.
    life: u32,
    /// Rate of the node's clocks against real time.
    rate: f64,
    /// Lag of the monotonic clock, because the machine slept.
    ///
    /// Only the steady clock has this lag: the clock that counts sleep does not fall behind.
    lag: Duration,
    /// Offset of the wall clock, in seconds.
    wall: i64,
    /// Time until which the process is frozen, in microseconds.
    frozen_until: u64,
    /// Number of the request whose answer the node waits for.
    waiting_for: Option<u64>,
    /// Whether the lease was valid at the last check; a change to that counts as an election.
    led: bool,
    /// Whether the node is to release the lease: such a node begins no new writes.
    drains: bool,
    /// Time at which the node's work has ended: the last write was answered or given up.
    ///
    /// Time of the node's own knowledge: from then on the node has no work left, though the server
    /// may have.
    busy_until: u64,
    /// Time until which the gate assumes that a write that was given up may still be executed.
    ///
    /// Microseconds of real time, as all times of the world; the node reads it through the rate of
    /// its clock.
    doubt_until: u64,
}

/// All state of a simulation.
///
/// Times are microseconds since the beginning of the world. The state is changed by a single event
/// at a time, so that a run depends on nothing but the seed and the settings.
struct ElectionWorld {
    /// Lease durations, rates and defect.
    settings: Elections,
    /// The only source of randomness.
    rng: Rng,
    /// The rate of the server's clock.
    rate: f64,
    /// Origin of the steady clocks: an `Instant` cannot be made from a number.
    origin: Instant,
    /// Events to come.
    queue: EventQueue,
    /// Two to five nodes; a crashed node keeps index and clocks.
    nodes: Vec<ElectionNode>,
    /// The Lease at the server; `None` before the first election, and after a deletion.
    stored: Option<ObservedRecord>,
    /// resourceVersion of the last write; increases also over deletions, as that of a real server
    /// does.
    version: u64,
    /// Observer in real time. No node reads the oracle.
    oracle: Oracle,
}

/// Runs `elections` in the world of a seed.
pub(super) fn run(seed: u64, settings: Elections, elections: u64) -> ElectionCounts {
    let mut world = ElectionWorld::new(seed, settings);
    while world.oracle.tally.elections < elections {
        let Some(event) = world.queue.pop() else { break };
        world.handle(event);
    }
    world.oracle.tally
}

impl ElectionWorld {
    /// Creates a world of two to five nodes, each with clocks of a separate rate.
    ///
    /// All nodes start within two seconds, in an order that the seed decides.
    fn new(seed: u64, settings: Elections) -> Self {
        let rng = Rng::seeded(seed);
        let nodes = 2 + rng.below(4) as usize;
        // No clock is faster than real time: the promise is about the ratio of two clocks, and real
        // time only has to be as fast as the fastest clock.
        let slowest = 1.0 / settings.rate;
        let rate = || slowest + (1.0 - slowest) * rng.unit();
        // Five rates are drawn in any case: the draws that follow are the same for every number of
        // nodes.
        let (of_server, of_nodes) = (rate(), [(); 5].map(|()| rate()));
        let mut world = Self {
            settings,
            rng,
            rate: of_server,
            origin: Clock::system().now(),
            queue: EventQueue::default(),
            nodes: Vec::new(),
            stored: None,
            version: 0,
            oracle: Oracle::new(nodes),
        };
        for (index, rate) in of_nodes.into_iter().take(nodes).enumerate() {
            let (handover, own_records) = world.new_process(index, 0);
            world.nodes.push(ElectionNode {
                handover,
                own_records,
                life: 0,
                rate,
                lag: Duration::ZERO,
                wall: 0,
                frozen_until: 0,
                waiting_for: None,
                led: false,
                drains: false,
                busy_until: 0,
                doubt_until: 0,
            });
            world.start_process(0, index, 2 * SECOND);
        }
        world
    }

    /// Creates a process without state; some lend the lease, a few ask for the lease.
    fn new_process(&self, node: usize, life: u32) -> (Handover, OwnRecords) {
        let policy = HandoverPolicy { asks: self.random(8) == 0, lends: self.random(2) == 0 };
        let (own_records, identity) = (OwnRecords::default(), format!("{node}.{life}"));
        let machine = Machine::new(identity, self.settings.timing, own_records.clone());
        (Handover::new(machine, policy), own_records)
    }

    /// Schedules the first events of a node that was just started.
    fn start_process(&mut self, at: u64, node: usize, spread: u64) {
        let wake = at + self.random(spread);
        self.push(wake, node, EventKind::Wake);
        self.push(wake, node, EventKind::Write);
        let fault = at + self.random(40 * SECOND);
        self.push(fault, node, EventKind::Fault);
    }

    /// Draws a number below `bound`.
    fn random(&self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Adds an event of the node's present process.
    fn push(&mut self, at: u64, node: usize, kind: EventKind) {
        let life = self.nodes[node].life;
        self.queue.push(at, node, life, kind);
    }

    /// Whether the framework has this defect in these elections.
    fn is_broken(&self, defect: Defect) -> bool {
        self.settings.defect == Some(defect)
    }

    /// Reads the clocks of a node.
    ///
    /// The reading is the input of the election's machine; two of the defects change the reading
    /// instead of the machine, since the machine has no way to measure time wrongly.
    fn read_clocks(&self, node: usize, at: u64) -> ClockReading {
        let local = self.local(node, at);
        let wall = self.wall(node, at);
        // An offset, so that a clock that slept or was set back stays after the origin.
        let steady = self.origin + Duration::from_secs(10_000_000) + local - self.nodes[node].lag;
        match self.settings.defect {
            Some(Defect::WallClock) => {
                let moved = Duration::from_secs(self.nodes[node].wall.unsigned_abs());
                let whole = steady + self.nodes[node].lag;
                let read = if self.nodes[node].wall < 0 { whole - moved } else { whole + moved };
                ClockReading::new(read, None, Timestamp::UNIX_EPOCH)
            }
            // Without the reading that counts sleep, nothing but the lagging clock is left.
            Some(Defect::SleepNotCounted) => ClockReading::new(steady, None, Timestamp::UNIX_EPOCH),
            _ => ClockReading::new(steady, Some(local), wall),
        }
    }

    /// Returns the time that a node's clock has run, sleep included.
    fn local(&self, node: usize, at: u64) -> Duration {
        Duration::from_micros((at as f64 * self.nodes[node].rate) as u64)
    }

    /// Returns the wall clock of a node.
    fn wall(&self, node: usize, at: u64) -> Timestamp {
        let local = self.local(node, at);
        Timestamp::UNIX_EPOCH + local + SignedDuration::from_secs(self.nodes[node].wall)
    }

    /// Handles an event: at the server, at a running node, or later at a frozen node.
    fn handle(&mut self, event: SimulatedEvent) {
        let SimulatedEvent { at, node, life, kind, .. } = event;
        match kind {
            // The network and the server are not affected by a crash of the node; all other events
            // of the crashed process are void.
            EventKind::Execute { id, request, sent } => {
                self.execute(at, node, life, id, request, sent)
            }
            // Counted also when the process is gone: the server executes every write that has
            // arrived.
            EventKind::Begin { until } => self.oracle.write_begins(at, node, until),
            // An answer or a timer of a process that crashed: no code is left to receive the event.
            _ if life != self.nodes[node].life => {}
            // Delivered in the old order after the freeze, all at a single moment: a process that
            // wakes up finds answers and timers due at the same time.
            kind if at < self.nodes[node].frozen_until => {
                self.push(self.nodes[node].frozen_until, node, kind);
            }
            EventKind::Write => self.write(at, node),
            kind => {
                self.step(at, node, kind);
                self.observe(at, node);
            }
        }
    }

    /// Handles an event of a node's election.
    ///
    /// Answers go through the framework's own `Handover`, and so does the request that follows at
    /// once.
    fn step(&mut self, at: u64, node: usize, kind: EventKind) {
        let (id, request, sent, answer) = match kind {
            EventKind::Fault => return self.inject_fault(at, node),
            EventKind::Release => return self.release(at, node),
            EventKind::Wake => return self.wake(at, node),
            EventKind::Response { id, request, sent, answer, conflict } => {
                let answer = match answer {
                    _ if conflict => LockResponse::Conflict,
                    Some(lease) => LockResponse::Lease(*lease),
                    None => LockResponse::Missing,
                };
                (id, request, sent, answer)
            }
            EventKind::GiveUp { id, request, sent } => (id, request, sent, LockResponse::Failed),
            EventKind::Execute { .. } | EventKind::Write | EventKind::Begin { .. } => return,
        };
        // An answer that comes after the timeout, or a timeout after the answer.
        if self.nodes[node].waiting_for != Some(id) {
            return;
        }
        self.nodes[node].waiting_for = None;
        let (now, wall) = (self.read_clocks(node, at), self.wall(node, at));
        // The server may have stored the renewal directly after the node sent it: other nodes count
        // from then.
        let counted = if self.is_broken(Defect::CountedFromAnswer) { at } else { sent };
        let sent = self.read_clocks(node, counted);
        let next = self.nodes[node].handover.answered(&request, answer, &sent, &now, wall);
        self.nodes[node].handover.machine.expire(&now);
        if self.nodes[node].handover.is_asked() {
            self.drain(at, node);
        }
        match next {
            Some(request) => self.send(at, node, request),
            None => self.schedule_attempt(at, node, &now),
        }
    }

    /// Starts an attempt of a node.
    fn wake(&mut self, at: u64, node: usize) {
        let (now, wall) = (self.read_clocks(node, at), self.wall(node, at));
        self.nodes[node].handover.machine.expire(&now);
        self.observe(at, node);
        // The machine assumes that no lease was held before, so that leadership begins as soon as
        // the machine has created a lock.
        if self.is_broken(Defect::MakersDoNotWait) {
            self.nodes[node].own_records.set_unheld_since(now);
        }
        let request = self.nodes[node].handover.attempt(&now, wall);
        self.send(at, node, request);
    }

    /// Schedules the next attempt of a node, no later than the end of the node's lease.
    fn schedule_attempt(&mut self, at: u64, node: usize, now: &ClockReading) {
        // Jitter of up to a fifth: nodes that started together do not stay in step.
        let pause = self.settings.timing.retry_period.mul_f64(1.0 + 0.2 * self.rng.unit());
        let left = self.nodes[node].handover.machine.time_left(now).unwrap_or(pause);
        let pause = pause.min(left).as_micros() as u64;
        // Up to a millisecond for the timer and the scheduler.
        let late = self.random(1_000);
        self.push(at + pause + late, node, EventKind::Wake);
    }

    /// Draws the delay of a message: mostly some milliseconds, sometimes up to twice the lease
    /// duration; `None` when the message is lost.
    ///
    /// One message of 40 is lost, and two are late enough to arrive after the lease has ended.
    fn delay(&mut self) -> Option<u64> {
        let longest = 2 * self.settings.timing.lease_duration.as_micros() as u64;
        match self.random(40) {
            0 => {
                self.oracle.tally.lost += 1;
                None
            }
            1 | 2 => Some(self.random(longest)),
            3 | 4 => Some(self.random(SECOND)),
            _ => Some(1 + self.random(30_000)),
        }
    }

    /// Sends a request about the lease, and schedules the timeout.
    fn send(&mut self, at: u64, node: usize, request: LockRequest) {
        let id = self.queue.number();
        self.nodes[node].waiting_for = Some(id);
        let limit = self.settings.timing.request_limit().as_micros() as u64;
        if let Some(delay) = self.delay() {
            self.push(
                at + delay,
                node,
                EventKind::Execute { id, request: request.clone(), sent: at },
            );
        }
        // Also when the answer comes: the number of the request decides which of the two is first,
        // and the other is dropped.
        self.push(at + limit, node, EventKind::GiveUp { id, request, sent: at });
    }

    /// Executes a request at the server, and sends the answer.
    ///
    /// As a Kubernetes API server does with optimistic concurrency: a replacement counts only if
    /// the request names the stored version, a creation only if there is no Lease.
    fn execute(
        &mut self,
        at: u64,
        node: usize,
        life: u32,
        id: u64,
        request: LockRequest,
        sent: u64,
    ) {
        let stored = self.stored.as_ref().map(|lease| lease.version.as_str());
        let careless = self.is_broken(Defect::NoVersions);
        let write = match &request {
            LockRequest::Read => None,
            LockRequest::Create(record) => Some((stored.is_none(), record)),
            LockRequest::Replace { version, record } => {
                Some((careless || stored == Some(version.as_str()), record))
            }
        };
        let conflict = matches!(write, Some((false, _)));
        self.oracle.tally.conflicts += u64::from(conflict);
        if let Some((true, record)) = write {
            let record = record.clone();
            self.version += 1;
            self.stored = Some(ObservedRecord::new(record, self.version.to_string()));
        }
        // Taken now, delivered later: the answer may be out of date on arrival.
        let answer = self.stored.clone().map(Box::new);
        if let Some(delay) = self.delay() {
            let kind = EventKind::Response { id, request, sent, answer, conflict };
            self.queue.push(at + delay, node, life, kind);
        }
    }

    /// Attempts a write by the work of a node; the gate admits or refuses it.
    ///
    /// Attempts come every second on average, by leaders and by all others; those of the others are
    /// refused, which checks that the gate is shut.
    fn write(&mut self, at: u64, node: usize) {
        let next = 1 + self.random(2 * SECOND);
        self.push(at + next, node, EventKind::Write);
        if self.nodes[node].drains {
            return;
        }
        let held = self.nodes[node].handover.machine.held();
        let left = if self.is_broken(Defect::GateNotChecked) {
            // A leader that trusts its last notification writes with a whole timeout, however
            // little of the lease is left.
            held.map(|_| self.settings.timing.request_limit())
        } else {
            let now = self.read_clocks(node, at);
            worth_sending(held.and_then(|sent| remaining(&self.settings.timing, &sent, &now)))
        };
        let Some(left) = left else {
            self.oracle.tally.refused += 1;
            return;
        };
        // The gate's decision and the sending are a single step: a pause between the two is part of
        // the way to the server.
        self.begin_write(at, node, left);
    }

    /// Sends a write while `left` of the lease is left by the node's clock, and schedules its
    /// execution. The server counts the timeout from the arrival, by the server's clock.
    fn begin_write(&mut self, at: u64, node: usize, left: Duration) {
        let micros = |time: Duration, rate: f64| (time.as_micros() as f64 / rate) as u64;
        // Whole seconds, as the `timeout` parameter of a request has them.
        let timeout = Duration::from_secs(left.as_secs().max(1));
        let longest = micros(self.settings.pause + self.settings.late, 1.0);
        let begin = at + self.random(1 + longest);
        let end = begin + micros(timeout, self.rate);
        // Most writes end at once; some last as long as they may.
        let quick = begin + 1 + self.random(50_000);
        let until = if self.random(4) == 0 { end } else { quick.min(end) };
        self.push(begin, node, EventKind::Begin { until });
        let state = &mut self.nodes[node];
        // No node waits for longer than the duration of its lease.
        let waits_until = at + micros(left, state.rate);
        // A caller that drops the future, as a `select!` does: the request is under way all the
        // same.
        let given_up = self.rng.below(8) == 0;
        let answered = if given_up { at + self.rng.below(1 + until - at) } else { until };
        state.busy_until = state.busy_until.max(answered.min(waits_until));
        // The node stopped waiting before the execution ended.
        if answered.min(waits_until) < until {
            let doubt = at + micros(timeout + self.settings.timing.margin, state.rate);
            state.doubt_until = state.doubt_until.max(doubt);
        }
    }

    /// Begins the drain of a node: the node begins no more writes, and releases the lease when all
    /// its writes have ended.
    fn drain(&mut self, at: u64, node: usize) {
        if self.nodes[node].handover.machine.held().is_none() || self.nodes[node].drains {
            return;
        }
        self.nodes[node].drains = true;
        let ended = if self.is_broken(Defect::ReleasedEarly) {
            at
        } else {
            at.max(self.nodes[node].busy_until)
        };
        // An event and not a call: the writes that are under way end first.
        self.push(ended, node, EventKind::Release);
    }

    /// Ends the work of a node. A write that was given up is waited for, unless that takes too
    /// long.
    fn release(&mut self, at: u64, node: usize) {
        let forgets = [Defect::ReleasedEarly, Defect::DroppedWritesForgotten];
        let is_careful = self.settings.defect.is_none_or(|defect| !forgets.contains(&defect));
        let doubt = self.nodes[node].doubt_until;
        let is_held = self.nodes[node].handover.machine.held().is_some();
        if is_careful && doubt > at {
            // A write that is uncertain for a short time is waited for; otherwise the lease is left
            // to expire, since a release would let the next leader write beside the unanswered
            // write.
            if doubt <= at + WRITE_DRAIN.as_micros() as u64 {
                return self.push(doubt, node, EventKind::Release);
            }
            self.oracle.tally.left += u64::from(is_held);
        } else if is_held {
            let wall = self.wall(node, at);
            if is_careful {
                // With a defect the horizon stays: the node only believes that the work has ended.
                self.oracle.work_has_ended(at, node);
            }
            let request = self.nodes[node].handover.release(wall);
            if let Some(request @ LockRequest::Replace { .. }) = request
                && let Some(delay) = self.delay()
            {
                self.oracle.tally.releases += 1;
                // No node waits for a request of number 0: the answer to a release changes nothing.
                self.push(at + delay, node, EventKind::Execute { id: 0, request, sent: at });
            }
        }
        self.restart(at, node, SECOND);
    }

    /// Starts a new process under a new identity, `long` microseconds later.
    ///
    /// Nothing of the process survives: the framework keeps no state on disk.
    fn restart(&mut self, at: u64, node: usize, long: u64) {
        let process = self.new_process(node, self.nodes[node].life + 1);
        let state = &mut self.nodes[node];
        (state.handover, state.own_records) = process;
        state.life += 1;
        state.waiting_for = None;
        state.led = false;
        state.drains = false;
        (state.busy_until, state.doubt_until) = (0, 0);
        self.start_process(at + long, node, 1);
    }

    /// Reports to the oracle, after every step of the node, whether the node's gate is open.
    ///
    /// An election is counted when the gate opens, and not when the Lease is written: a node may
    /// acquire a lease whose validity has already ended by the node's clock.
    fn observe(&mut self, at: u64, node: usize) {
        let now = self.read_clocks(node, at);
        let held = self.nodes[node].handover.machine.held();
        let Some(left) = held.and_then(|sent| remaining(&self.settings.timing, &sent, &now)) else {
            self.nodes[node].led = false;
            return;
        };
        if !std::mem::replace(&mut self.nodes[node].led, true) {
            self.oracle.tally.elections += 1;
        }
        // The server executes no write for longer than was left, and its clock may be slower.
        let last = (left.as_micros() as f64 / self.rate.min(self.nodes[node].rate)) as u64;
        let way = (self.settings.pause + self.settings.late).as_micros() as u64;
        self.oracle.gate_is_open(at, node, at + last + way);
    }
}
