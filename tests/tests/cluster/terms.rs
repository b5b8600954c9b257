//! Ends of terms of leadership, and the time after them: on the embedded server, in virtual time.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::clock::Clock;
use windlass::events::EventKind;
use windlass::leader::{LeaderElection, Leadership};
use windlass::manager::Exit;
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};
use windlass_apiserver::faults::{Fault, FaultAction as Do};
use windlass_tests::widget::{self, Widget, widget};

const SECOND: Duration = Duration::from_secs(1);

/// Gives a write up on cancellation, like a reconciler that heeds cancellation.
#[derive(Debug, Controller)]
#[controller(for = Widget, owns(ConfigMap))]
struct Hasty;

impl Reconciler for Hasty {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, cx: &Context<Self>) -> Result {
        let mut child = ConfigMap::default();
        child.metadata.name = Some(widget.name().to_owned());
        tokio::select! {
            biased;
            () = cx.cancellation().cancelled() => {}
            applied = cx.apply_owned(child) => drop(applied?),
        }
        Ok(Action::done())
    }
}

/// Ends reconciles in the last moment of a drain of ten seconds, with an Event.
#[derive(Debug, Controller)]
#[controller(for = Widget)]
struct Late;

impl Reconciler for Late {
    type Object = Widget;

    async fn reconcile(&self, _: &Widget, cx: &Context<Self>) -> Result {
        cx.cancellation().cancelled().await;
        cx.clock().sleep(Duration::from_millis(9_800)).await;
        cx.event(EventKind::Normal, "Ended", "at last");
        Ok(Action::done())
    }
}

/// Replicas of operators for widgets on the same server.
struct Bench {
    cluster: TestCluster,
    clock: Clock,
    widgets: Api<Widget>,
    children: Api<ConfigMap>,
}

impl Bench {
    async fn start() -> Self {
        let cluster = TestCluster::builder().embedded().start().await;
        tokio::time::pause();
        cluster.install::<Widget>().await;
        let (client, namespace) = (cluster.client(), cluster.namespace());
        let clock = client.environment().clock.clone();
        let (widgets, children) = (client.namespace(namespace), client.namespace(namespace));
        Self { cluster, clock, widgets, children }
    }

    /// Returns the client of a replica, to the server a user of that name.
    fn client(&self, replica: &str) -> Client {
        self.cluster.client_as(replica, &["system:masters"])
    }

    fn election(&self, replica: &str) -> LeaderElection {
        LeaderElection::new("widgets").namespace(self.cluster.namespace()).identity(replica)
    }

    /// Starts a replica of the operator whose controller ends reconciles in the last moment.
    fn replica(&self, name: &str) -> RunningOperator {
        let manager = widget::operator(self.client(name));
        self.cluster.spawn(manager.leader_election_with(self.election(name)))
    }

    /// Starts a replica whose controller gives writes up.
    fn hasty(&self, name: &str) -> RunningOperator {
        let manager = Manager::new(self.client(name)).controller(Hasty);
        self.cluster.spawn(manager.leader_election_with(self.election(name)))
    }

    async fn holder(&self) -> String {
        let leases: Api<Lease> = self.cluster.client().namespace(self.cluster.namespace());
        let lease = leases.get("widgets").await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }

    /// Writes a holder into the Lease, as a person or another program would.
    async fn give_to(&self, holder: &str) {
        let leases: Api<Lease> = self.cluster.client().namespace(self.cluster.namespace());
        let patch = json!({ "spec": { "holderIdentity": holder } });
        leases.patch("widgets", Patch::Merge(patch)).await.unwrap();
    }

    async fn leads(&self, replica: &RunningOperator) {
        let leads = async || replica.leadership() == Some(Leadership::Leading);
        self.eventually("it leads", leads).await;
    }

    /// Creates a widget, and waits for the child.
    async fn works(&self, name: &str) {
        self.widgets.create(&widget(name, "x")).await.unwrap();
        let is_there = async || self.children.get_opt(name).await.unwrap().is_some();
        self.eventually("the child is there", is_there).await;
    }

    async fn eventually(&self, condition: &str, mut met: impl AsyncFnMut() -> bool) {
        let wait = async {
            while !met().await {
                self.clock.sleep(Duration::from_millis(25)).await;
            }
        };
        assert!(self.clock.timeout(60 * SECOND, wait).await.is_some(), "never: {condition}");
    }

    /// Returns the number of times that a cache was filled, by a list or by a watch that begins
    /// with a list.
    fn fills(&self, resource: &str) -> usize {
        let requests = self.cluster.server().requests();
        let fills = requests.iter().filter(|r| r.verb == "list" || r.verb == "watch");
        fills.filter(|r| r.resource == resource).count()
    }
}

#[tokio::test]
async fn l8_a_write_that_a_reconcile_gave_up_at_the_stop_keeps_the_lease_until_it_is_over() {
    let bench = Bench::start().await;
    let first = bench.hasty("first");
    bench.leads(&first).await;
    let second = bench.hasty("second");
    bench.clock.sleep(SECOND).await;
    let slow = Fault::new(Do::Delay(8 * SECOND)).resource("configmaps").on("patch").user("first");
    let slow = bench.cluster.server().faults().add(slow);
    bench.widgets.create(&widget("a", "x")).await.unwrap();
    bench.eventually("the write is under way", async || slow.hits() == 1).await;

    let stopped = bench.clock.now();
    assert_eq!(first.stop_anyway().await, Exit::Drained, "every reconcile ended");
    let took = bench.clock.now() - stopped;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(bench.holder().await, "first", "the server may still execute it");
    bench.leads(&second).await;
    let took = bench.clock.now() - stopped;
    assert!(took >= 10 * SECOND, "the server was given a longer time: {took:?}");
    assert!(took <= 20 * SECOND, "{took:?}");
    bench.works("b").await;
}

