//! Handlers of changed fields run when their field changed since the last successful reconcile.

use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass::controller::Failure;
use windlass::prelude::*;
use windlass::testing::RunningOperator;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

#[derive(Controller)]
#[controller(for = Gadget, name = "handling", retry(base = "10ms", cap = "20ms"))]
#[controller(on_change(spec.color = repaint, spec.size = resize))]
struct Handling {
    calls: Arc<Mutex<Vec<String>>>,
}

impl Handling {
    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    async fn repaint(&self, gadget: &Gadget, _: &Context<Self>) -> Result<()> {
        self.note(format!("repaint {}", gadget.spec.color));
        // The first attempt at blue fails.
        let blue = self.calls.lock().unwrap().iter().filter(|call| *call == "repaint blue").count();
        if gadget.spec.color == "blue" && blue == 1 {
            return Err(Failure::from("no blue paint"));
        }
        Ok(())
    }

    async fn resize(&self, gadget: &Gadget, _: &Context<Self>) -> Result<()> {
        self.note(format!("resize {}", gadget.spec.size));
        Ok(())
    }
}

impl Reconciler for Handling {
    type Object = Gadget;

    async fn reconcile(&self, _: &Gadget, _: &Context<Self>) -> Result {
        self.note("reconcile");
        Ok(Action::done())
    }
}

fn start(bench: &Bench) -> (RunningOperator, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::default();
    let controller = Handling { calls: Arc::clone(&calls) };
    let manager = Manager::new(bench.cluster.client()).controller(controller);
    (bench.cluster.spawn(manager), calls)
}

fn taken(calls: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *calls.lock().unwrap())
}

#[tokio::test]
async fn a_handler_runs_when_its_field_changed_and_whenever_the_last_state_is_unknown() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let (running, calls) = start(&bench);
    running.settled().await;
    assert_eq!(taken(&calls), ["repaint red", "resize 1", "reconcile"], "the first reconcile");

    bench.change("home", json!({ "note": "touched" })).await;
    running.settled().await;
    assert_eq!(taken(&calls), ["reconcile"], "no handled field changed");

    bench.change("home", json!({ "size": 2 })).await;
    running.settled().await;
    assert_eq!(taken(&calls), ["resize 2", "reconcile"]);

    bench.change("home", json!({ "color": "blue", "size": 3 })).await;
    running.settled().await;
    let expected = ["repaint blue", "repaint blue", "resize 3", "reconcile"];
    assert_eq!(taken(&calls), expected, "a failed handler runs again, and the rest behind it");
    running.stop().await;

    let (running, calls) = start(&bench);
    running.settled().await;
    assert_eq!(taken(&calls), expected, "after a restart");
    running.stop().await;
}
