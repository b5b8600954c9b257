//! Parts of an operator that end with a term of leadership, and begin again with the next.

use std::future::pending;

use super::world::{SECOND, Story, Trip, World, definition, elected, until};
use super::*;
use crate::controller::{Action, Context, ControllerBuilder, ObjectTask, Result, TaskContext};

/// A task for each object, which does not end without a stop.
struct Probes(Story);

impl Reconciler for Probes {
    type Object = Trip;

    async fn reconcile(&self, _: &Trip, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

/// Logs the end of the work, whatever its cause.
struct Ends(Story);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.record("ends", 0);
    }
}

impl ObjectTask for Probes {
    async fn run(&self, task: TaskContext<Self>) -> Result<()> {
        let _ends = Ends(self.0.clone());
        self.0.record("begins", 0);
        task.cancelled().await;
        self.0.record("called off", 0);
        pending().await
    }
}

/// Two seconds after the lease was lost another process may work on the objects.
#[tokio::test(start_paused = true)]
async fn l9_tasks_end_with_the_lease_in_two_seconds_and_begin_again_with_the_next_term() {
    let (world, story) = (World::start().await, Story::default());
    let builder = ControllerBuilder::new().task_per_object().name("probes");
    let operator = world.operator(&Story::default(), definition(&["v1", "v2"]));
    let running = operator
        .controller_with(Probes(story.clone()), builder)
        .leader_election_with(elected())
        .start();
    let count =
        |what: &str| story.recorded().iter().filter(|(recorded, _)| *recorded == what).count();
    until("each has one", || count("begins") == 3).await;
    world.give_the_lease_to("somebody").await;
    until("they are called off", || count("called off") == 3).await;
    let took = until("they have ended", || count("ends") == 3).await;
    assert!((SECOND..3 * SECOND).contains(&took), "{took:?}");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(count("begins"), 3, "nobody leads here");
    world.free_the_lease().await;
    until("each has one again", || count("begins") == 6).await;
    running.stop();
    // The tasks do not end by themselves.
    assert_eq!(running.join().await.unwrap(), Exit::Cut);
    assert_eq!(count("ends"), 6);
}