#[tokio::test]
async fn l8_the_lease_is_given_back_at_once_when_the_write_was_answered_before_the_stop() {
    let bench = Bench::start().await;
    let first = bench.hasty("first");
    bench.leads(&first).await;
    let second = bench.hasty("second");
    bench.works("a").await;
    let stopped = bench.clock.now();
    assert_eq!(first.stop_anyway().await, Exit::Drained);
    bench.leads(&second).await;
    let took = bench.clock.now() - stopped;
    assert!(took <= SECOND, "{took:?}");
}

#[tokio::test]
async fn l8_an_operator_whose_work_was_cut_leaves_the_lease_to_expire() {
    let bench = Bench::start().await;
    let manager = widget::operator(bench.client("first")).drain(SECOND);
    let first = bench.cluster.spawn(manager.leader_election_with(bench.election("first")));
    bench.leads(&first).await;
    bench.widgets.create(&widget("a", "slow")).await.unwrap();
    bench.clock.sleep(SECOND).await;
    assert_eq!(first.stop_anyway().await, Exit::Cut);
    assert_eq!(bench.holder().await, "first");
    let stopped = bench.clock.now();
    let second = bench.replica("second");
    bench.leads(&second).await;
    let took = bench.clock.now() - stopped;
    assert!(took >= 10 * SECOND, "{took:?}");
}

#[tokio::test]
async fn l8_a_drain_that_ends_in_its_last_moment_gives_the_lease_back_however_slow_its_events_are()
{
    let bench = Bench::start().await;
    let slow = Fault::new(Do::Delay(Duration::from_millis(1_500))).resource("events").on("create");
    let _slow = bench.cluster.server().faults().add(slow.always());
    let manager = Manager::new(bench.client("first")).controller(Late).drain(10 * SECOND);
    let first = bench.cluster.spawn(manager.leader_election_with(bench.election("first")));
    bench.leads(&first).await;
    bench.widgets.create(&widget("a", "x")).await.unwrap();
    let works = async || first.states()[0].1.working == 1;
    bench.eventually("the reconcile began", works).await;
    assert_eq!(first.stop_anyway().await, Exit::Drained);
    assert_eq!(bench.holder().await, "");
}

#[tokio::test]
async fn l9_after_a_lost_lease_an_operator_works_again_with_its_caches_warm() {
    let bench = Bench::start().await;
    let first = bench.replica("first");
    bench.leads(&first).await;
    bench.works("a").await;
    let filled = (bench.fills("widgets"), bench.fills("configmaps"));
    assert!(filled.0 > 0 && filled.1 > 0, "{filled:?}");
    bench.give_to("thief").await;
    let waits = Some(Leadership::Candidate { holder: Some("thief".to_owned()) });
    bench.eventually("it lost the lease", async || first.leadership() == waits).await;
    assert!(first.is_running() && first.readiness().is_ready(), "{:?}", first.readiness());
    bench.widgets.create(&widget("b", "x")).await.unwrap();
    bench.clock.sleep(5 * SECOND).await;
    assert!(bench.children.get_opt("b").await.unwrap().is_none(), "it wrote without the lease");
    let cached = first.informers().informer::<Widget>().store();
    assert_eq!(cached.len(), 2, "its caches follow all the same");

    bench.give_to("").await;
    bench.leads(&first).await;
    let is_there = async || bench.children.get_opt("b").await.unwrap().is_some();
    bench.eventually("what came meanwhile is worked on", is_there).await;
    bench.works("c").await;
    assert_eq!((bench.fills("widgets"), bench.fills("configmaps")), filled, "filled again");
    assert_eq!(first.stop_anyway().await, Exit::Drained);
    assert_eq!(bench.holder().await, "");
}

#[tokio::test]
async fn an_operator_lends_the_lease_to_one_that_asks_and_works_again_after_it() {
    let bench = Bench::start().await;
    let lends = bench.election("operator").lend(true);
    let manager = widget::operator(bench.client("operator")).leader_election_with(lends);
    let operator = bench.cluster.spawn(manager);
    bench.leads(&operator).await;
    bench.works("a").await;

    let asks = bench.election("laptop").ask(true);
    let manager = widget::operator(bench.client("laptop")).leader_election_with(asks);
    let laptop = bench.cluster.spawn(manager);
    bench.leads(&laptop).await;
    assert_eq!(bench.holder().await, "laptop");
    let waits = Some(Leadership::Candidate { holder: Some("laptop".to_owned()) });
    bench.eventually("the operator waits", async || operator.leadership() == waits).await;
    assert!(operator.is_running() && operator.readiness().is_ready());
    bench.works("b").await;
    let by = |user: &str| {
        let requests = bench.cluster.server().requests();
        let writes = requests.iter().filter(|r| r.resource == "configmaps" && r.verb == "patch");
        writes.filter(|r| r.user == user).count()
    };
    let lent = by("laptop");
    assert!(by("operator") == 1 && lent > 0, "only the laptop writes: {lent}");

    assert_eq!(laptop.stop().await, Exit::Drained);
    bench.leads(&operator).await;
    bench.works("c").await;
    assert!(by("operator") > 1 && by("laptop") == lent);
    assert_eq!(operator.stop().await, Exit::Drained);
}
