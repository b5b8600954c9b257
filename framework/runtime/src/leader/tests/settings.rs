//! Meaning of the settings, and the refused ones.

use super::*;

#[test]
fn mechanism_46_the_defaults_are_those_of_kubernetes_components() {
    let timing = LeaderElection::new("ops").timing;
    let seconds =
        [timing.lease_duration, timing.renew_deadline, timing.retry_period, timing.margin]
            .map(|duration| duration.as_secs_f64());
    assert_eq!(seconds, [15.0, 10.0, 2.0, 2.0]);
    assert_eq!(timing.request_limit(), Duration::from_secs(5));
}

#[test]
fn a_fence_that_would_refuse_the_leader_itself_is_found_out() {
    let fenced = |identity: &str| LeaderElection::new("ops").fence(true).identity(identity);
    let off = |identity: &str| fenced(identity).fenced_off(Some("ops-0".to_owned()));
    assert_eq!((off("ops-0"), off("ops-0_a")), (None, None));
    assert_eq!((off("ops-01"), off("mine")), (Some("ops-0".to_owned()), Some("ops-0".to_owned())));
    assert_eq!(fenced("mine").fence(false).fenced_off(Some("ops-0".to_owned())), None);
    assert_eq!(fenced("mine").fenced_off(None), None);
}

#[test]
fn mechanism_41_durations_that_could_let_two_lead_are_refused_with_the_rule() {
    let check = |settings: LeaderElection| settings.check().unwrap_err().to_string();
    let text = check(LeaderElection::new("ops").renew_deadline(Duration::from_secs(12)));
    assert!(text.contains("raise the lease duration to at least 17 s"), "{text}");
    let text = check(LeaderElection::new("ops").retry_period(Duration::from_secs(9)));
    assert!(text.contains("shorter than the renew deadline"), "{text}");
    let text = check(LeaderElection::new("ops").lease_duration(Duration::from_millis(15_500)));
    assert!(text.contains("whole seconds"), "{text}");
    for settings in [
        LeaderElection::new("ops").retry_period(Duration::MAX),
        LeaderElection::new("ops").renew_deadline(Duration::MAX),
        LeaderElection::new("ops").margin(Duration::MAX),
    ] {
        let text = check(settings);
        assert!(text.contains("longer than a Lease can last"), "{text}");
    }
    let brief = LeaderElection::new("ops")
        .lease_duration(Duration::from_secs(1))
        .renew_deadline(Duration::from_millis(500))
        .retry_period(Duration::from_millis(100))
        .margin(Duration::from_millis(100));
    let text = check(brief);
    assert!(text.contains("from one renewal to the next"), "{text}");
    let text = check(LeaderElection::new("ops").margin(Duration::ZERO));
    assert!(text.contains("the margin is zero"), "{text}");
    assert!(check(LeaderElection::new("")).contains("no name"));
    for name in ["Bad Name!", "-ops", "ops.", "a..b", &"a".repeat(254)] {
        assert!(
            check(LeaderElection::new(name)).contains("no leases can have that name"),
            "{name}"
        );
    }
    assert!(LeaderElection::new("3.ops-x.example.dev").check().is_ok());
    assert!(LeaderElection::new("ops").check().is_ok());
}

#[test]
fn longer_leases_let_clocks_differ_as_much_as_the_default_does() {
    let of = |lease, renew, retry| {
        let settings = LeaderElection::new("ops")
            .lease_duration(Duration::from_secs(lease))
            .renew_deadline(Duration::from_secs(renew))
            .retry_period(Duration::from_secs(retry));
        settings.check().unwrap();
        let margin = settings.timing.margin.as_millis();
        (margin, (settings.clock_tolerance() * 1000.0).round() as u64)
    };
    assert_eq!(of(15, 10, 2), (2_000, 1_154));
    assert_eq!(of(60, 15, 5), (8_000, 1_154));
    assert_eq!(of(137, 107, 20), (6_000, 1_046), "as far as there is room");
    let own = LeaderElection::new("ops").margin(Duration::from_secs(3));
    assert_eq!(own.lease_duration(Duration::from_secs(60)).timing.margin, Duration::from_secs(3));
}

