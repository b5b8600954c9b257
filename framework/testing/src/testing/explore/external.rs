//! Systems outside of Kubernetes in explorations: a state in memory whose calls are disturbed as
//! requests are.

// DESIGN.md, 267: An external system is a state that the world keeps, and its calls are requests

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::monitor::Monitor;
use super::world::World;
use windlass_apiserver::faults::FaultAction;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// A fake of a system outside of Kubernetes, from [`World::external`]. Clones share its state,
/// which outlives crashes of the operator.
pub struct ExternalWorld<S> {
    // Not the world: its operator holds this.
    monitor: Arc<Monitor>,
    clock: Clock,
    name: Arc<str>,
    state: Arc<Mutex<S>>,
}

impl<S> Clone for ExternalWorld<S> {
    fn clone(&self) -> Self {
        Self {
            monitor: Arc::clone(&self.monitor),
            clock: self.clock.clone(),
            name: Arc::clone(&self.name),
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> fmt::Debug for ExternalWorld<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalWorld").field("name", &self.name).finish_non_exhaustive()
    }
}

impl World {
    /// Adds a system outside of Kubernetes with a state of its own. Its
    /// [calls](ExternalWorld::call) are disturbed as the operator's requests are, and its state
    /// belongs to the end that all runs must come to.
    ///
    /// ```no_run
    /// # extern crate windlass_testing as windlass;
    /// # use std::collections::BTreeMap;
    /// # use windlass::manager::Manager;
    /// use windlass::testing::{ExternalWorld, explore};
    ///
    /// # type Records = BTreeMap<String, String>;
    /// # fn operator(client: windlass::client::Client, dns: Dns) -> Manager { Manager::new(client) }
    /// #[derive(Clone)]
    /// struct Dns(ExternalWorld<Records>);
    ///
    /// impl Dns {
    ///     async fn put(&self, host: &str, address: &str) -> Result<(), windlass::Error> {
    ///         let change = |records: &mut Records| drop(records.insert(host.into(), address.into()));
    ///         self.0.call(&format!("put {host}"), change).await
    ///     }
    /// }
    ///
    /// # fn example() {
    /// explore(|world| async move {
    ///     let dns = Dns(world.external("dns", Records::new()));
    ///     world.operator(move |client| operator(client, dns.clone()));
    ///     // Objects are created and changed here.
    /// });
    /// # }
    /// ```
    pub fn external<S: Serialize + Send + 'static>(
        &self,
        name: &str,
        state: S,
    ) -> ExternalWorld<S> {
        let state = Arc::new(Mutex::new(state));
        let (monitor, clock) = (self.shared_monitor(), self.clock());
        ExternalWorld { monitor, clock, name: name.into(), state }
    }
}

impl<S: Serialize + Send + 'static> ExternalWorld<S> {
    /// Makes a call of the operator: `action` reads or changes the state. `text` names the call in
    /// findings, with the same words for the same call: `create bucket shop`.
    ///
    /// # Errors
    /// When the call is refused, or its answer lost: the action may have happened.
    /// # Cancel safety
    /// The action may have happened.
    pub async fn call<T>(&self, text: &str, action: impl FnOnce(&mut S) -> T) -> Result<T, Error> {
        let Self { monitor, clock, .. } = self;
        let Some((number, actions)) = monitor.called(&self.name, text) else {
            // The process has crashed.
            return std::future::pending().await;
        };
        for action in &actions {
            match action {
                FaultAction::Hang => return std::future::pending().await,
                FaultAction::Delay(time) => clock.sleep(*time).await,
                FaultAction::Answer(code) => return Err(self.refused(text, *code)),
                _ => {}
            }
        }
        let done = {
            let mut state = self.state.lock();
            let before = json(&*state);
            let done = action(&mut state);
            monitor.answered(&self.name, number, before, json(&*state));
            done
        };
        for action in &actions {
            match action {
                FaultAction::ExecuteThenHang => return std::future::pending().await,
                FaultAction::ExecuteThenDelay(time) => clock.sleep(*time).await,
                FaultAction::ExecuteThenAnswer(code) => return Err(self.refused(text, *code)),
                FaultAction::ExecuteThenDrop => {
                    let text = format!("cannot {text}: {} closed the connection", self.name);
                    return Err(Error::new(ErrorKind::Other, text));
                }
                _ => {}
            }
        }
        // A crash that was due at this call.
        if monitor.is_cut() {
            return std::future::pending().await;
        }
        Ok(done)
    }

    /// Looks at the state, or changes it as others than the operator do; never disturbed.
    pub fn with<T>(&self, action: impl FnOnce(&mut S) -> T) -> T {
        let mut state = self.state.lock();
        let before = json(&*state);
        let done = action(&mut state);
        self.monitor.changed_outside(&self.name, before, json(&*state));
        done
    }

    fn refused(&self, text: &str, code: u16) -> Error {
        Error::new(ErrorKind::Other, format!("cannot {text}: {} answered {code}", self.name))
    }
}

/// Returns a state as JSON; null for one that cannot be written.
fn json(state: &impl Serialize) -> Value {
    serde_json::to_value(state).unwrap_or_default()
}
