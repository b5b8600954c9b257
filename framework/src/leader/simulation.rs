//! Thousands of elections under delays, pauses, sleeping machines, crashes and clocks that run at
//! different rates: no two leaders may ever be able to have a write executing at the same time.
//!
//! Real time is counted in microseconds; every node has clocks of its own. The server is a versioned
//! record. When a node's gate is open, its *horizon* is the last moment at which a write that it
//! admitted can still be executing; the property is that no gate opens before the horizons of all
//! others have passed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::gate::remaining;
use super::machine::{Answer, Ask, Machine, Written};
use super::record::ObservedRecord;
use super::settings::Timing;
use crate::clock::Mark;
use crate::entropy::Entropy;

const SECOND: u64 = 1_000_000;

/// What the world does to the nodes, and where the machine is broken on purpose.
#[derive(Clone, Copy)]
struct World {
    timing: Timing,
    /// Clocks run at rates between 1/`rate` and 1.
    rate: f64,
    /// Longest pause between the gate and the socket.
    pause: Duration,
    /// Validity is counted from the answer instead of from before the request.
    count_from_answer: bool,
}

impl Default for World {
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            rate: 1.15,
            pause: Duration::ZERO,
            count_from_answer: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    Wake,
    Execute { id: u64, ask: Ask, sent: u64 },
    Answer { id: u64, ask: Ask, sent: u64, answer: Option<ObservedRecord>, conflict: bool },
    GiveUp { id: u64, ask: Ask, sent: u64 },
    Disturb,
}

struct Event {
    at: u64,
    order: u64,
    node: usize,
    life: u32,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

struct Node {
    machine: Machine,
    life: u32,
    rate: f64,
    /// How far the monotonic clock is behind, because the machine slept.
    lag: Duration,
    /// How far the wall clock was moved, in seconds.
    wall: i64,
    frozen_until: u64,
    waiting_for: Option<u64>,
    led: bool,
    horizon: u64,
}

struct Simulation {
    world: World,
    entropy: Entropy,
    origin: Instant,
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
    nodes: Vec<Node>,
    stored: Option<ObservedRecord>,
    version: u64,
    elections: usize,
    overlap: Option<String>,
}

impl Simulation {
    fn new(seed: u64, world: World) -> Self {
        let entropy = Entropy::seeded(seed);
        let mut simulation = Self {
            world,
            origin: Instant::now(),
            events: BinaryHeap::new(),
            order: 0,
            nodes: Vec::new(),
            stored: None,
            version: 0,
            elections: 0,
            overlap: None,
            entropy,
        };
        for index in 0..2 + simulation.entropy.below(4) as usize {
            let slowest = 1.0 / world.rate;
            let rate = slowest + (1.0 - slowest) * simulation.entropy.unit();
            simulation.nodes.push(Node {
                machine: Machine::new(format!("{index}.0"), world.timing, Written::default()),
                life: 0,
                rate,
                lag: Duration::ZERO,
                wall: 0,
                frozen_until: 0,
                waiting_for: None,
                led: false,
                horizon: 0,
            });
            let (wake, disturb) = (simulation.random(2 * SECOND), simulation.random(40 * SECOND));
            simulation.push(wake, index, What::Wake);
            simulation.push(disturb, index, What::Disturb);
        }
        simulation
    }

    fn random(&self, bound: u64) -> u64 {
        self.entropy.below(bound)
    }

    fn push(&mut self, at: u64, node: usize, what: What) {
        self.order += 1;
        let life = self.nodes[node].life;
        self.events.push(Reverse(Event { at, order: self.order, node, life, what }));
    }

    fn mark(&self, node: usize, at: u64) -> Mark {
        let node = &self.nodes[node];
        let local = Duration::from_micros((at as f64 * node.rate) as u64);
        // Every node has lived long enough before the simulation to have slept.
        let steady = self.origin + Duration::from_secs(1_000_000) + local - node.lag;
        let wall = Timestamp::UNIX_EPOCH + local + jiff::SignedDuration::from_secs(node.wall);
        Mark::new(steady, Some(local), wall)
    }

    fn wall(&self, node: usize, at: u64) -> Timestamp {
        let local = Duration::from_micros((at as f64 * self.nodes[node].rate) as u64);
        Timestamp::UNIX_EPOCH + local + jiff::SignedDuration::from_secs(self.nodes[node].wall)
    }

