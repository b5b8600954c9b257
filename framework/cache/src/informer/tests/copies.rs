//! Copies of an object's bytes between a network read and the cache: a single copy, into a buffer
//! of about that size. Measured as allocated bytes: the cost of another byte of an object.

use allocation_counter::AllocationInfo;

use super::*;
use crate::reflector::test_support::frame;

/// A rig without a listener, because objects are decoded for listeners.
async fn quiet() -> Rig {
    let (server, environment) = (Server::new(), environment());
    let registry = registry(&server, &environment, &[]);
    let (informer, stop) = (registry.informer::<ConfigMap>(), CancellationToken::new());
    let task = run(&registry, &stop);
    informer.synced().await.expect("it syncs");
    let listening = informer.on_change(|_| {});
    listening.remove().await;
    Rig { server, registry, informer, told: Told::default(), listening, environment, stop, task }
}

/// Measures the cost of a watch event of an object whose data are `size` bytes long, with that many
/// bytes of managed fields, in reads of `read` bytes.
fn cost(size: usize, managed: usize, read: usize) -> (AllocationInfo, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let rig = runtime.block_on(async {
        let rig = quiet().await;
        // Buffers that grow once have grown after this.
        rig.server.put("warm", data("up"));
        rig.caught_up().await;
        rig
    });
    let object = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"900","managedFields":["{}"]}},"data":{{"k":"{}"}}}}"#,
        "m".repeat(managed),
        "d".repeat(size)
    );
    let kept = r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"900"},"data":{"k":""}}"#;
    let body = frame("ADDED", &object);
    for at in (0..body.len()).step_by(read) {
        rig.server.send(&body[at..body.len().min(at.saturating_add(read))]);
    }
    let counted = allocation_counter::measure(|| {
        runtime.block_on(eventually("it is cached", || rig.get("a").is_some()));
    });
    let cached = rig.get("a").expect("it is cached");
    assert_eq!(cached.raw().len(), kept.len() + size);
    (counted, kept.len() + size)
}

#[test]
fn an_object_in_one_network_read_is_copied_once_into_a_buffer_of_its_size() {
    let (small, small_kept) = cost(1_000, 500, usize::MAX);
    for (size, managed) in
        [(1_001, 500), (1_000, 60_000), (5_000, 0), (50_000, 20_000), (1_000_000, 1)]
    {
        let (large, kept) = cost(size, managed, usize::MAX);
        let more = large.bytes_total - small.bytes_total;
        let off = more.abs_diff((kept - small_kept) as u64);
        assert!(off <= (kept as u64 / 16).max(64), "{size} bytes and {managed} of managed fields");
        assert_eq!(large.count_total, small.count_total, "and not in more allocations");
    }
}

#[test]
fn an_object_in_many_reads_is_put_together_in_one_buffer_and_then_copied_once() {
    let (whole, _) = cost(200_000, 100, usize::MAX);
    let (cut, kept) = cost(200_000, 100, 16_000);
    let more = cut.bytes_total - whole.bytes_total;
    // The buffer doubles while growing, up to twice the frame; all sizes together twice that.
    assert!(more <= 4 * kept as u64 + 4096, "{more} bytes for {kept}");
    let (peak, least) = (cut.bytes_max, whole.bytes_max);
    assert!(peak <= least + 3 * kept as u64, "at once {peak} bytes beside {least}");
}
