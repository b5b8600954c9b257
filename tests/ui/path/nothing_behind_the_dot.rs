//! A path that was not written to its end.

use windlass::path;

fn main() {
    let _ = path!(k8s_openapi::api::core::v1::Pod: spec.);
}
