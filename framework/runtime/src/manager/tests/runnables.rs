//! Work beside the controllers: order, failures, ends.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use super::*;

/// Log of events, in order.
#[derive(Clone, Debug, Default)]
struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    fn record(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    fn recorded(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Returns a runnable that logs start and end, and runs until the stop.
    fn patient(&self, name: &'static str) -> Runnable {
        let story = self.clone();
        Runnable::new(name, move |cx| {
            let story = story.clone();
            async move {
                story.record(&format!("{name} starts"));
                cx.stopped().await;
                cx.clock().sleep(Duration::from_secs(1)).await;
                story.record(&format!("{name} ends"));
                Ok(())
            }
        })
    }
}

async fn until(met: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if met() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never happened");
}

#[tokio::test(start_paused = true)]
async fn runnables_stop_in_the_reverse_of_the_order_in_which_they_start() {
    let (story, controller) = (Story::default(), Slow::new(Duration::from_secs(5)));
    let running = operator(&controller)
        .runnable(story.patient("leader's").with_leadership())
        .runnable(story.patient("everybody's"))
        .runnable(story.patient("first").before_caches())
        .start();
    until_started(&controller).await;
    until(|| story.recorded().len() == 3).await;
    assert_eq!(story.recorded(), ["first starts", "everybody's starts", "leader's starts"]);
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    assert_eq!(story.recorded()[3..], ["leader's ends", "everybody's ends", "first ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_fails_or_panics_is_started_again_and_disturbs_no_other() {
    let (tries, controller) = (Arc::new(AtomicU32::new(0)), Slow::new(Duration::ZERO));
    let count = Arc::clone(&tries);
    let shaky = Runnable::new("shaky", move |cx| {
        let count = Arc::clone(&count);
        async move {
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => Err("no luck".into()),
                1 => panic!("worse"),
                _ => {
                    cx.stopped().await;
                    Ok(())
                }
            }
        }
    });
    let running = operator(&controller).runnable(shaky).start();
    let began = tokio::time::Instant::now();
    until(|| tries.load(Ordering::Relaxed) == 3).await;
    assert_eq!(began.elapsed().as_secs(), 3, "after 1 s, and after 2 s more");
    assert!(running.readiness().is_ready());
    assert_eq!(controller.started.load(Ordering::Relaxed), 1);
    let recorded = &running.dump(9)["runnables"][0];
    assert_eq!(
        (recorded["state"].as_str(), recorded["failures"].as_u64()),
        (Some("running"), Some(2))
    );
    assert_eq!(recorded["lastError"], "it panicked: worse");
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn an_essential_runnable_ends_the_operator_with_its_error_after_the_drain() {
    let controller = Slow::new(Duration::from_secs(5));
    let failing = Runnable::new("vital", |cx| async move {
        cx.clock().sleep(Duration::from_secs(1)).await;
        Err(Error::new(ErrorKind::Forbidden, "not allowed").into())
    });
    let began = tokio::time::Instant::now();
    let error = operator(&controller).runnable(failing.essential()).run().await.unwrap_err();
    assert!(error.to_string().contains("\"vital\""), "{error}");
    assert_eq!((error.kind(), exit_code(&error)), (ErrorKind::Forbidden, 77));
    assert!(began.elapsed() >= Duration::from_secs(6), "the reconcile that ran was awaited");
}

#[tokio::test(start_paused = true)]
async fn s1_a_runnable_that_does_not_stop_is_cut_off_at_the_end_of_the_drain() {
    let controller = Slow::new(Duration::ZERO);
    let stubborn = Runnable::new("stubborn", |_| std::future::pending());
    let running = operator(&controller).drain(Duration::from_secs(5)).runnable(stubborn).start();
    until_started(&controller).await;
    let asked = tokio::time::Instant::now();
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Cut);
    assert!(asked.elapsed() <= Duration::from_secs(8), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_drain_without_a_limit_waits_for_the_longest_reconcile() {
    let controller = Slow::new(Duration::from_secs(100));
    let running = operator(&controller).drain(Duration::MAX).start();
    until_started(&controller).await;
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_is_done_is_done() {
    let (tries, controller) = (Arc::new(AtomicU32::new(0)), Slow::new(Duration::ZERO));
    let count = Arc::clone(&tries);
    let once = Runnable::new("once", move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(()))
    });
    let running = operator(&controller).runnable(once.essential()).start();
    until_started(&controller).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(running.is_running());
    assert_eq!(tries.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn two_of_one_name_are_refused_before_anything_runs() {
    let controller = Slow::new(Duration::ZERO);
    let twice: Arc<dyn ErasedController> = controller.clone();
    let error = operator(&controller).erased_controller(twice).run().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("two controllers are called \"slow\""), "{error}");
    let idle = || Runnable::new("idle", |_| std::future::ready(Ok(())));
    let error = operator(&controller).runnable(idle()).runnable(idle()).run().await.unwrap_err();
    assert!(error.to_string().contains("two runnables"), "{error}");
    let local = Cluster::new("local", nowhere());
    let error = operator(&controller).cluster(&local).run().await.unwrap_err();
    assert!(error.to_string().contains("two clusters are called \"local\""), "{error}");
    assert_eq!(controller.started.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn an_essential_runnable_that_fails_because_it_must_stop_ends_nothing() {
    let controller = Slow::new(Duration::ZERO);
    let listener = Runnable::new("listener", |cx| async move {
        cx.stopped().await;
        Err("closed".into())
    });
    let running = operator(&controller).runnable(listener.essential()).start();
    until_started(&controller).await;
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn an_essential_runnable_whose_write_was_refused_for_want_of_the_lease_is_started_again() {
    let (tries, controller) = (Arc::new(AtomicU32::new(0)), Slow::new(Duration::ZERO));
    let count = Arc::clone(&tries);
    let writer = Runnable::new("writer", move |cx| {
        let count = Arc::clone(&count);
        async move {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Error::new(ErrorKind::NotLeader, "refused").into());
            }
            cx.stopped().await;
            Ok(())
        }
    });
    let running = operator(&controller).runnable(writer.essential()).start();
    until(|| tries.load(Ordering::Relaxed) == 2).await;
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn caches_wait_for_an_awaited_runnable_and_not_for_longer_than_ten_seconds() {
    for (takes, waits) in [(3, 3), (3600, 10)] {
        let controller = Slow::new(Duration::ZERO);
        let server = Runnable::new("server", move |cx| async move {
            cx.clock().sleep(Duration::from_secs(takes)).await;
            cx.started();
            cx.stopped().await;
            Ok(())
        });
        let began = tokio::time::Instant::now();
        let running = operator(&controller).runnable(server.before_caches().awaited()).start();
        until_started(&controller).await;
        let gone = began.elapsed().as_secs();
        assert!((waits..=waits + 1).contains(&gone), "{gone} s instead of {waits} s");
        running.stop();
        running.join().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_of_a_runnable_takes_the_operator_out_of_service() {
    let (controller, is_ready) = (Slow::new(Duration::ZERO), Arc::new(AtomicU32::new(0)));
    let seen = Arc::clone(&is_ready);
    let server = Runnable::new("server", |cx| async move {
        cx.stopped().await;
        Ok(())
    });
    let server = server.readiness(move || {
        let ok = seen.load(Ordering::Relaxed) == 1;
        vec![Check { name: "server".to_owned(), ok, detail: "no certificate".to_owned() }]
    });
    let running = operator(&controller).runnable(server).start();
    until_started(&controller).await;
    let check =
        |running: &Running| running.readiness().checks.into_iter().find(|one| one.name == "server");
    assert!(!running.readiness().is_ready());
    assert_eq!(check(&running).unwrap().detail, "no certificate");
    is_ready.store(1, Ordering::Relaxed);
    assert!(running.readiness().is_ready());
    running.stop();
    running.join().await.unwrap();
}
