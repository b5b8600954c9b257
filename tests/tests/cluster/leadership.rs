//! Two replicas, of which a single replica works.

use std::time::Duration;

use windlass::leader::{LeaderElection, Leadership};
use windlass::manager::Exit;

use crate::bench::Bench;
use crate::gadget::{gadget, operator};

#[tokio::test]
async fn l8_a_follower_takes_over_within_a_second_of_a_clean_stop() {
    let bench = Bench::start().await;
    let replica = |identity: &str| {
        let election =
            LeaderElection::new("gadgets").namespace(bench.cluster.namespace()).identity(identity);
        bench.cluster.spawn(operator(bench.cluster.client()).leader_election_with(election))
    };
    let first = replica("first");
    bench.eventually("one leads", async || first.leadership() == Some(Leadership::Leading)).await;
    let second = replica("second");
    let waits = Some(Leadership::Candidate { holder: Some("first".to_owned()) });
    bench.eventually("the other waits", async || second.leadership() == waits).await;
    bench.gadgets.create(&gadget("one", "red")).await.unwrap();
    bench.eventually("the leader works", async || bench.data("one").await.is_some()).await;
    assert_eq!(second.states()[0].1.reconciles, 0, "a follower does not work");
    assert!(second.readiness().is_ready(), "{:?}", second.readiness());

    assert_eq!(first.stop().await, Exit::Drained);
    let clock = bench.clock();
    let stopped = clock.now();
    bench.gadgets.create(&gadget("two", "red")).await.unwrap();
    bench.eventually("the follower works", async || bench.data("two").await.is_some()).await;
    let took = clock.now() - stopped;
    assert!(took <= Duration::from_secs(1), "{took:?}");
    assert_eq!(second.leadership(), Some(Leadership::Leading));
}
