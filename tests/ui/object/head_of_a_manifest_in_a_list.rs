//! The kind of an object inside of another one, as a manifest has it.

use k8s_openapi::api::apps::v1::StatefulSet;
use windlass::object;

fn main() {
    let _ = object!(StatefulSet {
        spec: {
            volumeClaimTemplates: [{
                kind: "PersistentVolumeClaim",
                metadata: { name: "data" },
            }],
        },
    });
}
