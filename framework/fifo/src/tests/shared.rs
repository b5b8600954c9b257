//! `Shared`: waiting, waking, closing, and events while an item is processed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Pod, Store, name_of};
use crate::{
    Closed, Deleted, DeltaFifo, EnqueueError, Fifo, ObjectDelta, ProcessOutcome, RealFifo, Shared,
    unsynced,
};

type Done = ProcessOutcome<()>;

fn fifo() -> Arc<Shared<Fifo<&'static str, Pod>>> {
    Arc::new(Shared::new("pods", Fifo::new(name_of)))
}

fn closed() -> Closed {
    Closed { name: Arc::from("pods") }
}

#[tokio::test(start_paused = true)]
async fn a_pop_waits_for_an_item_and_producers_do_not_wait_for_it() {
    let queue = fifo();
    let (send, receive) = oneshot::channel();
    let popper = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move {
            let mut found = None;
            let outcome = queue.pop(|(_, pod), _| {
                found = Some(*pod);
                Done::Done
            });
            assert_eq!(outcome.await, Ok(ProcessOutcome::Done));
            send.send(found).unwrap();
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add(("a", 1)).await.unwrap();
    assert_eq!(receive.await.unwrap(), Some(("a", 1)));
    popper.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn mechanism_21_producers_add_while_an_item_is_processed() {
    let queue = fifo();
    queue.add(("a", 1)).await.unwrap();
    let outcome = queue.pop(|_, _| {
        // Polled inside of `process`: if the lock were held, this would never end.
        let mut add = Box::pin(queue.add(("b", 1)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(Future::poll(add.as_mut(), &mut context).is_ready());
        assert_eq!(queue.len(), 1);
        Done::Done
    });
    outcome.await.unwrap();
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn mechanism_21_the_first_list_counts_as_popped_only_after_its_processing() {
    let queue = fifo();
    assert!(queue.replace(vec![("a", 1)], "1", &()).await.is_empty());
    let outcome = queue.pop(|_, is_initial| {
        assert!(is_initial && queue.is_empty());
        assert!(!queue.has_synced(), "it is still being processed");
        Done::Done
    });
    outcome.await.unwrap();
    assert!(queue.has_synced());
    queue.synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn mechanism_21_close_unblocks_every_pop_and_what_is_queued_can_still_be_popped() {
    let queue = fifo();
    let poppers: Vec<_> = (0..5)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.pop(|_, _| Done::Done).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.close();
    for popper in poppers {
        assert_eq!(popper.await.unwrap(), Err(closed()));
    }
    assert_eq!(closed().to_string(), "the queue \"pods\" is closed");

    let queue = fifo();
    queue.add(("a", 1)).await.unwrap();
    queue.close();
    let refused = queue.add(("b", 1)).await.unwrap_err();
    assert!(matches!(refused, EnqueueError::Closed(("b", 1))));
    assert!(queue.delete(("b", 1), &()).await.is_err());
    assert_eq!(queue.replace(vec![("b", 1), ("c", 1)], "1", &()).await.len(), 2);
    assert_eq!(queue.pop(|_, _| Done::Done).await, Ok(ProcessOutcome::Done));
    assert_eq!(queue.pop(|_, _| Done::Done).await, Err(closed()));
}

#[tokio::test(start_paused = true)]
async fn one_item_is_processed_at_a_time_and_an_error_goes_to_who_popped() {
    let queue = fifo();
    queue.add(("a", 1)).await.unwrap();
    queue.add(("b", 1)).await.unwrap();
    let other = Arc::clone(&queue);
    let mut other = by_hand(&other);
    let outcome = queue.pop(|(name, _), _| {
        assert_eq!(*name, "a");
        assert!(other.poll_now().is_none(), "b waits, but a is being processed");
        ProcessOutcome::Failed("why")
    });
    assert_eq!(outcome.await, Ok(ProcessOutcome::Failed("why")));
    assert_eq!(other.wait().await, Ok(ProcessOutcome::Done));
    assert!(queue.is_empty());
}

/// A pop that can be polled by hand.
fn by_hand<'a>(queue: &'a Shared<Fifo<&'static str, Pod>>) -> Popping<'a> {
    Popping { pop: Box::pin(queue.pop(|_, _| Done::Done)) }
}

struct Popping<'a> {
    pop: std::pin::Pin<Box<dyn Future<Output = Result<Done, Closed>> + Send + 'a>>,
}

impl Popping<'_> {
    fn poll_now(&mut self) -> Option<Result<Done, Closed>> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match self.pop.as_mut().poll(&mut context) {
            std::task::Poll::Ready(outcome) => Some(outcome),
            std::task::Poll::Pending => None,
        }
    }

    async fn wait(self) -> Result<Done, Closed> {
        self.pop.await
    }
}

#[tokio::test(start_paused = true)]
async fn a_pop_that_is_given_up_loses_no_item_and_no_wake_up() {
    let queue = fifo();
    let mut first = by_hand(&queue);
    assert!(first.poll_now().is_none());
    let second = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.pop(|_, _| Done::Done).await }
    });
    tokio::task::yield_now().await;
    queue.add(("a", 1)).await.unwrap();
    // The first waiter was woken for the item, and is dropped without a poll.
    drop(first);
    assert_eq!(second.await.unwrap(), Ok(ProcessOutcome::Done));
}

