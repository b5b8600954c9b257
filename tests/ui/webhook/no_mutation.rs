use windlass::webhook::{Admission, AdmissionResponse, Validate, Webhooks};

struct Rules;

impl Validate for Rules {
    type Object = k8s_openapi::api::core::v1::ConfigMap;

    async fn validate(&self, _: &Self::Object, _: &Admission) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }
}

fn main() {
    let _ = Webhooks::new().mutating(Rules);
}
