//! External resources of fields that left their graph.

use k8s_openapi::api::events::v1::Event;
use windlass::external::{EXTERNAL_DRIVER, EXTERNAL_NAME, EXTERNAL_POLICY, External};

use super::super::*;
use super::{Accounts, Bank, Tills};

/// The next version of the controller, whose graph has no account.
mod next {
    use super::super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Tills)]
    struct TillParts {
        login: Secret,
        till: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(TillParts), name = "tills", outcome_condition = "Ready")]
    pub(super) struct Tills;

    impl DesiredTillParts for Tills {
        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }

        async fn till(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }
    }
}

/// Another next version: without a graph, with a clean-up of its own under the same finalizer.
#[derive(Controller)]
#[controller(for = Shop, name = "tills", finalizer = "graph.example.dev/account", outcome_condition = "Ready")]
struct Plain;

impl Reconciler for Plain {
    type Object = Shop;

    async fn reconcile(&self, _: &Shop, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

impl Finalize for Plain {
    async fn cleanup(&self, _: &Shop, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

/// A shop whose account was made by a version with a field for it, which has ended.
async fn with_account() -> (World, Bank) {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = first(&world, &bank);
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    running.stop().await;
    assert!(world.shop().await.unwrap().has_finalizer(Accounts::FINALIZER));
    (world, bank)
}

/// Runs the version with the field.
fn first(world: &World, bank: &Bank) -> RunningOperator {
    world.cluster.spawn(Manager::new(world.cluster.client()).controller(Tills::of(bank)))
}

/// Runs a version without it.
fn later<C: Controller>(world: &World, controller: C) -> RunningOperator {
    world.cluster.spawn(Manager::new(world.cluster.client()).controller(controller))
}

impl World {
    async fn shop(&self) -> Option<Shop> {
        self.api::<Shop>().get_opt("shop").await.unwrap()
    }

    /// Waits until the shop, which is being deleted, says that its account is left.
    async fn told_of_account(&self) {
        let is_told = async || {
            let told = self.told("shop").await;
            told.contains("\"account-0\"") && told.contains(EXTERNAL_POLICY)
        };
        self.eventually("the account is told", is_told).await;
    }

    /// Returns the notes of the Events of a reason.
    pub(super) async fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api::<Event>().list().await.unwrap().items;
        let found = events.into_iter().filter(|it| it.reason.as_deref() == Some(reason));
        found.filter_map(|event| event.note).collect()
    }

    async fn keep_account(&self) {
        self.patch(
            "shop",
            json!({ "metadata": { "annotations": { EXTERNAL_POLICY: "no-delete" } } }),
        )
        .await;
    }
}

#[tokio::test]
async fn the_resource_of_a_field_that_left_holds_its_object_and_says_so_until_it_may_stay() {
    let (world, bank) = with_account().await;
    let running = later(&world, next::Tills);
    running.settled().await;
    let shop = world.shop().await.unwrap();
    let ready = shop.status.unwrap_or_default().conditions.get("Ready").cloned().unwrap();
    assert!(
        ready.status == "True" && ready.message.contains("\"account-0\" is left alone"),
        "{ready:?}"
    );
    world.api::<Shop>().delete("shop").await.unwrap();
    world.told_of_account().await;
    world.rest().await;
    assert!(world.shop().await.is_some() && bank.made() == ["create"]);
    let is_event = async || !world.events("ExternalLeft").await.is_empty();
    world.eventually("an Event", is_event).await;

    world.keep_account().await;
    world.eventually("the shop is gone", async || world.shop().await.is_none()).await;
    assert_eq!(bank.made(), ["create"], "the account is there");
    let kept = async || world.events("ExternalKept").await;
    world.eventually("it is told", async || !kept().await.is_empty()).await;
    world.rest().await;
    assert_eq!(kept().await.len(), 1, "once");
    running.stop().await;
}

#[tokio::test]
async fn the_record_of_another_object_holds_no_copy_and_deletes_nothing() {
    let (world, bank) = with_account().await;
    let mut copy = world.shop().await.unwrap();
    let metadata = ObjectMeta {
        name: Some("copy".to_owned()),
        annotations: copy.metadata.annotations.clone(),
        finalizers: copy.metadata.finalizers.clone(),
        ..Default::default()
    };
    (copy.metadata, copy.status) = (metadata, None);
    world.api::<Shop>().create(&copy).await.unwrap();
    let running = later(&world, next::Tills);
    let message = async || world.message("copy").await;
    world.eventually("it is told", async || message().await.contains("another object")).await;
    running.settled().await;
    world.api::<Shop>().delete("copy").await.unwrap();
    let is_gone = async || world.api::<Shop>().get_opt("copy").await.unwrap().is_none();
    world.eventually("the copy is gone", is_gone).await;
    let is_told = async || !world.events("ExternalCopied").await.is_empty();
    world.eventually("it is told", is_told).await;
    assert_eq!((bank.made(), bank.count()), (vec!["create".to_owned()], 1));
    running.stop().await;
}

#[tokio::test]
async fn a_finalizer_of_a_field_that_made_nothing_goes_once_the_next_version_names_it() {
    let world = World::start().await;
    world.create("shop", &[]).await;
    let bank = Bank::default();
    let running = first(&world, &bank);
    running.settled().await;
    running.stop().await;
    let shop = world.shop().await.unwrap();
    assert!(shop.has_finalizer(Accounts::FINALIZER) && bank.made().is_empty());
    world.api::<Shop>().delete("shop").await.unwrap();

    let manager = Manager::new(world.cluster.client());
    let manager = manager.controller_configured(next::Tills, |builder| {
        builder.former_finalizer(Accounts::FINALIZER)
    });
    let running = world.cluster.spawn(manager);
    world.eventually("the shop is gone", async || world.shop().await.is_none()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_resource_holds_its_object_also_under_a_finalizer_that_is_named() {
    let (world, bank) = with_account().await;
    world.api::<Shop>().delete("shop").await.unwrap();
    let manager = Manager::new(world.cluster.client());
    let manager = manager.controller_configured(next::Tills, |builder| {
        builder.former_finalizer(Accounts::FINALIZER)
    });
    let running = world.cluster.spawn(manager);
    world.told_of_account().await;
    world.keep_account().await;
    world.eventually("the shop is gone", async || world.shop().await.is_none()).await;
    assert_eq!(bank.made(), ["create"], "the account is there");
    running.stop().await;
}

#[tokio::test]
async fn a_field_that_is_back_deletes_its_resource() {
    let (world, bank) = with_account().await;
    world.api::<Shop>().delete("shop").await.unwrap();
    let running = later(&world, next::Tills);
    world.told_of_account().await;
    running.stop().await;
    let running = first(&world, &bank);
    world.eventually("the shop is gone", async || world.shop().await.is_none()).await;
    assert_eq!(bank.made(), ["create", "delete"]);
    running.stop().await;
}

#[tokio::test]
async fn a_resource_is_left_also_under_a_finalizer_that_the_controller_still_has() {
    let (world, bank) = with_account().await;
    let running = later(&world, Plain);
    world.api::<Shop>().delete("shop").await.unwrap();
    world.told_of_account().await;
    world.rest().await;
    assert!(world.shop().await.is_some());
    world.keep_account().await;
    world.eventually("the shop is gone", async || world.shop().await.is_none()).await;
    assert_eq!(bank.made(), ["create"]);
    running.stop().await;
}

#[tokio::test]
async fn an_imported_resource_has_the_name_of_its_graph_too_and_a_record_that_goes_takes_it_along()
{
    let (world, bank) = with_account().await;
    let annotation = async |key: &str| {
        let shop = world.shop().await.unwrap();
        shop.annotation(key).map(str::to_owned)
    };
    let patch = |annotations: Value| json!({ "metadata": { "annotations": annotations } });
    let driver = format!("tills {}", Accounts::FINALIZER);
    assert_eq!(annotation(EXTERNAL_DRIVER).await.as_ref(), Some(&driver));
    // As a person imports it.
    let all = ["create-pending", "create-succeeded", "driver"]
        .map(|it| format!("windlass.dev/external-{it}"));
    let gone = all.map(|key| (key, Value::Null));
    world.patch("shop", patch(gone.into_iter().collect())).await;
    assert_eq!(annotation(EXTERNAL_NAME).await.as_deref(), Some("account-0"));
    let running = first(&world, &bank);
    running.settled().await;
    assert_eq!(annotation(EXTERNAL_DRIVER).await.as_ref(), Some(&driver));

    world.expose(false).await;
    let is_clear = async || annotation(EXTERNAL_NAME).await.is_none();
    world.eventually("the record is gone", is_clear).await;
    assert_eq!(annotation(EXTERNAL_DRIVER).await, None);
    assert_eq!(bank.made(), ["create", "delete"]);
    running.stop().await;
}
