//! An option for a field that is always there.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let name: Option<String> = None;
    let _ = object!(Pod { spec: { containers: [{ name: name }] } });
}
