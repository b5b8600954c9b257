//! Records in a DNS service outside of the cluster: created for each `DnsRecord`, and removed
//! before the object goes, however often the service fails.
//!
//! ```text
//! cargo run --bin finalizer_external
//! ```
//!
//! The program serves a cluster and a DNS service, creates a record and deletes it, prints the
//! events, and ends without a signal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use serde::{Deserialize, Serialize};
use windlass::api::WaitCondition;
use windlass::controller::Finalize;
use windlass::error::BoxError;
use windlass::local::LocalCluster;
use windlass::prelude::*;

const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

/// A name in the DNS, and where it leads.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct DnsRecord {
    metadata: ObjectMeta,
    spec: DnsRecordSpec,
    status: Option<DnsRecordStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct DnsRecordSpec {
    /// Never changes: the clean-up removes the host that the object names, and no former one.
    #[schema(immutable)]
    host: String,
    address: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct DnsRecordStatus {
    conditions: Conditions,
}

/// The external service: independent of Kubernetes, and answers every second call only.
#[derive(Clone, Debug, Default)]
pub struct Dns {
    state: Arc<Mutex<DnsState>>,
}

#[derive(Debug, Default)]
struct DnsState {
    calls: u64,
    records: BTreeMap<String, String>,
}

impl Dns {
    fn call<T>(&self, action: impl FnOnce(&mut DnsState) -> T) -> std::result::Result<T, BoxError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls += 1;
        match state.calls % 2 {
            1 => Err("the DNS service is not available".into()),
            _ => Ok(action(&mut state)),
        }
    }

    /// Makes `host` lead to `address`, in place of any former address.
    fn put(&self, host: &str, address: &str) -> std::result::Result<(), BoxError> {
        self.call(|dns| drop(dns.records.insert(host.to_owned(), address.to_owned())))
    }

    /// Makes `host` lead nowhere; it is no error when it does not lead anywhere.
    fn remove(&self, host: &str) -> std::result::Result<(), BoxError> {
        self.call(|dns| drop(dns.records.remove(host)))
    }

    fn records(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).records.len()
    }
}

/// The finalizer is on every record before `reconcile` sees it for the first time, so no external
/// state is created that would not be cleaned up. The finalizer is taken off when `cleanup` has
/// succeeded.
#[derive(Controller)]
#[controller(for = DnsRecord, finalizer = "example.dev/dns")]
struct Records {
    dns: Dns,
}

impl Reconciler for Records {
    type Object = DnsRecord;

    async fn reconcile(&self, record: &DnsRecord, cx: &Context<Self>) -> Result {
        // Repeatable: after an error, and after every restart, the call is repeated.
        self.dns.put(&record.spec.host, &record.spec.address)?;
        println!("{}: {} leads to {}", record.key(), record.spec.host, record.spec.address);
        cx.set_condition(met("Ready", "Published", &record.spec.host)).await?;
        // The DNS does not report changes that are made by hand.
        Ok(Action::requeue_after(Duration::from_secs(300)))
    }
}

impl Finalize for Records {
    async fn cleanup(&self, record: &DnsRecord, _: &Context<Self>) -> Result<()> {
        // An error keeps the finalizer on, and thereby the object: the clean-up is retried with
        // backoff.
        if let Err(error) = self.dns.remove(&record.spec.host) {
            println!("{}: cannot clean up yet: {error}", record.key());
            return Err(error.into());
        }
        println!("{}: {} leads nowhere", record.key(), record.spec.host);
        Ok(())
    }
}

/// Returns the operator, for `main` and for tests.
fn operator(client: Client, dns: Dns) -> Manager {
    Manager::new(client).install::<DnsRecord>().controller(Records { dns })
}

