//! A small kind and its controller, for tests: each `Widget` gets a ConfigMap with its text.
//!
//! The text also controls the reconcile: `panic` panics, `fail` fails, `slow` takes ten seconds,
//! `brief` one, `tell` writes an Event, `block` never gives its thread back once the ConfigMap is
//! there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::controller::Failure;
use windlass::prelude::*;

/// A thing with a text.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced)]
pub struct Widget {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: WidgetSpec,
    /// Observed state.
    pub status: Option<WidgetStatus>,
}

/// Desired state of a widget.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WidgetSpec {
    /// The ConfigMap's text.
    pub text: String,
}

/// Observed state of a widget.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WidgetStatus {
    /// Conditions.
    pub conditions: Conditions,
}

/// A kind that no test installs.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced)]
pub struct Absent {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Desired state.
    pub spec: WidgetSpec,
}

/// Counts of reconciles that began and ended, for tests.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Reconciles that began.
    pub begun: Arc<AtomicU64>,
    /// Reconciles that ran to their end.
    pub ended: Arc<AtomicU64>,
}

/// The controller of widgets.
#[derive(Debug, Controller)]
#[controller(for = Widget, owns(ConfigMap))]
pub struct Widgets {
    counts: Counts,
}

impl Reconciler for Widgets {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, cx: &Context<Self>) -> Result {
        self.counts.begun.fetch_add(1, Ordering::Relaxed);
        match widget.spec.text.as_str() {
            "panic" => panic!("asked to"),
            "fail" => return Err(Failure::from("asked to")),
            "slow" => cx.clock().sleep(Duration::from_secs(10)).await,
            "brief" => cx.clock().sleep(Duration::from_secs(1)).await,
            "tell" => cx.event(Normal, "Told", "as asked to"),
            _ => {}
        }
        cx.apply_owned(config_map(widget)).await?;
        if widget.spec.text == "block" {
            loop {
                std::thread::park();
            }
        }
        cx.set_condition(met("Ready", "Applied", "")).await?;
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
        Ok(Action::done())
    }
}

/// A controller of a kind that does not exist.
#[derive(Debug, Controller)]
#[controller(for = Absent)]
pub struct Absents;

impl Reconciler for Absents {
    type Object = Absent;

    async fn reconcile(&self, _: &Absent, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn config_map(widget: &Widget) -> ConfigMap {
    let mut child = ConfigMap::default();
    child.metadata.name = Some(widget.name().to_owned());
    child.data = Some([("text".to_owned(), widget.spec.text.clone())].into());
    child
}

/// Returns a widget to create.
pub fn widget(name: &str, text: &str) -> Widget {
    Widget::new(name, WidgetSpec { text: text.to_owned() })
}

/// Returns an operator for widgets, without leader election.
pub fn operator(client: Client) -> Manager {
    counted(client, Counts::default())
}

/// Returns the same operator, counting into `counts`.
pub fn counted(client: Client, counts: Counts) -> Manager {
    Manager::new(client).install::<Widget>().controller(Widgets { counts })
}
