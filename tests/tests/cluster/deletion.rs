//! Objects go in order: clean-up first, then the object, then the children.

use std::sync::atomic::Ordering;
use std::time::Duration;

use windlass::prelude::*;

use crate::bench::Bench;
use crate::gadget::{FINALIZER, Outside, gadget, operator_with};

#[tokio::test]
async fn an_object_goes_only_after_its_clean_up_and_its_children_with_it() {
    let bench = Bench::start().await;
    let outside = Outside::default();
    let running = bench.cluster.spawn(operator_with(bench.cluster.client(), outside.clone()));
    let created = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    assert!(bench.gadgets.get("home").await.unwrap().has_finalizer(FINALIZER));

    outside.down.store(true, Ordering::Relaxed);
    bench.gadgets.delete("home").await.unwrap();
    bench.eventually("the clean-up fails", async || running.states()[0].1.backing_off == 1).await;
    let waiting = bench.gadgets.get("home").await.unwrap();
    assert!(waiting.is_terminating() && waiting.has_finalizer(FINALIZER));
    assert!(bench.data("home").await.is_some(), "children stay as long as their owner");

    outside.down.store(false, Ordering::Relaxed);
    bench
        .eventually("it is gone", async || bench.gadgets.get_opt("home").await.unwrap().is_none())
        .await;
    assert!(outside.cleaned.lock().unwrap().contains(&"home".to_owned()));
    if bench.cluster.is_embedded() {
        bench.eventually("its child follows", async || bench.data("home").await.is_none()).await;
    } else {
        // No garbage collector runs beside the real server here: the references that a collector
        // follows are there.
        let child = bench.children.get("home").await.unwrap();
        let owner = &child.metadata.owner_references.unwrap()[0];
        assert_eq!((owner.uid.as_str(), owner.controller), (created.uid(), Some(true)));
        assert_eq!(owner.block_owner_deletion, Some(true));
    }
}

#[tokio::test]
async fn an_object_deleted_while_nobody_looked_is_cleaned_up_by_the_next_process() {
    let bench = Bench::start().await;
    let first = bench.cluster.spawn(operator_with(bench.cluster.client(), Outside::default()));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    first.settled().await;
    first.stop().await;
    bench.gadgets.delete("home").await.unwrap();
    bench.clock().sleep(Duration::from_millis(500)).await;
    assert!(bench.gadgets.get("home").await.unwrap().is_terminating());

    let outside = Outside::default();
    let second = bench.cluster.spawn(operator_with(bench.cluster.client(), outside.clone()));
    second.settled().await;
    assert!(bench.gadgets.get_opt("home").await.unwrap().is_none());
    assert_eq!(*outside.cleaned.lock().unwrap(), ["home"]);
}

#[tokio::test]
async fn a_finalizer_of_somebody_else_is_left_to_them() {
    let bench = Bench::start().await;
    let outside = Outside::default();
    let running = bench.cluster.spawn(operator_with(bench.cluster.client(), outside.clone()));
    let mut object = gadget("home", "red");
    object.metadata.finalizers = Some(vec!["other.dev/hold".to_owned()]);
    bench.gadgets.create(&object).await.unwrap();
    running.settled().await;
    bench.gadgets.delete("home").await.unwrap();
    running.settled().await;
    let left = bench.gadgets.get("home").await.unwrap();
    assert_eq!(left.metadata.finalizers.unwrap(), ["other.dev/hold"]);
    assert_eq!(*outside.cleaned.lock().unwrap(), ["home"]);
}