#[tokio::main]
async fn main() -> std::result::Result<(), BoxError> {
    let cluster = LocalCluster::start("finalizer-external").await?;
    let client = cluster.client();
    let shop = object!(Namespace { metadata: { name: "shop" } });
    client.all().create(&shop).await?;
    let dns = Dns::default();
    let manager = operator(client.clone(), dns.clone());
    let running = manager.without_leader_election().without_health().without_metrics().start();

    let records = client.namespace::<DnsRecord>("shop");
    let spec = DnsRecordSpec { host: "www.example".into(), address: "192.0.2.1".into() };
    let home = DnsRecord::new("home", spec);
    // The operator installs the kind first.
    let created = async {
        loop {
            match records.create(&home).await {
                Err(error) if error.code() == Some(404) => tokio::time::sleep(PAUSE).await,
                created => break created,
            }
        }
    };
    let home = tokio::time::timeout(PATIENCE, created).await??;
    records.wait_for("home", &WaitCondition::is("Ready", "True"), PATIENCE).await?;
    println!("records outside: {}", dns.records());
    records.delete("home").await?;
    records.wait_deleted("home", home.uid(), PATIENCE).await?;
    println!("records outside: {}", dns.records());
    running.stop();
    running.join().await?;
    println!("done");
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;
    use windlass::testing::{Case, Exploration, Table, TestCluster, check};

    use super::*;

    fn record(name: &str) -> DnsRecord {
        let (host, address) = (format!("{name}.example"), "192.0.2.1".to_owned());
        DnsRecord::new(name, DnsRecordSpec { host, address })
    }

    fn with_finalizer(is_terminating: bool) -> DnsRecord {
        let mut record = record("a");
        record.metadata.finalizers = Some(vec!["example.dev/dns".to_owned()]);
        let deleted = is_terminating.then(|| Time("2026-01-01T00:00:00Z".parse().unwrap()));
        record.metadata.deletion_timestamp = deleted;
        record
    }

    /// An operator whose service has answered so many calls before.
    fn after(calls: u64) -> impl Fn(Client) -> Manager + Send + Sync {
        move |client| {
            let state = DnsState { calls, ..DnsState::default() };
            operator(client, Dns { state: Arc::new(Mutex::new(state)) })
        }
    }

    #[tokio::test]
    async fn cases_hold_without_a_server_and_on_one() {
        let ready = json!({ "type": "Ready", "status": "True", "reason": "Published" });
        let answers = Table::new(after(1))
            .case(
                Case::new("a record is looked at every five minutes", &with_finalizer(false))
                    .status(json!({ "conditions": [ready] }))
                    .requeues_after(Duration::from_secs(300)),
            )
            .case(Case::new("a finalizer goes last", &with_finalizer(true)).updates(&record("a")));
        let fails = Table::new(after(0))
            .case(Case::new("Ready is not early", &with_finalizer(false)).fails("not available"))
            .case(Case::new("a finalizer stays", &with_finalizer(true)).fails("not available"));
        for table in [answers, fails] {
            table.check().await;
            table.check_on_server().await;
        }
    }

    #[tokio::test]
    async fn a_record_outside_outlives_its_object_by_no_failure_of_the_service() {
        let cluster = TestCluster::start().await;
        cluster.install::<DnsRecord>().await;
        let dns = Dns::default();
        let running = cluster.spawn(operator(cluster.client(), dns.clone()));
        let records = cluster.client().namespace::<DnsRecord>(cluster.namespace());
        for name in ["a", "b", "c"] {
            records.create(&record(name)).await.unwrap();
        }
        running.settled().await;
        let outside = || dns.state.lock().unwrap().records.clone();
        let lead = |names: &[&str]| {
            let records = names.iter().map(|name| (format!("{name}.example"), "192.0.2.1".into()));
            records.collect::<BTreeMap<_, String>>()
        };
        assert_eq!(outside(), lead(&["a", "b", "c"]));
        records.delete("b").await.unwrap();
        running.settled().await;
        assert!(records.get_opt("b").await.unwrap().is_none());
        assert_eq!(outside(), lead(&["a", "c"]));
        running.stop().await;
    }
    #[test]
    fn a_record_leads_where_its_object_says_and_goes_with_it_whatever_fails() {
        let budget = Duration::from_secs(10);
        let report = Exploration::new().runs(60).budget(budget).run(|world| async move {
            let dns = Dns::default();
            let outside = dns.clone();
            world.install::<DnsRecord>().await;
            world.operator(move |client| operator(client, outside.clone()));
            let unchanged = world.exercise(&record("a")).await;
            assert_eq!(unchanged, [".spec.host"]);
            world.eventually("nothing is left outside", async || dns.records() == 0).await;
        });
        assert!(report.findings().is_empty(), "{report}");
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<DnsRecord>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
