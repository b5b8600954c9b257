//! Reconciles of steps.

use super::*;

#[derive(Clone, Default)]
struct Stepping {
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Stepping {
    async fn first(&self) -> Result<()> {
        self.log.lock().push("first");
        Ok(())
    }

    async fn second(&self, site: &Site) -> Result<Flow> {
        self.log.lock().push("second");
        match site.spec.host.as_str() {
            "waits" => Ok(Flow::Stop(Action::requeue_after(Duration::from_secs(50)))),
            "fails" => Err("no zone".into()),
            "terminal" => Err(Failure::terminal("no zone")),
            _ => Ok(Flow::Again(Duration::from_secs(300))),
        }
    }

    async fn slow(&self, name: &'static str, site: &Site) -> Result<Action> {
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.log.lock().push(name);
        match site.spec.host.strip_suffix(" is terminal") {
            Some(terminal) if terminal == name => return Err(Failure::terminal(name)),
            None if site.spec.host != "both fail" => {}
            _ => return Err(name.into()),
        }
        Ok(Action::requeue_after(Duration::from_secs(100)))
    }
}

impl Reconciler for Stepping {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        Steps::new(cx)
            .step("first", self.first())
            .condition("First")
            .step("second", self.second(site))
            .condition("Second")
            .step("left", self.slow("left", site))
            .beside("right", self.slow("right", site))
            .condition("Right")
            .run()
            .await
    }
}

async fn played(host: &str) -> (World, Stepping, Running) {
    let (world, stepping) = (World::start().await, Stepping::default());
    let running = world.run(ControllerBuilder::new().build(stepping.clone())).await;
    world.create("home", host).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    (world, stepping, running)
}

async fn conditions(world: &World) -> Vec<String> {
    let status = world.sites().get("home").await.expect("it is there").status.expect("a status");
    let reported = status.conditions.iter();
    reported.map(|c| format!("{} {} {} {}", c.type_, c.status, c.reason, c.message)).collect()
}

