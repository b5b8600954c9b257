//! Crashes, lost answers and other outcomes of creations that nobody has recorded.

use windlass_apiserver::faults::{Fault as ServerFault, FaultAction as Do};

use super::*;

/// Runs an operator until the first call of that verb, whose fault it does not survive.
async fn crash_in(world: &World, externals: Externals<Volumes>, verb: &'static str, fault: Fault) {
    world.cloud.fault(verb, fault);
    let running = world.run(externals);
    world.create("home").await;
    until(verb, async || world.cloud.calls(verb) > 0).await;
    drop(running);
}

/// Deletes the object, after which the provider must have nothing left.
async fn leaks_nothing(world: &World) {
    world.delete("home").await;
    assert_eq!(world.cloud.disks().0, 0, "a volume is left");
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_call_creates_one_resource_with_the_same_token() {
    let world = World::start().await;
    crash_in(&world, world.driver(), "create", Fault::Hang).await;
    assert!(world.annotation("home", CREATE_PENDING).await.is_some());
    let began = tokio::time::Instant::now();
    let running = world.run(world.driver());
    world.until_said("home", "may still take place").await;
    assert_eq!(world.cloud.disks(), (0, 0), "the call of the crashed process may still arrive");
    world.until_ready("home").await;
    assert!(began.elapsed() > 50 * SECOND, "{:?}", began.elapsed());
    assert_eq!(world.cloud.disks(), (1, 1));
    let tokens = world.cloud.tokens();
    assert_eq!((tokens.len(), &tokens[0]), (2, &tokens[1]));
    leaks_nothing(&world).await;
    drop(running);
}

/// Returns a recorded time as the clock of another process would have written it.
fn shifted(record: &str, hours: i64) -> String {
    let (_, rest) = record.split_once(' ').unwrap();
    format!("{} {rest}", Timestamp::from_second(EPOCH + hours * 3600).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_wrong_clock_of_another_process_does_not_end_the_wait_for_its_creation() {
    for hours in [-9, 9] {
        let world = World::start().await;
        crash_in(&world, world.driver(), "create", Fault::Hang).await;
        let pending = world.annotation("home", CREATE_PENDING).await.unwrap();
        world.annotate("home", json!({ CREATE_PENDING: shifted(&pending, hours) })).await;
        let began = tokio::time::Instant::now();
        let running = world.run(world.driver());
        world.until_ready("home").await;
        let waited = began.elapsed();
        assert!(waited > 50 * SECOND && waited < 120 * SECOND, "{hours}: {waited:?}");
        assert_eq!(world.cloud.disks(), (1, 1));
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_clock_of_another_process_makes_no_second_resource() {
    for hours in [-9, 9] {
        let world = World::start().await;
        crash_in(&world, world.driver(), "report", Fault::Hang).await;
        let made = world.annotation("home", CREATE_SUCCEEDED).await.unwrap();
        world.annotate("home", json!({ CREATE_SUCCEEDED: shifted(&made, hours) })).await;
        // The provider does not show it yet.
        let disk = world.cloud.with(|cloud| cloud.disks.remove("disk-1")).unwrap();
        let running = world.run(world.driver());
        world.until_said("home", "is not seen yet").await;
        world.cloud.with(|cloud| cloud.disks.insert("disk-1".to_owned(), disk));
        world.until_ready("home").await;
        assert_eq!((world.cloud.disks(), world.cloud.calls("create")), ((1, 1), 1), "{hours}");
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_call_and_record_creates_no_second_resource() {
    let world = World::start().await;
    crash_in(&world, world.driver(), "create", Fault::HangAfter).await;
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await, None);
    let running = world.run(world.driver());
    world.until_ready("home").await;
    assert_eq!(world.cloud.disks(), (1, 1));
    assert_eq!(world.cloud.calls("create"), 1);
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await.as_deref(), Some("disk-1"));
    until("its event", async || world.has_event("ExternalFound").await).await;
    leaks_nothing(&world).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_record_and_status_creates_no_second_resource() {
    let world = World::start().await;
    crash_in(&world, world.driver(), "report", Fault::Hang).await;
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await.as_deref(), Some("disk-1"));
    assert!(world.get("home").await.status.is_none_or(|status| status.id.is_none()));
    let running = world.run(world.blind());
    world.until_ready("home").await;
    assert_eq!(world.cloud.disks(), (1, 1));
    assert_eq!(world.get("home").await.status.unwrap().id.as_deref(), Some("disk-1"));
    leaks_nothing(&world).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_after_a_crash_leaks_nothing() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let world = World::start().await;
        crash_in(&world, world.driver(), "create", fault).await;
        world.volumes().delete("home").await.unwrap();
        let running = world.run(world.driver());
        until("it is gone", async || world.volumes().get_opt("home").await.unwrap().is_none())
            .await;
        assert_eq!(world.cloud.disks().0, 0, "{fault:?}");
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_the_provider_is_searched_for() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::FailAfter);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    assert_eq!((world.cloud.disks(), world.cloud.calls("create")), ((1, 1), 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_its_deadline_has_an_unknown_outcome() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::HangAfter);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    assert_eq!((world.cloud.disks(), world.cloud.calls("create")), ((1, 1), 1));
    assert_eq!(world.counted("create", "timeout"), 1);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_settled_and_tried_again_with_another_token() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::Refuse);
    // Without a search: a refusal needs none.
    let running = world.run(world.blind());
    world.create("home").await;
    world.until_ready("home").await;
    let tokens = world.cloud.tokens();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(world.counted("create", "refused"), 1);
    assert_eq!(world.annotation("home", CREATE_FAILED).await, None);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_repeated_token_loses_no_resource() {
    let world = World::start().await;
    crash_in(&world, world.driver(), "create", Fault::Hang).await;
    // The call of the crashed process has its effect late, just before the token is repeated.
    world.cloud.fault("create", Fault::RefuseAfter);
    let running = world.run(world.driver());
    world.until_ready("home").await;
    assert_eq!((world.cloud.disks(), world.cloud.calls("create")), ((1, 1), 2));
    let tokens = world.cloud.tokens();
    assert_eq!(tokens[0], tokens[1]);
    assert_eq!(world.annotation("home", CREATE_FAILED).await, None);
    leaks_nothing(&world).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn without_a_search_an_unknown_outcome_stops_until_a_person_names_the_resource() {
    let world = World::start().await;
    crash_in(&world, world.blind(), "create", Fault::HangAfter).await;
    let running = world.run(world.blind());
    world.until_said("home", "cannot tell whether the creation").await;
    let (status, reason, message) = world.ready("home").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TerminalError"));
    for key in [EXTERNAL_NAME, CREATE_PENDING] {
        assert!(message.contains(key), "{message}");
    }
    until("its event", async || world.has_event("ExternalCreationUnknown").await).await;
    pass(7200).await;
    assert_eq!(world.cloud.disks(), (1, 1), "nothing was created meanwhile");
    world.annotate("home", json!({ EXTERNAL_NAME: "disk-1" })).await;
    world.until_ready("home").await;
    leaks_nothing(&world).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn without_a_search_a_person_settles_that_nothing_was_created() {
    let world = World::start().await;
    crash_in(&world, world.blind(), "create", Fault::Hang).await;
    let running = world.run(world.blind());
    world.until_said("home", "cannot tell whether the creation").await;
    // A deletion does not pass it over either.
    world.create("other").await;
    world.until_ready("other").await;
    world.annotate("home", json!({ CREATE_PENDING: null })).await;
    world.until_ready("home").await;
    assert_eq!(world.cloud.disks(), (2, 2));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_does_not_pass_over_an_unknown_outcome() {
    let world = World::start().await;
    crash_in(&world, world.blind(), "create", Fault::HangAfter).await;
    world.volumes().delete("home").await.unwrap();
    let running = world.run(world.blind());
    world.until_said("home", "cannot tell whether the creation").await;
    pass(3600).await;
    assert!(world.get("home").await.is_terminating());
    world.annotate("home", json!({ EXTERNAL_NAME: "disk-1" })).await;
    until("it is gone", async || world.volumes().get_opt("home").await.unwrap().is_none()).await;
    assert_eq!(world.cloud.disks().0, 0);
    drop(running);
}

/// Returns a fault of the patches of volumes after the finalizer and the record of the creation.
fn of_records(action: Do) -> ServerFault {
    ServerFault::new(action).on("patch").resource("volumes").subresource("").after(2)
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_recorded_is_remembered_by_the_process() {
    let world = World::start().await;
    let away = world.server.faults().add(of_records(Do::Answer(500)).times(6));
    let running = world.run(world.blind());
    world.create("home").await;
    world.until_ready("home").await;
    assert_eq!(away.hits(), 6, "the first attempts failed");
    assert_eq!(world.cloud.disks(), (1, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn other_writers_do_not_keep_an_outcome_from_its_record() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::Slow(5 * SECOND));
    let running = world.run(world.blind());
    world.create("home").await;
    until("its creation", async || world.cloud.calls("create") > 0).await;
    world.patch("home", json!({ "metadata": { "labels": { "tier": "front" } } })).await;
    world.until_ready("home").await;
    assert_eq!(world.cloud.disks(), (1, 1));
    let home = world.get("home").await;
    assert_eq!(
        (home.label("tier"), home.annotation(EXTERNAL_NAME)),
        (Some("front"), Some("disk-1"))
    );
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_record_whose_answer_is_lost_needs_no_person() {
    let world = World::start().await;
    let lost = ServerFault::new(Do::ExecuteThenDrop).on("patch").resource("volumes");
    let lost = world.server.faults().add(lost.subresource("").after(1).times(1));
    let running = world.run(world.blind());
    world.create("home").await;
    world.until_ready("home").await;
    assert_eq!(lost.hits(), 1, "the record of the creation lost its answer");
    assert_eq!((world.cloud.disks(), world.cloud.calls("create")), ((1, 1), 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_only_the_one_that_records_first_creates() {
    let world = World::start().await;
    for seconds in 0..3 {
        world.cloud.fault("create", Fault::Slow(seconds * SECOND));
    }
    let (one, other) = (world.run(world.driver()), world.run(world.driver()));
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    for name in ["a", "b", "c"] {
        world.until_ready(name).await;
    }
    pass(3600).await;
    assert_eq!(world.cloud.disks(), (3, 3));
    drop((one, other));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_a_creation_end_and_be_recorded() {
    let world = World::start().await;
    world.cloud.fault("create", Fault::Slow(5 * SECOND));
    let running = world.run(world.blind());
    world.create("home").await;
    until("its creation", async || world.cloud.calls("create") > 0).await;
    running.stop();
    running.join().await.unwrap();
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await.as_deref(), Some("disk-1"));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cuts_off_an_observation() {
    let world = World::start().await;
    world.cloud.fault("observe", Fault::Hang);
    let running = world.run(world.driver());
    world.create("home").await;
    until("its observation", async || world.cloud.calls("observe") > 0).await;
    let began = tokio::time::Instant::now();
    running.stop();
    running.join().await.unwrap();
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    assert_eq!(world.counted("observe", "cancelled"), 1);
}
