//! A client for one kind, and the apply configuration of another.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::client::Client;
use windlass::{CustomResource, Error};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Website {
    metadata: ObjectMeta,
}

async fn write(client: Client) -> Result<(), Error> {
    let maps = client.namespace::<ConfigMap>("shop");
    maps.apply("home", &WebsiteApply::new("home")).manager("shop").await?;
    Ok(())
}

fn main() {}
