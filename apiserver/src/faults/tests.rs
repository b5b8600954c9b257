use super::*;

fn subject<'a>(verb: &'a str, resource: &'a str, name: &'a str) -> MatchedRequest<'a> {
    MatchedRequest {
        verb,
        group: "",
        resource,
        subresource: "",
        namespace: "default",
        name,
        path: "/api/v1/x",
        agent: "test/1",
        user: "admin",
    }
}

#[test]
fn a_fault_spares_the_first_and_strikes_as_often_as_asked() {
    let faults = Faults::new();
    let handle = faults.add(
        Fault::new(FaultAction::Answer(500))
            .on("update|patch")
            .resource("leases")
            .after(1)
            .times(2),
    );
    let struck = |verb: &str| !faults.strike(&subject(verb, "leases", "a")).is_empty();
    assert!(!struck("get"));
    assert_eq!(
        [struck("update"), struck("patch"), struck("update"), struck("update")],
        [false, true, true, false]
    );
    assert_eq!(handle.hits(), 2);
}

#[test]
fn a_removed_fault_strikes_no_more() {
    let faults = Faults::new();
    let handle = faults.add(Fault::new(FaultAction::Hang).always().name("a"));
    assert_eq!(faults.strike(&subject("get", "pods", "a")).len(), 1);
    assert_eq!(faults.strike(&subject("get", "pods", "b")).len(), 0);
    handle.remove();
    assert_eq!(faults.strike(&subject("get", "pods", "a")).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn orders_reach_the_open_watches_of_the_resource_only() {
    let faults = Faults::new();
    let (mut pods, leases) = (faults.tap("pods"), faults.tap("leases"));
    assert_eq!(faults.open_watches("*"), 2);
    faults.close_watches("pods");
    assert!(matches!(pods.next().await, Some(WatchCommand::Close)));
    faults.pause_watches("leases");
    assert!(leases.paused() && !pods.paused());
    drop(pods);
    assert_eq!(faults.open_watches("pods"), 0);
}
