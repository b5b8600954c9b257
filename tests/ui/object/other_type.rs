//! A value of another type of the API.

use k8s_openapi::api::core::v1::{Pod, Service};
use windlass::object;

fn main() {
    let service = Service::default();
    let _ = object!(Pod { spec: service.spec });
}
