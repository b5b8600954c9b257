//! The loop at rest and under load: polls, repairs, rates, deadlines, late initialisation.

use windlass_client::client::TokenBucket;
use windlass_core::resource::Resource;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_resource_is_created_once_and_recorded_on_its_object() {
    let world = World::start().await;
    let running = world.run(world.driver());
    let home = world.create("home").await;
    world.until_ready("home").await;
    let found = world.get("home").await;
    assert_eq!(found.annotation(EXTERNAL_NAME), Some("disk-1"));
    let token = &world.cloud.tokens()[0];
    assert_eq!(token.len(), 53);
    assert!(token.starts_with(home.uid()), "{token}");
    assert!(found.annotation(CREATE_PENDING).unwrap().ends_with(token.as_str()));
    assert!(found.annotation(CREATE_SUCCEEDED).unwrap().ends_with(&format!("{token} disk-1")));
    assert_eq!(found.status.unwrap().id.as_deref(), Some("disk-1"));
    until("its event", async || world.has_event("ExternalCreated").await).await;
    let refused = world.server.requests().into_iter().filter(|request| request.code == 409);
    assert_eq!(refused.map(|it| it.subresource).collect::<Vec<_>>(), [""; 0]);
    // The first poll: late initialisation has changed the generation that the condition names.
    pass(700).await;
    let before = world.server.requests().len();
    pass(7200).await;
    let writes = world.server.requests().into_iter().skip(before);
    let writes =
        writes.filter(|request| !["get", "list", "watch"].contains(&request.verb.as_str()));
    let writes: Vec<_> =
        writes.map(|it| format!("{} {}/{}", it.verb, it.resource, it.subresource)).collect();
    assert_eq!(writes, [""; 0], "polls without a difference write nothing");
    assert_eq!(world.counted("create", "success"), 1);
    assert_eq!(world.cloud.disks(), (1, 1));
    drop(running);
}

/// Returns the delays between the observations of each of two objects, in milliseconds.
async fn polls() -> Vec<Vec<u128>> {
    let world = World::start().await;
    let running = world.run(world.driver().poll_every(60 * SECOND));
    for name in ["a", "b"] {
        world.create(name).await;
        world.until_ready(name).await;
    }
    pass(600).await;
    drop(running);
    let delays = |name: &str| {
        let calls = world.cloud.with(|cloud| cloud.calls.clone());
        let of_name = calls.iter().filter(|(verb, owner, _)| *verb == "observe" && owner == name);
        let times: Vec<_> = of_name.map(|(.., at)| *at).collect();
        times.windows(2).map(|two| (two[1] - two[0]).as_millis()).collect()
    };
    vec![delays("a"), delays("b")]
}

