//! Memory that a cache of compressed objects takes of the machine after updates. A separate
//! process, because no other test may run at the same time.

use k8s_openapi::api::core::v1::Pod;
use windlass::store::Representation;
use windlass_tests::resident::updated;

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc, which Linux has")]
fn a_compressed_object_updated_by_another_thread_takes_at_most_a_fifth_more() {
    let store = updated::<Pod>(Representation::Cold, 300.0..1_400.0);
    let pod = store.list()[0].get().expect("it decodes");
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    assert_eq!(phase, Some("Running"));
}
