//! Tables: a reconciler runs once against given objects, and its writes, requests and outcome are
//! compared with the expected ones.
//!
//! A case is data. It runs without an API server, over answers that are made from the given
//! objects, or on a server that stores these objects. In both a run is a plan of one object: every
//! write is a dry run.
//!
//! Files: `expected` has the expectations, `given` puts objects in place, `answers` stands in for a
//! server behind `connection`, `compare` finds the differences, `fields` has objects by paths.

// DESIGN.md, 265: A case of a table is the plan of one object

mod answers;
mod compare;
mod connection;
mod expected;
mod fields;
mod given;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::Resource;
use windlass_runtime::controller::{PlannedObject, PlannedOutcome};
use windlass_runtime::events::EventKind;
use windlass_runtime::manager::{Manager, PlanOptions, install_all};

use self::expected::{Effect, ExpectedChange, ExpectedEffects};
use self::given::{GivenObject, NamespaceNames};
use super::TestCluster;

/// Makes the operator of a table.
type MakeOperator = Arc<dyn Fn(Client) -> Manager + Send + Sync>;

/// Cases of one operator, each of them one reconcile of one object.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::manager::Manager;
/// use windlass::testing::{Case, Table};
///
/// # fn operator(client: windlass::client::Client) -> Manager { Manager::new(client) }
/// # fn map(name: &str) -> ConfigMap { ConfigMap::default() }
/// # async fn example() {
/// let table = Table::new(operator)
///     .case(Case::new("a copy is made", &map("settings")).creates(&map("copy")))
///     .case(Case::new("a copy that is there is left alone", &map("settings")).given(&map("copy")));
/// table.check().await; // without an API server
/// table.check_on_server().await; // the embedded one, or a real one
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a table does nothing until it is checked"]
pub struct Table {
    make: MakeOperator,
    cases: Vec<Case>,
}

/// One reconcile: the object, the others that exist, and the expected effects.
///
/// | effect | expectation | when there is none |
/// |---|---|---|
/// | objects created, changed, deleted | `creates`, `creates_unowned`, `updates`, `deletes` | each is a difference |
/// | status of the object | `status` | a changed status is a difference |
/// | end and requeue | `requeues_after`, `waits`, `fails` | success without a requeue |
/// | calls of external systems | `calls` | each is a difference |
/// | Events, reads | `event`, `reads` | not compared |
///
/// Objects of expectations are partial: the fields that they have are compared, no others. Values
/// of Secrets and of `ControllerRevision`s are not compared. An object without a namespace is in
/// the namespace of the case, as one that a manifest without a namespace makes; owner references of
/// given objects get the uids of the given owners.
#[derive(Clone, Debug)]
#[must_use = "a case does nothing until its table is checked"]
pub struct Case {
    name: String,
    object: GivenObject,
    given: Vec<GivenObject>,
    expected: ExpectedEffects,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("cases", &self.cases).finish_non_exhaustive()
    }
}