#[tokio::test(start_paused = true)]
async fn polls_have_jitter_that_a_seed_reproduces() {
    let polls = [polls().await, polls().await];
    assert_eq!(polls[0], polls[1]);
    let [a, b] = polls[0].as_slice() else { panic!("two objects") };
    assert_ne!(a, b);
    for delays in [a, b] {
        assert!(delays.len() >= 8, "{delays:?}");
        assert!(delays.iter().all(|delay| (60_000..=66_500).contains(delay)), "{delays:?}");
        assert!(delays.windows(2).any(|two| two[0].abs_diff(two[1]) > 100), "{delays:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_difference_is_repaired_at_the_next_poll() {
    let world = World::start().await;
    let running = world.run(world.driver().poll_every(60 * SECOND));
    world.create("home").await;
    world.until_ready("home").await;
    world.cloud.with(|cloud| cloud.disks.get_mut("disk-1").unwrap().size = 99);
    pass(70).await;
    assert_eq!(world.cloud.with(|cloud| cloud.disks["disk-1"].size), 5);
    world.patch("home", json!({ "spec": { "size": 6 } })).await;
    until("a change of the spec", async || world.counted("update", "success") == 2).await;
    assert_eq!(world.cloud.with(|cloud| cloud.disks["disk-1"].size), 6);
    until("its event", async || world.has_event("ExternalUpdated").await).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_disappeared_is_created_anew_with_another_token() {
    let world = World::start().await;
    let running = world.run(world.blind().poll_every(60 * SECOND));
    world.create("home").await;
    world.until_ready("home").await;
    pass(60).await;
    world.cloud.with(|cloud| cloud.disks.clear());
    until("another one", async || world.cloud.disks() == (1, 2)).await;
    world.until_ready("home").await;
    let tokens = world.cloud.tokens();
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await.as_deref(), Some("disk-2"));
    until("its event", async || world.has_event("ExternalGone").await).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_its_provider_does_not_show_yet_is_waited_for() {
    let world = World::start().await;
    world.cloud.with(|cloud| cloud.hides = 3);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_said("home", "is not seen yet").await;
    world.until_ready("home").await;
    assert_eq!(world.cloud.disks(), (1, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn empty_fields_of_the_spec_are_filled_and_others_are_left_alone() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    let spec = world.get("home").await.spec;
    assert_eq!((spec.size, spec.zone.as_deref(), spec.sealed), (5, Some("north"), true));
    // The type does not serialize a value of false, which its author has set all the same.
    let open = json!({
        "apiVersion": "example.dev/v1", "kind": "Volume",
        "metadata": { "name": "open" }, "spec": { "size": 5, "sealed": false },
    });
    let untyped = world.client.dynamic(Volume::static_info().unwrap(), Some("shop"));
    untyped.create(&serde_json::from_value(open).unwrap()).await.unwrap();
    world.until_ready("open").await;
    let spec = world.get("open").await.spec;
    assert_eq!((spec.zone.as_deref(), spec.sealed), (Some("north"), false));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn all_calls_of_a_provider_share_its_rate() {
    let world = World::start().await;
    let clock = world.client.environment().clock.clone();
    let bucket = Arc::new(TokenBucket::new(1.0, 1, clock));
    let running = world.run(world.driver().rate_limit(bucket));
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    for name in ["a", "b", "c"] {
        world.until_ready(name).await;
    }
    let times: Vec<_> = world.cloud.with(|cloud| {
        let calls = cloud.calls.iter().filter(|(verb, ..)| *verb != "report");
        calls.map(|(.., at)| *at).collect()
    });
    assert!(times.len() >= 6, "{times:?}");
    let shortest = times.windows(2).map(|two| two[1] - two[0]).min().unwrap();
    assert!(shortest >= SECOND * 99 / 100, "{shortest:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_permit_waits_and_holds_no_worker() {
    let world = World::start().await;
    let clock = world.client.environment().clock.clone();
    // The only permit is taken: there is no other for hours.
    let bucket = TokenBucket::new(0.0001, 1, clock);
    let driver = world.driver().rate_limit(Arc::new(bucket));
    let running = world.run(driver);
    world.create("home").await;
    world.until_said("home", "ExternalRateLimited").await;
    assert_eq!(world.cloud.disks().0, 1, "the record is not lost by it");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn one_object_that_fails_or_hangs_does_not_stop_another() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::Hang);
    let running = world.run(world.driver());
    world.create("hangs").await;
    until("its creation", async || world.cloud.calls("create") > 0).await;
    let bad = json!({ "metadata": { "name": "bad" }, "spec": { "size": -1 } });
    world.volumes().create(&serde_json::from_value(bad).unwrap()).await.unwrap();
    world.until_said("bad", "the provider refuses it").await;
    let began = tokio::time::Instant::now();
    world.create("good").await;
    world.until_ready("good").await;
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    pass(3600).await;
    assert_eq!(world.cloud.calls("refused"), 1, "a terminal refusal is not repeated");
    world.until_ready("hangs").await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn every_call_has_a_deadline() {
    let world = World::start().await;
    let running = world.run(world.driver().call_timeout(2 * SECOND));
    for verb in ["observe", "update"] {
        world.cloud.fault(verb, Fault::Hang);
    }
    world.create("home").await;
    world.until_ready("home").await;
    world.patch("home", json!({ "spec": { "size": 6 } })).await;
    until("the repair", async || world.counted("update", "success") == 1).await;
    assert_eq!((world.counted("observe", "timeout"), world.counted("update", "timeout")), (1, 1));
    drop(running);
}
