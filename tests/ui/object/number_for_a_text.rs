//! A number where a text belongs.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let _ = object!(Deployment { metadata: { name: 3 } });
}
