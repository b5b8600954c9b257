//! Resources that the deleted object never had, between the children of a graph.

use windlass::external::{EXTERNAL_NAME, ExternalPolicy};

use super::*;

impl World {
    /// Creates a shop with these annotations.
    async fn create_annotated(&self, name: &str, annotations: Value) {
        let shop = json!({
            "metadata": { "name": name, "annotations": annotations },
            "spec": { "shards": [], "exposed": true },
        });
        self.api::<Shop>().create(&serde_json::from_value(shop).unwrap()).await.unwrap();
    }

    async fn until_gone(&self, name: &str) {
        let is_gone = async || self.api::<Shop>().get_opt(name).await.unwrap().is_none();
        self.eventually("it is gone", is_gone).await;
    }
}

#[tokio::test]
async fn a_deleted_copy_goes_with_its_children_and_leaves_the_resource_to_the_original() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    let shop = world.api::<Shop>().get("shop").await.unwrap();
    world.create_annotated("copy", json!(shop.metadata.annotations)).await;
    let is_told = async || world.message("copy").await.contains("another object has made");
    world.eventually("it is told", is_told).await;
    running.stop().await;

    world.api::<Shop>().delete("copy").await.unwrap();
    let running = tills(&world, &bank);
    world.until_gone("copy").await;
    running.settled().await;
    assert_eq!((bank.count(), bank.made()), (1, vec!["create".to_owned()]));
    assert_eq!(world.owned::<Secret>().await, ["shop"], "the login of the copy is gone");
    assert_eq!(world.message("shop").await, "account-0: ");
    running.stop().await;
}

#[tokio::test]
async fn a_deleted_object_with_a_forbidden_import_goes_and_leaves_the_resource() {
    let (world, bank) = (World::start().await, Bank::default());
    bank.accounts.lock().unwrap().insert("theirs".to_owned(), "token".to_owned());
    let mut forbidding = Tills::of(&bank);
    forbidding.accounts = accounts(&bank).policy(ExternalPolicy::NO_IMPORT);
    let running = world.cluster.spawn(Manager::new(world.cluster.client()).controller(forbidding));
    world.create_annotated("shop", json!({ EXTERNAL_NAME: "theirs" })).await;
    let is_told = async || world.message("shop").await.contains("permits no import");
    world.eventually("it is told", is_told).await;
    world.api::<Shop>().delete("shop").await.unwrap();
    world.until_gone("shop").await;
    assert_eq!((bank.count(), bank.made().len()), (1, 0));
    assert!(world.owned::<Secret>().await.is_empty());
    running.settled().await;
    running.stop().await;
}
