//! A loop in braces with fields.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { spec: { for _ in 0..2 { nodeName: "n" } } });
}
