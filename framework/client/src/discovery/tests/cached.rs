//! A single read for many callers; invalidation and renewal.

use std::time::Duration;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn many_callers_cause_one_read() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::new([
        ("/api", ok(aggregated(&[]))),
        ("/apis", Reply::Gated(Arc::clone(&gate), aggregated(&[apps()]))),
    ]);
    let discovery = script.discovery();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let discovery = discovery.client.clone().discovery();
            tokio::spawn(async move { discovery.find("deploy").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.add_permits(1);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().kind, "Deployment");
    }
    assert_eq!((script.count("/api"), script.count("/apis")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_takes_nothing_from_the_others() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::new([
        ("/api", ok(aggregated(&[]))),
        ("/apis", Reply::Gated(Arc::clone(&gate), aggregated(&[apps()]))),
    ]);
    let discovery = script.discovery();
    let first = tokio::spawn({
        let discovery = discovery.clone();
        async move { discovery.catalog().await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let second = tokio::spawn(async move { discovery.catalog().await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    first.abort();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(script.count("/apis"), 2, "the second one asks for itself now");
    gate.add_permits(2);
    assert!(second.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_by_those_who_waited_for_it() {
    let script = Script::new([("/api", Reply::Silence), ("/apis", Reply::Silence)]);
    let discovery = script.discovery();
    let started = tokio::time::Instant::now();
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let discovery = discovery.clone();
            tokio::spawn(async move { discovery.catalog().await })
        })
        .collect();
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    }
    assert!(started.elapsed() <= Duration::from_secs(32), "{:?}", started.elapsed());

    // A later caller starts a new read.
    script.only("/api", ok(aggregated(&[])));
    script.only("/apis", ok(aggregated(&[apps()])));
    assert!(discovery.find("deploy").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_catalog_is_read_anew_when_it_is_too_old_or_made_invalid() {
    let script = cluster(&[apps()]);
    let discovery = script.discovery();
    for _ in 0..3 {
        discovery.find("deploy").await.unwrap();
    }
    assert_eq!(script.count("/apis"), 1);
    tokio::time::advance(9 * MINUTE).await;
    discovery.find("deploy").await.unwrap();
    assert_eq!(script.count("/apis"), 1);
    discovery.clone().max_age(MINUTE).find("deploy").await.unwrap();
    assert_eq!(script.count("/apis"), 2);
    tokio::time::advance(11 * MINUTE).await;
    discovery.find("deploy").await.unwrap();
    assert_eq!(script.count("/apis"), 3);
    discovery.invalidate();
    discovery.find("deploy").await.unwrap();
    assert_eq!(script.count("/apis"), 4);
    discovery.refresh().await.unwrap();
    assert_eq!(script.count("/apis"), 5);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_was_under_way_does_not_undo_an_invalidation() {
    let gate = Arc::new(Semaphore::new(0));
    let script = Script::new([
        ("/api", ok(aggregated(&[]))),
        ("/apis", Reply::Gated(Arc::clone(&gate), aggregated(&[]))),
        ("/apis", ok(aggregated(&[apps()]))),
    ]);
    let discovery = script.discovery();
    let early = tokio::spawn({
        let discovery = discovery.clone();
        async move { discovery.catalog().await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    discovery.invalidate();
    gate.add_permits(1);
    early.await.unwrap().unwrap();
    assert!(discovery.find("deploy").await.is_ok());
    assert_eq!(script.count("/apis"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_did_not_change_is_confirmed_by_its_tag() {
    let script = Script::new([
        ("/api", ok(aggregated(&[]))),
        ("/apis", Reply::Tagged("\"A\"", aggregated(&[apps()]))),
    ]);
    let discovery = script.discovery();
    discovery.catalog().await.unwrap();
    discovery.invalidate();
    assert!(discovery.find("deploy").await.is_ok());
    {
        let seen = script.seen.lock();
        let tags: Vec<_> = seen
            .iter()
            .filter(|(path, _)| path == "/apis")
            .map(|(_, headers)| headers.get("if-none-match").cloned())
            .collect();
        assert_eq!(tags, [None, Some("\"A\"".parse().unwrap())]);
    }
    script.only("/apis", Reply::Tagged("\"B\"", aggregated(&[])));
    discovery.invalidate();
    assert!(discovery.find("deploy").await.is_err(), "another tag brings another document");
}

#[tokio::test(start_paused = true)]
async fn an_aged_catalog_is_used_on_while_it_cannot_be_renewed_but_an_invalid_one_is_not() {
    let script = cluster(&[apps()]);
    let discovery = script.discovery();
    discovery.find("deploy").await.unwrap();
    script.only("/apis", Reply::Answer(500, "etcd is down".to_owned()));
    tokio::time::advance(11 * MINUTE).await;
    for _ in 0..3 {
        assert!(discovery.find("deploy").await.is_ok());
    }
    assert_eq!(script.count("/apis"), 2, "it is not asked again at once");
    tokio::time::advance(MINUTE).await;
    assert!(discovery.find("deploy").await.is_ok());
    assert_eq!(script.count("/apis"), 3);
    assert!(discovery.refresh().await.is_err());
    discovery.invalidate();
    let error = discovery.find("deploy").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_name_causes_one_new_read_and_not_one_per_question() {
    let script = cluster(&[]);
    let discovery = script.discovery();
    assert!(discovery.find("pods").await.is_ok());
    tokio::time::advance(MINUTE).await;
    script.only("/apis", ok(aggregated(&[apps()])));
    assert!(discovery.find("deploy").await.is_ok(), "a new kind is found without an invalidation");
    assert_eq!(script.count("/apis"), 2);
    for _ in 0..10 {
        assert!(discovery.find("widgets").await.unwrap_err().is_not_found());
    }
    assert_eq!(script.count("/apis"), 2);
    tokio::time::advance(Duration::from_secs(5)).await;
    for _ in 0..10 {
        assert!(discovery.find("widgets").await.unwrap_err().is_not_found());
    }
    assert_eq!(script.count("/apis"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_missing_name_asks_a_failing_server_no_more_often_than_a_good_one() {
    let script = cluster(&[]);
    let discovery = script.discovery();
    assert!(discovery.find("pods").await.is_ok());
    tokio::time::advance(MINUTE).await;
    script.only("/apis", Reply::Answer(500, "etcd is down".to_owned()));
    for _ in 0..10 {
        let error = discovery.find("widgets").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    }
    assert_eq!(script.count("/apis"), 2);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(discovery.find("widgets").await.is_err());
    assert_eq!(script.count("/apis"), 3);
}