    /// Mostly some milliseconds; sometimes up to twice the lease duration.
    fn delay(&self) -> u64 {
        match self.random(20) {
            0 => self.random(2 * self.world.timing.lease_duration.as_micros() as u64),
            1 => self.random(SECOND),
            _ => 1 + self.random(30_000),
        }
    }

    fn run(&mut self, elections: usize) {
        while self.elections < elections && self.overlap.is_none() {
            let Some(Reverse(event)) = self.events.pop() else { return };
            let Event { at, node, life, what, .. } = event;
            // The network lives on when a node dies; everything else of that life is gone.
            if let What::Execute { id, ask, sent } = what {
                self.execute(at, node, life, id, ask, sent);
                continue;
            }
            if life != self.nodes[node].life {
                continue;
            }
            if at < self.nodes[node].frozen_until {
                self.push(self.nodes[node].frozen_until, node, what);
                continue;
            }
            self.step(at, node, what);
            self.observe(at, node);
        }
    }

    fn step(&mut self, at: u64, node: usize, what: What) {
        let now = self.mark(node, at);
        let wall = self.wall(node, at);
        let (id, ask, sent, answer) = match what {
            What::Disturb => return self.disturb(at, node),
            What::Wake => {
                self.nodes[node].machine.expire(&now);
                self.observe(at, node);
                let ask = self.nodes[node].machine.attempt(&now, wall);
                return self.send(at, node, ask);
            }
            What::Answer { id, ask, sent, answer, conflict } => {
                let answer = match answer {
                    _ if conflict => Answer::Conflict,
                    Some(lease) => Answer::Lease(lease),
                    None => Answer::Missing,
                };
                (id, ask, sent, answer)
            }
            What::GiveUp { id, ask, sent } => (id, ask, sent, Answer::Failed),
            What::Execute { .. } => return,
        };
        if self.nodes[node].waiting_for != Some(id) {
            return;
        }
        self.nodes[node].waiting_for = None;
        let counted = if self.world.count_from_answer { at } else { sent };
        let sent = self.mark(node, counted);
        let next = self.nodes[node].machine.answered(&ask, answer, &sent, &now, wall);
        self.nodes[node].machine.expire(&now);
        match next {
            Some(ask) => self.send(at, node, ask),
            None => self.rest(at, node, &now),
        }
    }

    fn rest(&mut self, at: u64, node: usize, now: &Mark) {
        let pause = self.world.timing.retry_period.mul_f64(1.0 + 0.2 * self.entropy.unit());
        let left = self.nodes[node].machine.time_left(now).unwrap_or(pause);
        let pause = pause.min(left).as_micros() as u64;
        self.push(at + pause + self.random(1_000), node, What::Wake);
    }

    fn send(&mut self, at: u64, node: usize, ask: Ask) {
        self.order += 1;
        let id = self.order;
        self.nodes[node].waiting_for = Some(id);
        let limit = self.world.timing.request_limit().as_micros() as u64;
        let arrive = at + self.delay();
        self.push(arrive, node, What::Execute { id, ask: ask.clone(), sent: at });
        self.push(at + limit, node, What::GiveUp { id, ask, sent: at });
    }

    fn execute(&mut self, at: u64, node: usize, life: u32, id: u64, ask: Ask, sent: u64) {
        let stored = self.stored.as_ref().map(|lease| lease.version.as_str());
        let write = match &ask {
            Ask::Read => None,
            Ask::Create(record) => Some((stored.is_none(), record)),
            Ask::Replace { version, record } => Some((stored == Some(version.as_str()), record)),
        };
        let conflict = matches!(write, Some((false, _)));
        if let Some((true, record)) = write {
            self.version += 1;
            let lease =
                ObservedRecord { record: record.clone(), version: self.version.to_string() };
            self.stored = Some(lease);
        }
        let answer = self.stored.clone();
        let arrive = at + self.delay();
        self.order += 1;
        let what = What::Answer { id, ask, sent, answer, conflict };
        self.events.push(Reverse(Event { at: arrive, order: self.order, node, life, what }));
    }