#[tokio::test(start_paused = true)]
async fn a_processing_that_panics_leaves_the_queue_usable_and_the_panic_goes_on() {
    let queue = fifo();
    queue.replace(vec![("a", 1), ("b", 1)], "1", &()).await;
    let broken = Arc::clone(&queue);
    let panicked =
        tokio::spawn(async move { broken.pop(|_, _| -> Done { panic!("on purpose") }).await });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(queue.pop(|_, _| Done::Done).await, Ok(ProcessOutcome::Done));
    queue.synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn mechanism_22_the_shell_puts_back_what_asks_for_it_unless_something_newer_came() {
    let queue = fifo();
    queue.add(("a", 1)).await.unwrap();
    assert_eq!(queue.pop(|_, _| Done::Requeue).await, Ok(ProcessOutcome::Requeue));
    let found = Mutex::new(Vec::new());
    let outcome = queue.pop(|(_, pod), _| {
        found.lock().push(*pod);
        let mut add = Box::pin(queue.add(("a", 2)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(Future::poll(add.as_mut(), &mut context).is_ready());
        Done::Requeue
    });
    outcome.await.unwrap();
    let newer = queue.pop(|(_, pod), _| {
        found.lock().push(*pod);
        Done::Done
    });
    newer.await.unwrap();
    assert_eq!(*found.lock(), [("a", 1), ("a", 2)]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn mechanism_24_who_has_not_synced_is_named_and_waiting_ends_at_the_last_pop() {
    let (pods, nodes) = (fifo(), Shared::new("nodes", DeltaFifo::new(name_of)));
    assert_eq!(unsynced(&[&*pods, &nodes]), ["pods", "nodes"]);
    nodes.replace(vec![], "1", &()).await;
    assert_eq!(unsynced(&[&*pods, &nodes]), ["pods"]);
    let waiter = tokio::spawn({
        let pods = Arc::clone(&pods);
        async move { pods.synced().await }
    });
    pods.replace(vec![("a", 1)], "1", &()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiter.is_finished());
    pods.pop(|_, _| Done::Done).await.unwrap();
    assert_eq!(waiter.await.unwrap(), Ok(()));

    let never = fifo();
    never.close();
    assert_eq!(never.synced().await, Err(closed()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_first_list_ends_when_its_last_object_is_skipped() {
    let queue = fifo();
    queue.replace(vec![("a", 1)], "1", &()).await;
    queue.delete(("a", 1), &()).await.unwrap();
    let waiter = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.synced().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    let mut popping = by_hand(&queue);
    assert!(popping.poll_now().is_none(), "there is nothing but a deleted key");
    assert_eq!(waiter.await.unwrap(), Ok(()));
}

/// A consumer whose store gets `pod` only at the end of the processing; `during` runs before.
async fn while_processed(
    queue: &Shared<DeltaFifo<&'static str, Pod>>,
    store: &Mutex<Store>,
    during: impl FnOnce(&Store),
) {
    let outcome = queue.pop(|item, _| {
        during(&store.lock().clone());
        let mut store = store.lock();
        match item.newest() {
            Some(ObjectDelta::Deleted(_)) | None => store.remove(item.key),
            Some(delta) => store.insert(item.key, *delta.object().unwrap()),
        };
        Done::Done
    });
    outcome.await.unwrap();
}

/// Runs a producer's future, which must not wait.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

async fn rest(queue: &Shared<DeltaFifo<&'static str, Pod>>) -> Vec<ObjectDelta<Pod>> {
    let mut rest = Vec::new();
    while !queue.is_empty() {
        let outcome = queue.pop(|item, _| {
            rest.extend(item.deltas.clone());
            Done::Done
        });
        outcome.await.unwrap();
    }
    rest
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_processed_is_not_unknown_to_a_list_or_a_deletion() {
    let queue = Shared::new("pods", DeltaFifo::new(name_of));
    let store = Mutex::new(Store::new());
    // Neither queued nor in the store, and a list lacks it.
    queue.add(("a", 1)).await.unwrap();
    while_processed(&queue, &store, |store| {
        assert!(store.is_empty());
        at_once(queue.replace(vec![], "2", store));
    })
    .await;
    let tombstone = ObjectDelta::Deleted(Deleted::missed(Some(("a", 1))));
    assert_eq!(rest(&queue).await, [tombstone]);

    queue.add(("b", 1)).await.unwrap();
    while_processed(&queue, &store, |store| at_once(queue.delete(("b", 2), store)).unwrap()).await;
    assert_eq!(rest(&queue).await, [ObjectDelta::Deleted(Deleted::seen(("b", 2)))]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_30_a_resync_does_not_deliver_the_old_state_of_an_object_in_process() {
    let queue = Shared::new("pods", DeltaFifo::new(name_of));
    let store = Mutex::new(super::store(&[("a", 1), ("b", 1)]));
    queue.update(("a", 2)).await.unwrap();
    while_processed(&queue, &store, |store| at_once(queue.resync(store)).unwrap()).await;
    assert_eq!(rest(&queue).await, [ObjectDelta::Sync(("b", 1))]);
}

/// A store in which an item is processed between the reading of two keys.
struct Slow<'a> {
    store: Store,
    between: &'a (dyn Fn() + Sync),
}

impl crate::KeyListerGetter<&'static str, Pod> for Slow<'_> {
    fn keys(&self) -> Vec<&'static str> {
        self.store.keys().copied().collect()
    }
    fn get(&self, key: &&'static str) -> Option<Pod> {
        let pod = self.store.get(key).copied();
        (self.between)();
        pod
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_processed_while_the_store_is_read_counts_as_processed() {
    let queue = Shared::new("pods", DeltaFifo::new(name_of));
    queue.update(("a", 2)).await.unwrap();
    queue.add(("new", 1)).await.unwrap();
    let between = || {
        if !queue.is_empty() {
            at_once(queue.pop(|_, _| Done::Done)).unwrap();
        }
    };
    let known = Slow { store: super::store(&[("a", 1), ("b", 1)]), between: &between };
    queue.resync(&known).await.unwrap();
    let told = rest(&queue).await;
    let sync = ObjectDelta::Sync;
    assert_eq!(told, [sync(("a", 2)), sync(("b", 1)), sync(("new", 1))], "no older state");
}

#[tokio::test(start_paused = true)]
async fn mechanism_32_a_push_into_a_full_queue_waits_for_room_or_for_the_end() {
    let queue = Arc::new(Shared::new("pods", RealFifo::new(1, name_of)));
    queue.add(("a", 1)).await.unwrap();
    let push = |pod| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.update(pod).await })
    };
    let (first, second) = (push(("a", 2)), push(("a", 3)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!first.is_finished() && !second.is_finished());
    queue.pop(|_, _| Done::Done).await.unwrap();
    first.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!second.is_finished());
    queue.close();
    assert!(matches!(second.await.unwrap(), Err(EnqueueError::Closed(("a", 3)))));
    assert_eq!(
        queue
            .pop_batch(9, |batch, _| {
                assert_eq!(batch.len(), 1);
                Done::Done
            })
            .await,
        Ok(ProcessOutcome::Done)
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_given_back_by_the_shell_keeps_its_place() {
    let queue = Shared::new("pods", RealFifo::new(9, name_of));
    queue.replace(vec![("a", 1), ("b", 1)], "1", &()).await;
    let mut seen = Vec::new();
    assert_eq!(queue.pop_batch(9, |_, _| Done::Requeue).await, Ok(ProcessOutcome::Requeue));
    assert!(!queue.has_synced());
    let outcome = queue.pop_batch(9, |batch, _| {
        seen.extend(batch.iter().filter_map(|item| item.key().copied()));
        Done::Done
    });
    outcome.await.unwrap();
    assert_eq!(seen, ["a", "b"]);
    assert!(queue.has_synced());
}
