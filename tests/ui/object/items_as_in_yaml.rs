use k8s_openapi::api::core::v1::Pod;
use windlass::object;

fn main() {
    let _pod = object!(Pod { spec: { containers: - name: "web" } });
}
