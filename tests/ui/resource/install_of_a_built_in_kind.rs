use k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;

fn manager(client: Client) -> Manager {
    Manager::new(client).install::<ConfigMap>()
}

fn main() {}
