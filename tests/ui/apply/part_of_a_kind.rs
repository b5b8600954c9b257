//! The apply configuration of a spec, without its object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::client::Client;
use windlass::{ApplyConfiguration, CustomResource, Error, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
struct WebsiteSpec {
    host: String,
}

async fn write(client: Client) -> Result<(), Error> {
    let sites = client.namespace::<Website>("shop");
    sites.apply("home", &WebsiteSpecApply::new().host("a.example")).manager("shop").await?;
    Ok(())
}

fn main() {}
