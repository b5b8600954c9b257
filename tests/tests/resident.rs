//! Memory that a cache of projections takes of the machine after updates. A separate process,
//! because no other test may run at the same time.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;
use windlass::store::Representation;
use windlass_tests::resident::updated;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
struct View {
    metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    node: Option<String>,
    #[projection(path = "spec.serviceAccountName")]
    account: Option<String>,
    #[projection(path = "status.phase")]
    phase: Option<String>,
    #[projection(path = "status.podIP")]
    address: Option<String>,
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc, which Linux has")]
fn a_projection_updated_by_another_thread_takes_at_most_a_fifth_more() {
    let store = updated::<View>(Representation::Compact, 500.0..2_600.0);
    let view = store.list()[0].get().expect("it decodes");
    assert_eq!(view.phase.as_deref(), Some("Running"));
}
