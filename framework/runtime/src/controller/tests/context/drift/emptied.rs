//! An object of the intent that becomes empty is there after the apply, though the API server
//! removes the empty object first.

use k8s_openapi::api::apps::v1::Deployment;

use super::*;

/// Applies a Deployment whose container has a setting if the host is `a`, and an empty object of
/// settings else.
struct Apps;

impl Owns<Deployment> for Apps {}

impl Reconciler for Apps {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let settings =
            if site.spec.host == "a" { json!({ "privileged": false }) } else { json!({}) };
        let container = json!({ "name": "web", "image": "x", "securityContext": settings });
        let app = json!({ "metadata": { "name": site.name() }, "spec": {
            "selector": { "matchLabels": { "app": "x" } },
            "template": { "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [container] } } } });
        cx.apply_owned(serde_json::from_value::<Deployment>(app).expect("an app")).await?;
        Ok(Action::done())
    }
}

/// Runs the controller with an app whose container has a setting.
async fn started() -> (World, Running) {
    let world = World::start().await;
    let handle = ControllerBuilder::<Apps>::new().owns::<Deployment>().build(Apps);
    let running = world.run(handle).await;
    world.create("home", "a").await;
    running.settled().await;
    (world, running)
}

/// Whether the container of the app has an object of settings.
async fn has_settings(world: &World) -> bool {
    let app = world.client.namespace::<Deployment>("shop").get("home").await.expect("it is there");
    let pod = app.spec.and_then(|spec| spec.template.spec).expect("a pod");
    pod.containers[0].security_context.is_some()
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_intent_that_becomes_empty_is_applied_once_more() {
    let (world, running) = started().await;
    world.writes();
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    let mut writes = world.writes();
    writes.retain(|write| write.contains("deployments"));
    assert_eq!(writes, ["patch deployments/"; 2]);
    assert!(has_settings(&world).await, "an empty object");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_apply_that_fails_is_made_up_for_by_the_next_reconcile() {
    use windlass_apiserver::faults::{Fault, FaultAction as Do};
    let (world, running) = started().await;
    let refused = Fault::new(Do::Answer(422)).on("patch").resource("deployments");
    let refused = world.server.faults().add(refused.after(1).times(1));
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(refused.hits(), 1);
    assert!(has_settings(&world).await, "an empty object");
    world.writes();
    world.patch("home", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    running.settled().await;
    let mut writes = world.writes();
    writes.retain(|write| write.contains("deployments"));
    assert!(writes.is_empty(), "nothing is left: {writes:?}");
    running.stop().await;
}
