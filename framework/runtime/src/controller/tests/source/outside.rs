//! Causes from outside of the cluster: triggers, polls, timers.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::controller::{Poll, PollHandle, Timer, Trigger};

const SECOND: Duration = Duration::from_secs(1);

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("shop"), name)
}

#[tokio::test(start_paused = true)]
async fn a_triggered_object_is_reconciled_and_one_that_does_not_exist_is_counted() {
    let (world, notes) = (World::start().await, Noting::default());
    let trigger = Trigger::new("hook");
    let builder = ControllerBuilder::<Noting>::new().triggered_by(&trigger);
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    notes.noted();
    trigger.send(key("home")).await;
    trigger.try_send(key("nobody")).expect("there is room");
    running.settled().await;
    assert_eq!(notes.noted(), ["home: trigger hook"]);
    let metrics = &world.client.environment().metrics;
    let keys = |result| metrics.counted(&names::TRIGGER_KEYS, &["site", "hook", result]);
    assert_eq!((keys("added"), keys("absent")), (1, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn keys_sent_before_the_start_are_held_and_keys_beyond_the_capacity_are_refused() {
    let (world, notes) = (World::start().await, Noting::default());
    world.create("home", "a").await;
    world.create("other", "a").await;
    let trigger = Trigger::with_capacity("hook", 2);
    trigger.try_send(key("home")).expect("there is room");
    let builder = ControllerBuilder::<Noting>::new().triggered_by(&trigger);
    trigger.try_send(key("home")).expect("the same once more");
    trigger.try_send(key("other")).expect("there is room");
    let refused = trigger.try_send(key("third")).unwrap_err().to_string();
    for part in ["trigger hook cannot take shop/third", "holds 2 keys"] {
        assert!(refused.contains(part), "{refused}");
    }
    let sending = tokio::spawn({
        let trigger = trigger.clone();
        async move { trigger.send(key("third")).await }
    });
    tokio::time::sleep(SECOND).await;
    assert!(!sending.is_finished());
    let running = world.run(builder.build(notes.clone())).await;
    sending.await.expect("there is room now");
    let mut noted = notes.noted();
    noted.sort();
    assert_eq!(noted, ["home: started, trigger hook", "other: started, trigger hook"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_waits_for_a_controller_returns_when_it_is_dropped() {
    let trigger = Trigger::with_capacity("hook", 1);
    let never_started =
        ControllerBuilder::<Noting>::new().triggered_by(&trigger).build(Noting::default());
    trigger.send(key("home")).await;
    let sending = tokio::spawn({
        let trigger = trigger.clone();
        async move { trigger.send(key("other")).await }
    });
    tokio::time::sleep(SECOND).await;
    assert!(!sending.is_finished());
    drop(never_started);
    sending.await.expect("no controller is left to wait for");
}

/// Each run stands for a term of leadership.
#[tokio::test(start_paused = true)]
async fn a_trigger_accepts_keys_between_two_runs_and_enqueues_them_in_every_controller() {
    let (world, one, two) = (World::start().await, Noting::default(), Noting::default());
    world.create("home", "a").await;
    let trigger = Trigger::new("hook");
    let other =
        ControllerBuilder::<Noting>::new().name("other").triggered_by(&trigger).build(two.clone());
    let other = world.run(other).await;
    let handle = ControllerBuilder::<Noting>::new().triggered_by(&trigger).build(one.clone());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let stop = CancellationToken::new();
    tokio::spawn({
        let (informers, stop) = (informers.clone(), stop.clone());
        async move { informers.run(stop).await }
    });
    informers.synced().await;
    for _ in 0..2 {
        trigger.send(key("home")).await;
        let ended = CancellationToken::new();
        let run = ControllerRun {
            client: world.client.clone(),
            informers: informers.clone(),
            stop: ended.clone(),
            drain: SECOND,
        };
        let handle = Arc::clone(&handle);
        let work = tokio::spawn(async move { handle.run(run).await });
        tokio::time::sleep(SECOND).await;
        ended.cancel();
        assert!(work.await.expect("no panic"));
        // Each term reconciles all objects: the leader in between may have stopped halfway.
        assert_eq!(one.noted(), ["home: started, trigger hook"]);
    }
    assert_eq!(two.noted(), ["home: started", "home: trigger hook", "home: trigger hook"]);
    stop.cancel();
    other.stop().await;
}

/// An external system: values and behaviour.
#[derive(Clone, Default)]
struct Outside {
    values: Arc<Mutex<BTreeMap<ObjectKey, u32>>>,
    lists: Arc<AtomicU32>,
    fails: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

impl Outside {
    fn poll(&self) -> PollHandle<u32> {
        let outside = self.clone();
        Poll::every(30 * SECOND, "outside").deadline(5 * SECOND).list(move || {
            let outside = outside.clone();
            async move {
                outside.lists.fetch_add(1, Ordering::SeqCst);
                if outside.hangs.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                if outside.fails.load(Ordering::SeqCst) {
                    return Err("the outside system is away".into());
                }
                Ok(outside.values.lock().clone())
            }
        })
    }

    fn set(&self, name: &str, value: u32) {
        self.values.lock().insert(key(name), value);
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_enqueues_objects_whose_value_appeared_changed_or_disappeared() {
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    for name in ["one", "two", "three"] {
        world.create(name, "a").await;
    }
    outside.set("one", 1);
    outside.set("nobody", 1);
    let polled = outside.poll();
    let running =
        world.run(ControllerBuilder::<Noting>::new().polls(&polled).build(notes.clone())).await;
    let mut first = notes.noted();
    first.sort();
    assert_eq!(first, ["one: started, poll outside", "three: started", "two: started"]);
    assert_eq!(polled.get(&key("one")).as_deref(), Some(&1), "listed before the first reconcile");
    outside.set("two", 2);
    tokio::time::sleep(40 * SECOND).await;
    assert_eq!(notes.noted(), ["two: poll outside"]);
    outside.set("one", 7);
    outside.values.lock().remove(&key("two"));
    polled.refresh();
    running.settled().await;
    let mut woken = notes.noted();
    woken.sort();
    assert_eq!(woken, ["one: poll outside", "two: poll outside"]);
    assert_eq!(polled.get(&key("two")), None);
    tokio::time::sleep(120 * SECOND).await;
    assert!(notes.noted().is_empty(), "an unchanged value enqueues nothing");
    running.stop().await;
}

/// Each reconcile may request a poll.
#[tokio::test(start_paused = true)]
async fn polls_that_are_asked_for_keep_a_distance() {
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    let polled = outside.poll();
    let running =
        world.run(ControllerBuilder::<Noting>::new().polls(&polled).build(notes.clone())).await;
    for (fails, most) in [(false, 11), (true, 4)] {
        outside.fails.store(fails, Ordering::SeqCst);
        let before = outside.lists.load(Ordering::SeqCst);
        for _ in 0..100 {
            polled.refresh();
            tokio::time::sleep(SECOND / 10).await;
        }
        let lists = outside.lists.load(Ordering::SeqCst) - before;
        assert!((1..=most).contains(&lists), "{lists} in ten seconds, failing {fails}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_fails_or_hangs_keeps_its_values_and_comes_more_rarely() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    world.create("one", "a").await;
    outside.set("one", 1);
    let polled = outside.poll();
    let running =
        world.run(ControllerBuilder::<Noting>::new().polls(&polled).build(notes.clone())).await;
    notes.noted();
    outside.fails.store(true, Ordering::SeqCst);
    let before = outside.lists.load(Ordering::SeqCst);
    tokio::time::sleep(1800 * SECOND).await;
    let tries = outside.lists.load(Ordering::SeqCst) - before;
    assert!((6..=16).contains(&tries), "{tries} tries in half an hour");
    assert_eq!(polled.get(&key("one")).as_deref(), Some(&1));
    assert!(polled.has_listed() && polled.error().is_some_and(|error| error.contains("is away")));
    let polls = |result| {
        let labels = ["site", "outside", result];
        world.client.environment().metrics.counted(&names::POLLS, &labels)
    };
    assert_eq!(polls("error"), u64::from(tries));
    assert!(!logged.with("a poll failed").is_empty());
    outside.fails.store(false, Ordering::SeqCst);
    outside.hangs.store(true, Ordering::SeqCst);
    tokio::time::sleep(1800 * SECOND).await;
    assert!(polls("timeout") > 1, "it is dropped and tried again");
    outside.hangs.store(false, Ordering::SeqCst);
    outside.set("one", 2);
    tokio::time::sleep(310 * SECOND).await;
    assert_eq!(notes.noted(), ["one: poll outside"]);
    assert_eq!(polled.error(), None);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_not_waited_for_longer_than_its_deadline() {
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    world.create("one", "a").await;
    outside.hangs.store(true, Ordering::SeqCst);
    let polled = outside.poll();
    let handle = ControllerBuilder::<Noting>::new().polls(&polled).build(notes.clone());
    let running = world.start_only(handle).await;
    tokio::time::sleep(4 * SECOND).await;
    assert!(notes.noted().is_empty());
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(notes.noted(), ["one: started"]);
    assert!(!polled.has_listed());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_with_two_controllers_is_refused() {
    let (world, polled) = (World::start().await, Outside::default().poll());
    let _first = ControllerBuilder::<Noting>::new().polls(&polled).build(Noting::default());
    let second = ControllerBuilder::<Noting>::new().polls(&polled).build(Noting::default());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    let refused = second.attach(&informers).unwrap_err();
    assert_eq!(refused.kind(), windlass_core::ErrorKind::Usage);
    assert!(refused.to_string().contains("poll outside"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_timer_wakes_each_object_at_its_interval_and_ends_with_it() {
    let (world, notes) = (World::start().await, Noting::default());
    let timer = Timer::every(60 * SECOND, "probe").initial_delay(5 * SECOND);
    let running =
        world.run(ControllerBuilder::<Noting>::new().timer(timer).build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    tokio::time::sleep(12 * SECOND).await;
    assert_eq!(notes.noted(), ["home: timer probe"], "the initial delay");
    // Other reconciles do not move the timer.
    tokio::time::sleep(40 * SECOND).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    tokio::time::sleep(20 * SECOND).await;
    assert_eq!(notes.noted(), ["home: timer probe"]);
    tokio::time::sleep(660 * SECOND).await;
    let rung = notes.noted().len();
    assert!((9..=11).contains(&rung), "{rung} times in eleven minutes");
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    notes.noted();
    let reconciles = running.handle.state().reconciles;
    tokio::time::sleep(660 * SECOND).await;
    assert_eq!(running.handle.state().reconciles, reconciles, "not even looked up");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_timer_waits_until_the_spec_was_left_alone() {
    let (world, notes) = (World::start().await, Noting::default());
    let timer = Timer::every(60 * SECOND, "settle").initial_delay(SECOND).idle(30 * SECOND);
    let running =
        world.run(ControllerBuilder::<Noting>::new().timer(timer).build(notes.clone())).await;
    world.create("home", "a").await;
    for n in 0..4 {
        tokio::time::sleep(20 * SECOND).await;
        world.patch("home", json!({ "spec": { "host": format!("h{n}") } })).await;
    }
    // Metadata are not part of the spec.
    tokio::time::sleep(20 * SECOND).await;
    world.patch("home", json!({ "metadata": { "labels": { "by": "us" } } })).await;
    running.settled().await;
    assert!(notes.noted().iter().all(|note| note == "home: changed"));
    tokio::time::sleep(12 * SECOND).await;
    assert_eq!(notes.noted(), ["home: timer settle"]);
    running.stop().await;
}

/// Runs the controller once, as in a term of leadership.
async fn term(world: &World, handle: &Arc<dyn ErasedController>, caches: &InformerRegistry) {
    let ended = CancellationToken::new();
    let run = ControllerRun {
        client: world.client.clone(),
        informers: caches.clone(),
        stop: ended.clone(),
        drain: SECOND,
    };
    let handle = Arc::clone(handle);
    let work = tokio::spawn(async move { handle.run(run).await });
    tokio::time::sleep(10 * SECOND).await;
    ended.cancel();
    assert!(work.await.expect("no panic"));
}

async fn caches(world: &World, handle: &Arc<dyn ErasedController>) -> InformerRegistry {
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let running = informers.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    informers.synced().await;
    informers
}

#[tokio::test(start_paused = true)]
async fn values_of_an_earlier_term_do_not_pass_for_listed_in_this_one() {
    let (world, outside) = (World::start().await, Outside::default());
    world.create("one", "a").await;
    outside.set("one", 1);
    let polled = outside.poll();
    let handle = ControllerBuilder::<Noting>::new().polls(&polled).build(Noting::default());
    let caches = caches(&world, &handle).await;
    term(&world, &handle, &caches).await;
    assert!(polled.has_listed());
    let listed = polled.listed_at().expect("a time");
    tokio::time::sleep(6 * 3600 * SECOND).await;
    outside.hangs.store(true, Ordering::SeqCst);
    term(&world, &handle, &caches).await;
    assert!(!polled.has_listed(), "not in this term");
    assert_eq!((polled.get(&key("one")).as_deref(), polled.listed_at()), (Some(&1), Some(listed)));
    caches.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn values_that_a_poll_finds_at_the_start_are_queued_behind_changes() {
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    for n in 0..5 {
        world.create(&format!("site{n}"), "a").await;
        outside.set(&format!("site{n}"), n);
    }
    let polled = outside.poll();
    let handle = ControllerBuilder::<Noting>::new().workers(1).polls(&polled).build(notes.clone());
    let caches = caches(&world, &handle).await;
    world.patch("site4", json!({ "metadata": { "labels": { "by": "us" } } })).await;
    tokio::time::sleep(SECOND).await;
    term(&world, &handle, &caches).await;
    assert_eq!(notes.noted()[0], "site4: started, changed, poll outside");
    caches.shutdown().await;
}

/// While another replica led, all timers were due once.
#[tokio::test(start_paused = true)]
async fn timers_that_became_due_while_another_led_are_spread_over_the_interval() {
    let (world, notes) = (World::start().await, Noting::default());
    for n in 0..40 {
        world.create(&format!("site{n}"), "a").await;
    }
    let timer = Timer::every(100 * SECOND, "probe");
    let handle = ControllerBuilder::<Noting>::new().timer(timer).build(notes.clone());
    let caches = caches(&world, &handle).await;
    tokio::time::sleep(3600 * SECOND).await;
    term(&world, &handle, &caches).await;
    let rung = notes.noted().iter().filter(|note| note.contains("timer")).count();
    assert!(rung <= 12, "{rung} of 40 in the first tenth");
    caches.shutdown().await;
}

struct Picky;

impl PartialEq for Picky {
    fn eq(&self, _: &Self) -> bool {
        panic!("on purpose")
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_values_panic_when_compared_reports_an_error_and_polls_less_often() {
    let (world, notes) = (World::start().await, Noting::default());
    world.create("one", "a").await;
    let list = || async { Ok([(key("one"), Picky)].into()) };
    let polled: PollHandle<Picky> = Poll::every(30 * SECOND, "picky").list(list);
    let running =
        world.run(ControllerBuilder::<Noting>::new().polls(&polled).build(notes.clone())).await;
    tokio::time::sleep(1800 * SECOND).await;
    assert!(polled.error().is_some_and(|error| error.contains("it panicked: on purpose")));
    let labels = ["site", "picky", "panic"];
    let panics = world.client.environment().metrics.counted(&names::POLLS, &labels);
    assert!((6..=16).contains(&panics), "{panics} in half an hour");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_waits_for_a_full_controller_and_enqueues_once_in_the_other() {
    let (world, notes) = (World::start().await, Noting::default());
    world.create("home", "a").await;
    let trigger = Trigger::with_capacity("hook", 1);
    let never = ControllerBuilder::<Noting>::new().name("never").triggered_by(&trigger);
    let never = never.build(Noting::default());
    let running = world
        .run(ControllerBuilder::<Noting>::new().triggered_by(&trigger).build(notes.clone()))
        .await;
    notes.noted();
    trigger.send(key("other")).await;
    let sending = tokio::spawn({
        let trigger = trigger.clone();
        async move { trigger.send(key("home")).await }
    });
    tokio::time::sleep(SECOND).await;
    assert!(!sending.is_finished());
    assert_eq!(notes.noted(), ["home: trigger hook"]);
    drop(never);
    sending.await.expect("no controller is left to wait for");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_lists_once_per_interval_and_up_to_a_tenth_later() {
    let (world, notes, outside) = (World::start().await, Noting::default(), Outside::default());
    let polled = outside.poll();
    let running = world.run(ControllerBuilder::<Noting>::new().polls(&polled).build(notes)).await;
    let before = outside.lists.load(Ordering::SeqCst);
    tokio::time::sleep(3300 * SECOND).await;
    let lists = outside.lists.load(Ordering::SeqCst) - before;
    assert!((100..110).contains(&lists), "{lists} in 110 intervals");
    running.stop().await;
}

/// A reconcile that lost the lease did not fail.
#[tokio::test(start_paused = true)]
async fn l9_a_reconcile_that_the_end_of_a_term_cut_is_repeated_in_the_next_term() {
    struct Hanging(AtomicU32);
    impl Reconciler for Hanging {
        type Object = Site;

        async fn reconcile(&self, _: &Site, cx: &Context<Self>) -> Result {
            assert_eq!(cx.attempt(), 0);
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => std::future::pending().await,
                _ => Ok(Action::done()),
            }
        }
    }
    let world = World::start().await;
    world.create("home", "a").await;
    let hanging = Hanging(AtomicU32::new(0));
    let handle = ControllerBuilder::new().build(hanging);
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let stop = CancellationToken::new();
    tokio::spawn({
        let (informers, stop) = (informers.clone(), stop.clone());
        async move { informers.run(stop).await }
    });
    informers.synced().await;
    for drained in [false, true] {
        let ended = CancellationToken::new();
        let run = ControllerRun {
            client: world.client.clone(),
            informers: informers.clone(),
            stop: ended.clone(),
            drain: SECOND,
        };
        let work = tokio::spawn({
            let handle = Arc::clone(&handle);
            async move { handle.run(run).await }
        });
        tokio::time::sleep(SECOND).await;
        ended.cancel();
        assert_eq!(work.await.expect("no panic"), drained);
    }
    let reconciles =
        world.client.environment().metrics.counted(&names::RECONCILE, &["site", "success"]);
    assert_eq!(reconciles, 1, "in the second term");
    let state = handle.state();
    assert_eq!((state.queued, state.working, state.backing_off), (0, 0, 0));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_controller_of_an_operator_that_ended_is_refused_by_the_next_one() {
    let world = World::start().await;
    let handle = ControllerBuilder::<Noting>::new().build(Noting::default());
    handle.attach(&InformerRegistry::new(world.client.clone(), vec![])).expect("the first");
    let again = handle.attach(&InformerRegistry::new(world.client.clone(), vec![]));
    let text = again.expect_err("it is used up").to_string();
    assert!(text.contains("build another one"), "{text}");
}
