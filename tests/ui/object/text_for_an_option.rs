//! A value behind `?`, which is for options.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { nodeName?: "x" } });
}
