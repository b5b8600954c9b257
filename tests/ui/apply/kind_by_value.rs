use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Error;
use windlass::client::Client;

async fn write(client: Client) -> Result<(), Error> {
    let maps = client.namespace::<ConfigMap>("shop");
    let wanted = ConfigMap::default();
    maps.apply("home", wanted).manager("shop").await?;
    Ok(())
}

fn main() {}
