//! A value of a map behind `?`, which is for options.

use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _ = object!(Pod { metadata: { labels: { app?: "x" } } });
}
