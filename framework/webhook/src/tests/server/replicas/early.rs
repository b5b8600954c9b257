//! Certificates that are not valid yet.

use jiff::SignedDuration;

use super::certificates::{Folder, place};
use super::own::{EPOCH, World};
use super::*;
use crate::MountedFiles;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(start_paused = true)]
async fn a_certificate_is_not_shown_before_it_is_valid_and_readiness_says_so() {
    let (place, clock) = place("2026-01-01T00:00:00Z");
    let authority = Authority::new("first");
    let (chain, key) = authority.issue_between((2026, 1, 3), (2026, 6, 1));
    for _ in 0..2 {
        let error = place.set(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("is valid only from 2026-01-03T00:00:00Z"), "{error}");
        let check = place.check();
        assert!(!check.ok && check.detail.contains(&error), "{check:?}");
        clock.sleep_machine(DAY / 2);
    }
    // One that is valid stays in use.
    let (used, used_key) = authority.issue_between((2026, 1, 1), (2026, 4, 1));
    place.set(used.as_bytes(), used_key.as_bytes()).unwrap();
    place.set(chain.as_bytes(), key.as_bytes()).unwrap_err();
    let check = place.check();
    assert!(check.ok && check.detail.contains("valid only from"), "{check:?}");
    clock.sleep_machine(DAY);
    place.set(chain.as_bytes(), key.as_bytes()).unwrap();
    assert!(place.check().ok && !place.check().detail.contains(';'), "{:?}", place.check());
}

#[tokio::test(start_paused = true)]
async fn mounted_files_of_the_future_wait_while_the_files_before_are_in_use() {
    let authority = Authority::new("first");
    let folder = Folder::new("future");
    let write = |(chain, key): (String, String)| {
        folder.write("tls.crt", &chain);
        folder.write("tls.key", &key);
    };
    write(authority.issue());
    let path = folder.path().to_owned();
    let hooks = Hooks::start_with(|server| server.certificates(MountedFiles::new(path))).await;
    write(authority.issue_between((4000, 1, 1), (4096, 1, 1)));
    pass(10).await;
    let (ok, detail) = hooks.check();
    assert!(ok && detail.contains("valid only from 4000-01-01"), "{detail}");
    let used = connect(authority.client(&[]), hooks.pipe(64 * 1024).await).await;
    assert!(used.is_ok(), "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_a_replica_whose_clock_is_fast_is_waited_for() {
    let world = World::start().await;
    let maker = world.replica_with(world.client_at(EPOCH + 24 * 3600));
    pass(2).await;
    maker.end().await;
    let made = world.secret().await;
    let replica = world.replica();
    pass(120).await;
    let check = replica.status.checks().remove(0);
    let wanted = ["valid only from", "clock", "default/shop-webhook-certificates"];
    assert!(!check.ok && wanted.iter().all(|text| check.detail.contains(text)), "{check:?}");
    assert_eq!(world.secret().await.data, made.data, "clocks that differ make no war");
    world.clock.sleep_machine(DAY);
    pass(10).await;
    assert_eq!(world.ask(&replica).await.0, 200);
    assert!(replica.status.checks()[0].ok);
    let left = replica.not_after().duration_since(world.clock.wall());
    assert!(left > SignedDuration::from_hours(24 * 89), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_is_a_year_ahead_takes_no_trust_from_what_others_show() {
    for years in [1, 3] {
        let world = World::start().await;
        let right = world.replica();
        pass(30).await;
        let fast = EPOCH + years * 366 * 24 * 3600;
        let _fast = world.replica_with(world.client_at(fast));
        for second in 0..900 {
            assert_eq!(world.ask(&right).await.0, 200, "{years} years, after {second} s");
            pass(1).await;
        }
    }
}