#[test]
fn two_processes_of_one_pod_name_call_themselves_differently() {
    let settings = LeaderElection::new("ops");
    let a = settings.identity_or_own(&Rng::seeded(1));
    let b = settings.identity_or_own(&Rng::seeded(2));
    assert_ne!(a, b);
    assert_eq!(a.rsplit('_').next().map(str::len), Some(8));
}

/// Settings that are just safe are accepted, and settings a little beyond are not.
#[test]
fn mechanism_41_each_rule_about_durations_holds_from_its_bound_on() {
    let millis = |[lease, renew, retry, margin]: [u64; 4]| {
        LeaderElection::new("ops")
            .lease_duration(Duration::from_millis(lease))
            .renew_deadline(Duration::from_millis(renew))
            .retry_period(Duration::from_millis(retry))
            .margin(Duration::from_millis(margin))
            .check()
            .map_err(|error| error.to_string())
    };
    for (safe, beyond, rule) in [
        // Renew deadline, 1.2 times the retry period and the margin fill the lease.
        ([15_000, 10_000, 2_000, 2_600], [15_000, 10_000, 2_000, 2_601], "must not exceed"),
        // Validity lasts for a wait and a second.
        ([5_000, 900, 500, 3_400], [5_000, 900, 500, 3_401], "from one renewal to the next"),
        ([15_000, 2_401, 2_000, 2_000], [15_000, 2_400, 2_000, 2_000], "shorter than the renew"),
        ([15_000, 10_000, 2_000, 1], [15_000, 10_000, 2_000, 0], "the margin is zero"),
        ([15_000, 10_000, 1, 2_000], [15_000, 10_000, 0, 2_000], "the retry period is zero"),
        ([4_000, 900, 500, 2_000], [0, 900, 500, 2_000], "at least one"),
    ] {
        assert_eq!(millis(safe), Ok(()), "{safe:?}");
        let refused = millis(beyond).unwrap_err();
        assert!(refused.contains(rule), "{beyond:?}: {refused}");
    }
    let longest = u64::from(i32::MAX.unsigned_abs());
    let lasts = |seconds| LeaderElection::new("ops").lease_duration(Duration::from_secs(seconds));
    assert!(lasts(longest).check().is_ok());
    let refused = lasts(longest + 1).check().unwrap_err().to_string();
    assert!(refused.contains("does not fit into a Lease"), "{refused}");
}

#[test]
fn a_fence_needs_a_lease_to_read() {
    use crate::leader::LockKind;
    let fenced = |lock| LeaderElection::new("ops").fence(true).resource_lock(lock).check();
    assert!(fenced(LockKind::Leases).is_ok());
    for lock in [LockKind::ConfigMaps, LockKind::ConfigMapsLeases] {
        let refused = fenced(lock).unwrap_err().to_string();
        assert!(refused.contains("a fence reads a Lease"), "{refused}");
    }
    assert!(LeaderElection::new("ops").resource_lock(LockKind::ConfigMaps).check().is_ok());
}

#[test]
fn mechanism_36_locks_are_chosen_by_client_gos_names() {
    use crate::leader::LockKind;
    for (name, kind) in [
        ("leases", LockKind::Leases),
        ("configmaps", LockKind::ConfigMaps),
        ("endpoints", LockKind::Endpoints),
        ("configmapsleases", LockKind::ConfigMapsLeases),
        ("endpointsleases", LockKind::EndpointsLeases),
    ] {
        assert_eq!(name.parse::<LockKind>().unwrap(), kind);
    }
    let error = "secrets".parse::<LockKind>().unwrap_err().to_string();
    assert!(error.contains("no resource lock \"secrets\"; the locks are leases, "), "{error}");
}