    /// Freezes, puts to sleep, crashes, releases, or moves a wall clock.
    fn disturb(&mut self, at: u64, node: usize) {
        self.push(at + self.random(60 * SECOND), node, What::Disturb);
        let long = self.random(45 * SECOND);
        match self.random(6) {
            0 => self.nodes[node].frozen_until = at + long,
            1 => {
                self.nodes[node].frozen_until = at + long;
                let local = long as f64 * self.nodes[node].rate;
                self.nodes[node].lag += Duration::from_micros(local as u64);
            }
            2 => self.restart(at, node, long),
            3 => self.nodes[node].wall += self.entropy.below(200) as i64 - 100,
            _ => self.release(at, node),
        }
    }

    fn restart(&mut self, at: u64, node: usize, long: u64) {
        let timing = self.world.timing;
        let state = &mut self.nodes[node];
        state.life += 1;
        state.machine = Machine::new(format!("{node}.{}", state.life), timing, Written::default());
        state.waiting_for = None;
        state.led = false;
        self.push(at + long, node, What::Wake);
        self.push(at + long + self.random(60 * SECOND), node, What::Disturb);
    }

    /// Ends all work, then gives the lease back; the next campaign begins afresh.
    fn release(&mut self, at: u64, node: usize) {
        if self.nodes[node].machine.held().is_none() {
            return;
        }
        let wall = self.wall(node, at);
        self.nodes[node].horizon = at;
        let ask = self.nodes[node].machine.release(wall);
        self.restart(at, node, SECOND);
        if let Some(ask @ Ask::Replace { .. }) = ask {
            let arrive = at + self.delay();
            self.push(arrive, node, What::Execute { id: 0, ask, sent: at });
        }
    }

    /// Checks the property after every step of a node.
    fn observe(&mut self, at: u64, node: usize) {
        let now = self.mark(node, at);
        let held = self.nodes[node].machine.held();
        let Some(left) = held.and_then(|sent| remaining(&self.world.timing, &sent, &now)) else {
            self.nodes[node].led = false;
            return;
        };
        if !std::mem::replace(&mut self.nodes[node].led, true) {
            self.elections += 1;
        }
        let last = (left.as_micros() as f64 / self.nodes[node].rate) as u64;
        let horizon = at + last + self.world.pause.as_micros() as u64;
        let state = &mut self.nodes[node];
        state.horizon = state.horizon.max(horizon);
        for (other, state) in self.nodes.iter().enumerate() {
            if other != node && state.horizon > at {
                self.overlap = Some(format!(
                    "at {at} µs node {node} may write while node {other} may until {}",
                    state.horizon
                ));
            }
        }
    }
}

fn simulate(seed: u64, world: World, elections: usize) -> (usize, Option<String>) {
    let mut simulation = Simulation::new(seed, world);
    simulation.run(elections);
    (simulation.elections, simulation.overlap)
}

/// How many elections a test holds; more with `WINDLASS_ELECTIONS`.
fn elections(default: usize) -> usize {
    std::env::var("WINDLASS_ELECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn hold_elections(world: World, count: usize) {
    let (mut held, mut seed) = (0, 0);
    while held < count {
        let (elections, overlap) = simulate(seed, world, 50);
        assert_eq!(overlap, None, "seed {seed}");
        assert!(elections > 0, "seed {seed}: nobody ever led");
        held += elections;
        seed += 1;
    }
}

#[test]
fn l5_no_two_leaders_can_write_at_once_whatever_the_rates_within_1_15() {
    hold_elections(World::default(), elections(6_000));
}

#[test]
fn l5_no_two_leaders_can_write_at_once_with_pauses_of_1_7_s_before_the_socket() {
    let pause = Duration::from_millis(1_700);
    hold_elections(World { rate: 1.02, pause, ..World::default() }, elections(6_000));
}

#[test]
fn l5_a_lease_without_a_margin_is_found_unsafe() {
    let timing = Timing { margin: Duration::ZERO, ..Timing::default() };
    let world = World { timing, ..World::default() };
    assert!((0..200).any(|seed| simulate(seed, world, 50).1.is_some()));
}

#[test]
fn l2_counting_validity_from_the_answer_is_found_unsafe() {
    let world = World { count_from_answer: true, ..World::default() };
    assert!((0..200).any(|seed| simulate(seed, world, 50).1.is_some()));
}

#[test]
fn the_same_seed_holds_the_same_elections() {
    let orders = || {
        let mut simulation = Simulation::new(3, World::default());
        simulation.run(40);
        (simulation.order, simulation.version, simulation.elections)
    };
    assert_eq!(orders(), orders());
}
