//! A kind with an index, a finalizer and bounds, and the kind's controller: each `Gadget` gets a
//! ConfigMap.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::controller::{Failure, Finalize};
use windlass::events::EventKind;
use windlass::prelude::*;

pub(crate) const FINALIZER: &str = "test.windlass.dev/gadget";

/// A thing with a colour and a size.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced)]
#[index(by_color = spec.color)]
pub(crate) struct Gadget {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: GadgetSpec,
    pub(crate) status: Option<GadgetStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GadgetSpec {
    pub(crate) color: String,
    #[schemars(range(min = 1, max = 9))]
    pub(crate) size: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GadgetStatus {
    pub(crate) conditions: Conditions,
}

/// A system outside of the cluster that a clean-up has to reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    pub(crate) down: Arc<AtomicBool>,
    pub(crate) cleaned: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(ConfigMap), finalizer = "test.windlass.dev/gadget")]
pub(crate) struct Gadgets {
    outside: Outside,
}

impl Reconciler for Gadgets {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        cx.apply_owned(child(gadget)).await?;
        let size = gadget.spec.size;
        let condition = if size < 5 { met("Small", "Fits", "") } else { unmet("Small", "Big", "") };
        cx.set_condition(condition).await?;
        cx.event(EventKind::Normal, "Painted", format!("painted it {}", gadget.spec.color));
        Ok(Action::done())
    }
}

impl Finalize for Gadgets {
    async fn cleanup(&self, gadget: &Gadget, _: &Context<Self>) -> Result<()> {
        if self.outside.down.load(Ordering::Relaxed) {
            return Err(Failure::from("what is outside does not answer"));
        }
        self.outside.cleaned.lock().expect("no panic under it").push(gadget.name().to_owned());
        Ok(())
    }
}

fn child(gadget: &Gadget) -> ConfigMap {
    let mut child = ConfigMap::default();
    child.metadata.name = Some(gadget.name().to_owned());
    let data = [("color", gadget.spec.color.clone()), ("size", gadget.spec.size.to_string())];
    child.data = Some(data.map(|(key, value)| (key.to_owned(), value)).into());
    child
}

/// Returns a gadget to create.
pub(crate) fn gadget(name: &str, color: &str) -> Gadget {
    Gadget::new(name, GadgetSpec { color: color.to_owned(), size: 1, note: None })
}

/// Returns an operator for gadgets, without leader election.
pub(crate) fn operator(client: Client) -> Manager {
    operator_with(client, Outside::default())
}

/// Returns the same operator, cleaning up `outside`.
pub(crate) fn operator_with(client: Client, outside: Outside) -> Manager {
    Manager::new(client).install::<Gadget>().controller(Gadgets { outside })
}
