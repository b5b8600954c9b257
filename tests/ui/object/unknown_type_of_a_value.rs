//! A value whose type only the field could tell.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { metadata: { generation: "3".parse().unwrap() } });
}
