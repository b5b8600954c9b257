//! The first lines of a manifest, pasted into a literal.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use windlass::object;

fn main() {
    // A type with such fields takes them.
    let _ = object!(OwnerReference { apiVersion: "v1", kind: "Pod", name: "web-0", uid: "1" });
    let _ = object!(StatefulSet {
        spec: { volumeClaimTemplates: [{ metadata: { name: "data" } }] },
    });
    let _ = object!(Deployment {
        apiVersion: "apps/v1",
        metadata: { name: "web" },
    });
}