impl Case {
    /// Returns a case without expectations: the reconcile of `object` succeeds and changes nothing.
    /// `name` is a sentence about the behaviour.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn new<K: Resource>(name: &str, object: &K) -> Self {
        let (given, expected) = (Vec::new(), ExpectedEffects::default());
        Self { name: name.to_owned(), object: GivenObject::of(object), given, expected }
    }

    /// Adds an object that exists, with its status. One with a `deletionTimestamp` is being
    /// deleted, and needs a finalizer for that.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn given<K: Resource>(mut self, object: &K) -> Self {
        self.given.push(GivenObject::of(object));
        self
    }

    /// Expects that an object is created with the fields that `object` has, and is owned by the
    /// reconciled one. The name of one that the server names is its `generateName`, with `*` behind
    /// it.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn creates<K: Resource>(self, object: &K) -> Self {
        self.change(Effect::Create { is_owned: true }, GivenObject::of(object))
    }

    /// Expects that an object is created, and is not owned by the reconciled one.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn creates_unowned<K: Resource>(self, object: &K) -> Self {
        self.change(Effect::Create { is_owned: false }, GivenObject::of(object))
    }

    /// Expects that a given object is changed, and has the fields of `object` afterwards. Its
    /// status counts as any other field, but for the reconciled object, whose status has an
    /// [expectation](Self::status) of its own.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn updates<K: Resource>(self, object: &K) -> Self {
        self.change(Effect::Update, GivenObject::of(object))
    }

    /// Expects that an object is deleted, in the namespace of the case for a namespaced kind.
    ///
    /// # Panics
    /// When `K` is known at run time only.
    pub fn deletes<K: Resource>(self, name: &str) -> Self {
        self.change(Effect::Delete, GivenObject::named::<K>(name))
    }

    /// Expects that the status of the reconciled object is written, and has the fields of `status`
    /// afterwards. Conditions are found by their types.
    ///
    /// # Panics
    /// When `status` is not written as JSON.
    pub fn status(mut self, status: impl Serialize) -> Self {
        self.expected.status = Some(given::json_of(&status));
        self
    }

    /// Expects a success that asks for another reconcile after `delay`.
    pub fn requeues_after(mut self, delay: Duration) -> Self {
        self.expected.requeue_after = Some(delay);
        self
    }

    /// Expects that the reconcile waits, for a reason of that name.
    pub fn waits(mut self, reason: &str) -> Self {
        self.expected.waits = Some(reason.to_owned());
        self
    }

    /// Expects that the reconcile fails with an error that contains `text`.
    pub fn fails(mut self, text: &str) -> Self {
        self.expected.fails = Some(text.to_owned());
        self
    }

    /// Expects an Event about the object, beside others.
    pub fn event(mut self, kind: EventKind, reason: &str) -> Self {
        self.expected.events.push(format!("{} {reason}", kind.as_str()));
        self
    }

    /// Expects a read, beside others: `get secrets tls` for a request, `watch secrets tls` for a
    /// [registered read](windlass_runtime::controller::Context::watch), `list pods` for a list; the
    /// plural has its group behind it, the name its namespace before it if that is not the
    /// namespace of the case, and an index its value: `watch websites.example.dev by shop.example`.
    pub fn reads(mut self, read: &str) -> Self {
        self.expected.reads.push(read.to_owned());
        self
    }

    /// Expects a call of an external system, whose text contains `text`. Such calls are noted, not
    /// made, by [external resources](windlass_runtime::external) and by code that asks
    /// [`note_external_call`](windlass_runtime::controller::note_external_call).
    pub fn calls(mut self, text: &str) -> Self {
        self.expected.calls.push(text.to_owned());
        self
    }

    fn change(mut self, effect: Effect, object: GivenObject) -> Self {
        self.expected.changes.push(ExpectedChange { effect, object });
        self
    }
}

