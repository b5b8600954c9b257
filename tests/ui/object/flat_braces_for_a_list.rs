//! The item of a list without brackets around it, with words that could be keys of a map.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { containers: { name: "a", image: "b", workingDir: "/" } } });
}