#[tokio::test(start_paused = true)]
async fn steps_run_in_order_and_those_of_a_group_at_the_same_time() {
    let (world, stepping, running) = played("a").await;
    assert_eq!(*stepping.log.lock(), ["first", "second", "left", "right"]);
    let reported = conditions(&world).await;
    assert_eq!(
        reported,
        ["First True Succeeded ", "Second True Succeeded ", "Right True Succeeded "]
    );
    assert_eq!(running.handle.state().delayed, 1);
    tokio::time::sleep(Duration::from_secs(101)).await;
    assert!(stepping.log.lock().len() > 4, "the earliest of the times asked for");
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_ends_the_reconcile_with_success() {
    let (world, stepping, running) = played("waits").await;
    assert_eq!(*stepping.log.lock(), ["first", "second"]);
    assert_eq!(conditions(&world).await, ["First True Succeeded ", "Second False Waiting "]);
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    assert_eq!(running.handle.state().delayed, 1);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_error_names_its_step_and_ends_the_sequence() {
    let (world, stepping, running) = played("fails").await;
    assert!(!stepping.log.lock().contains(&"left"));
    let reported = running.handle.busy_report().now;
    assert!(reported[0].ends_with(": step \"second\": no zone"), "{reported:?}");
    assert_eq!(conditions(&world).await[1], "Second False StepFailed no zone");
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn all_steps_of_a_group_end_and_all_their_errors_are_reported() {
    let (_world, stepping, running) = played("both fail").await;
    assert_eq!(stepping.log.lock()[..4], ["first", "second", "left", "right"]);
    let reported = running.handle.busy_report().now;
    assert!(reported[0].ends_with("step \"left\": left; step \"right\": right"), "{reported:?}");
    running.stop.cancel();
}

/// A terminal failure does not keep a step beside the failed step from being retried.
#[tokio::test(start_paused = true)]
async fn a_step_beside_one_that_failed_for_good_is_tried_again() {
    for (host, told_first) in [("left is terminal", "right"), ("right is terminal", "left")] {
        let (_world, stepping, running) = played(host).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let tries = stepping.log.lock().iter().filter(|step| **step == "left").count();
        assert!(tries >= 2, "{host}: {tries}");
        let reported = running.handle.busy_report().now;
        let first = format!("in a row: step \"{told_first}\": {told_first}; step ");
        assert!(reported[0].contains(&first), "{reported:?}");
        running.stop.cancel();
    }
}

/// The step's failure decides about the retry, and not the error of writing the condition.
#[tokio::test(start_paused = true)]
async fn a_steps_failure_is_not_lost_when_its_condition_cannot_be_written() {
    use windlass_apiserver::faults::{Fault, FaultAction as Do};
    let (logged, _guard) = Captured::at(tracing::Level::ERROR);
    let (world, stepping) = (World::start().await, Stepping::default());
    let running = world.run(ControllerBuilder::new().build(stepping)).await;
    let refused = Fault::new(Do::Answer(422)).resource("sites").subresource("status");
    // The first condition is written.
    let refused = world.server.faults().add(refused.after(1).times(1));
    world.create("home", "terminal").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(refused.hits(), 1);
    let reported = logged.with("the reconcile failed for good");
    assert!(reported[0].contains("(a condition was not written: "), "{reported:?}");
    assert!(reported[0].contains("and: step \"second\": no zone"), "{reported:?}");
    let errors = world.counted(&names::RECONCILE_ERRORS);
    assert_eq!(world.counted(&names::RECONCILE_TERMINAL_ERRORS), errors, "nothing else went wrong");
    running.stop.cancel();
}

/// Steps within a step.
#[derive(Clone, Default)]
struct Nesting {
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Nesting {
    async fn say(&self, what: &'static str) -> Result<()> {
        self.log.lock().push(what);
        Ok(())
    }

    async fn record(&self, site: &Site) -> Result<Flow> {
        match site.spec.host.as_str() {
            "fails" => Err("no zone".into()),
            "panics" => panic!("no luck"),
            "waits" => Ok(Flow::Stop(Action::requeue_after(Duration::from_secs(50)))),
            _ => Ok(Flow::Again(Duration::from_secs(300))),
        }
    }
}

impl Reconciler for Nesting {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let dns = Steps::new(cx).step("record", self.record(site)).step("last", self.say("last"));
        Steps::new(cx)
            .step("first", self.say("first"))
            .step("dns", dns.run())
            .condition("Dns")
            .beside("beside", self.say("beside"))
            .step("after", self.say("after"))
            .run()
            .await
    }
}

#[tokio::test(start_paused = true)]
async fn steps_within_a_step_are_one_of_its_steps() {
    for (host, steps, delayed) in [
        ("a", &["first", "last", "beside", "after"][..], 1),
        ("waits", &["first", "beside", "after"][..], 1),
        ("fails", &["first", "beside"][..], 0),
        ("panics", &["first"][..], 0),
    ] {
        let (world, nesting) = (World::start().await, Nesting::default());
        let running = world.run(ControllerBuilder::new().build(nesting.clone())).await;
        world.create("home", host).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(nesting.log.lock()[..steps.len()], *steps, "{host}");
        assert_eq!(running.handle.state().delayed, delayed, "{host}");
        let reported = running.handle.busy_report().now;
        match host {
            "fails" => {
                let text = ": step \"dns\": step \"record\": no zone";
                assert!(reported[0].ends_with(text), "{reported:?}");
                assert!(conditions(&world).await[0].starts_with("Dns False StepFailed"));
            }
            "panics" => {
                let text = ": the reconciler panicked: step \"dns\": step \"record\": no luck";
                assert!(reported[0].ends_with(text), "{reported:?}");
            }
            _ => {
                assert!(reported.is_empty(), "{reported:?}");
                assert_eq!(conditions(&world).await, ["Dns True Succeeded "]);
            }
        }
        running.stop.cancel();
    }
}

#[test]
fn of_failures_at_the_same_time_the_one_that_is_tried_again_first_counts() {
    let after = |seconds| Failure::retry_after(Duration::from_secs(seconds), format!("{seconds}"));
    let first = |failures| soonest(failures).map(|failure: Failure| failure.to_string());
    let (terminal, backoff) = (|| Failure::terminal("no"), || Failure::from("soon"));
    assert_eq!(first(vec![after(50), after(10)]).as_deref(), Some("10; 50"));
    assert_eq!(first(vec![terminal(), after(10)]).as_deref(), Some("10; no"));
    assert_eq!(first(vec![after(1), backoff()]).as_deref(), Some("soon; 1"));
    assert_eq!(first(Vec::new()), None);
}
