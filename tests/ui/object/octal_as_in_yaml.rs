use k8s_openapi::api::core::v1::SecretVolumeSource;
use windlass::object;

fn main() {
    let _ = object!(SecretVolumeSource { secretName: "tls", defaultMode: 0400 });
}