impl Table {
    /// Returns a table of the operator that `make` builds, once for each case. It must build the
    /// manager with the given client, which makes dry runs only.
    pub fn new(make: impl Fn(Client) -> Manager + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), cases: Vec::new() }
    }

    /// Adds a case.
    pub fn case(mut self, case: Case) -> Self {
        self.cases.push(case);
        self
    }

    /// Checks all cases without an API server. Given objects are taken as they are, without
    /// defaults and rules; applies and merge patches are answered by a merge. Other patches,
    /// selectors of sets and removals by an apply need a server.
    ///
    /// # Panics
    /// When a case differs; the text has the differences of all cases.
    pub async fn check(&self) {
        if let Err(text) = self.try_check().await {
            panic!("{text}");
        }
    }

    /// Does the same as [`check`](Self::check).
    ///
    /// # Errors
    /// The differences of all cases.
    pub async fn try_check(&self) -> Result<(), String> {
        let mut reports = Vec::new();
        for case in &self.cases {
            let differences = match self.without_server(case).await {
                Ok(planned) => compare::differences(case, &planned, &NamespaceNames::default()),
                Err(error) => vec![error.to_string()],
            };
            reports.push((case.name.as_str(), differences));
        }
        report_failures("without an API server", &reports)
    }

    /// Checks all cases on a server, each in a [cluster](TestCluster) of its own: the embedded
    /// server, or the real one with `WINDLASS_TEST_SERVER=real`. Definitions of the operator are
    /// installed, and it acts with the rights of its printed Role. On a real server objects with a
    /// `creationTimestamp` are created in the order of these times, one a second.
    ///
    /// # Panics
    /// When a case differs, or an object cannot be stored; the text has the differences of all
    /// cases.
    pub async fn check_on_server(&self) {
        if let Err(text) = self.try_check_on_server().await {
            panic!("{text}");
        }
    }

    /// Does the same as [`check_on_server`](Self::check_on_server).
    ///
    /// # Errors
    /// The differences of all cases.
    pub async fn try_check_on_server(&self) -> Result<(), String> {
        let mut reports = Vec::new();
        for case in &self.cases {
            let cluster = TestCluster::start().await;
            let differences =
                match given::place(&cluster, case, &(self.make)(cluster.client())).await {
                    Ok(places) => {
                        let planned = self.on_server(&cluster, case, &places).await;
                        given::remove(&cluster, case).await;
                        match planned {
                            Ok(planned) => compare::differences(case, &planned, &places),
                            Err(error) => vec![error.to_string()],
                        }
                    }
                    Err(error) => vec![format!("cannot put the given objects in place: {error}")],
                };
            reports.push((case.name.as_str(), differences));
        }
        report_failures("on the API server", &reports)
    }

    /// Runs a case over answers from its given objects.
    async fn without_server(&self, case: &Case) -> Result<PlannedObject, Error> {
        let client = connection::client(given::stored(case))?.dry_run();
        planned((self.make)(client), case, &NamespaceNames::default()).await
    }

    /// Runs a case on a server that has its objects.
    async fn on_server(
        &self,
        cluster: &TestCluster,
        case: &Case,
        places: &NamespaceNames,
    ) -> Result<PlannedObject, Error> {
        let client = cluster.client().dry_run();
        let manager = (self.make)(client.clone());
        let (restricted, _) = cluster.restricted(&manager)?;
        let mut manager = manager.with_client(client.over_connections_of(&restricted));
        if manager.namespaces.is_empty() && !cluster.is_embedded() {
            manager.namespaces.clone_from(&cluster.namespaces.lock());
        }
        planned(manager, case, places).await
    }
}

/// Plans the object of a case.
async fn planned(
    mut manager: Manager,
    case: &Case,
    places: &NamespaceNames,
) -> Result<PlannedObject, Error> {
    // Installed on a server, and not there without one.
    manager.definitions.clear();
    let mut options = PlanOptions::default();
    options.kind = Some(case.object.info.group_resource());
    options.objects = vec![places.key(&case.object).to_string()];
    let plan = manager.plan(options).await?;
    let mut objects = plan.objects.into_iter();
    let text = "no controller of the operator has reconciled the object of the case";
    let mut all = objects.next().ok_or_else(|| Error::new(ErrorKind::Usage, text))?;
    // Several controllers of one kind count as one.
    for other in objects {
        all.changes.extend(other.changes);
        all.events.extend(other.events);
        all.reads.extend(other.reads);
        all.external_calls.extend(other.external_calls);
        all.requeue_after = all.requeue_after.into_iter().chain(other.requeue_after).min();
        if all.outcome == PlannedOutcome::Reconciled {
            all.outcome = other.outcome;
        }
    }
    Ok(all)
}

/// Installs the definitions of an operator.
async fn install(client: &Client, manager: &Manager) -> Result<(), Error> {
    let mut definitions = Vec::new();
    for definition in &manager.definitions {
        match definition {
            Ok(definition) => definitions.push(definition.clone()),
            Err(error) => return Err(Error::new(error.kind(), error.to_string())),
        }
    }
    install_all(client, &definitions, false).await.map(drop)
}

/// Returns the report of the cases that differ as an error.
fn report_failures(place: &str, reports: &[(&str, Vec<String>)]) -> Result<(), String> {
    let failed: Vec<_> =
        reports.iter().filter(|(_, differences)| !differences.is_empty()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let mut text = format!("{} of {} cases differ {place}", failed.len(), reports.len());
    for (name, differences) in failed {
        text.push_str(&format!("\n\n{name}"));
        differences.iter().for_each(|difference| text.push_str(&format!("\n  {difference}")));
    }
    Err(text)
}
