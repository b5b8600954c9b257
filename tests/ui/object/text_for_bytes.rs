//! A text in base64, as manifests have it.

use k8s_openapi::api::core::v1::Secret;
use windlass::object;

fn main() {
    let _ = object!(Secret { data: { token: "cGFzcw==" } });
}
