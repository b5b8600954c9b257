use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let name = String::new();
    let _ = object!(Pod { spec: { containers: [{ name: name, ports: [80] }] } });
}
