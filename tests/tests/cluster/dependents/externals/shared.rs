//! Drivers that keep their records in the same annotations, and parts beside a field.

use windlass::external::{EXTERNAL_DRIVER, External, Externals};

use super::super::*;
use super::{Accounts, Bank, Tills, accounts, apart};

/// Drives an account by hand, beside a controller whose graph has a field for it.
#[derive(Controller)]
#[controller(for = Shop, name = "hands", finalizer = "graph.example.dev/account", outcome_condition = "Held")]
struct Hands(Externals<Accounts>);

impl Reconciler for Hands {
    type Object = Shop;

    async fn reconcile(&self, _: &Shop, cx: &Context<Self>) -> Result {
        self.0.reconcile(cx).await?;
        Ok(self.0.requeue(cx))
    }
}

impl Finalize for Hands {
    async fn cleanup(&self, _: &Shop, cx: &Context<Self>) -> Result<()> {
        self.0.cleanup(cx).await
    }
}

/// A controller with a part beside the field of its graph.
mod parted {
    use super::super::super::*;
    use super::super::Accounts;
    use windlass::external::Externals;

    #[derive(Dependents)]
    #[dependents(by = Tills)]
    struct PartedParts {
        #[dependent(external)]
        account: Accounts,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(PartedParts), name = "tills")]
    pub(super) struct Tills(pub(super) Externals<Accounts>);

    impl DesiredPartedParts for Tills {
        fn account(&self) -> &Externals<Accounts> {
            &self.0
        }
    }

    impl Reconciler for Tills {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            self.0.part("savings").reconcile(cx).await?;
            PartedParts::apply(self, shop, cx).await?.action()
        }
    }
}

impl World {
    async fn condition(&self, type_: &str) -> (String, String) {
        let shop = self.api::<Shop>().get("shop").await.unwrap();
        let found = shop.status.unwrap_or_default().conditions.get(type_).cloned();
        found.map(|it| (it.reason, it.message)).unwrap_or_default()
    }

    async fn version(&self) -> String {
        self.api::<Shop>().get("shop").await.unwrap().resource_version().to_owned()
    }
}

#[tokio::test]
async fn a_driver_by_hand_and_a_field_of_two_operators_write_their_names_no_more_than_once() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let client = world.cluster.client();
    let field =
        world.cluster.spawn(Manager::new(client.clone()).controller(apart::Tills(accounts(&bank))));
    world.eventually("the account is there", async || bank.count() == 1).await;
    let hands = world.cluster.spawn(Manager::new(client).controller(Hands(accounts(&bank))));
    let is_told = async || {
        let (reason, message) = world.condition("Held").await;
        reason == "TerminalError" && message.contains("\"tills\"") && message.contains("named")
    };
    world.eventually("it is told", is_told).await;
    world.rest().await;
    let before = world.version().await;
    world.rest().await;
    assert_eq!(world.version().await, before, "nothing is written any more");
    assert_eq!((bank.made(), bank.count()), (vec!["create".to_owned()], 1));
    hands.stop_anyway().await;
    field.stop().await;
}

#[tokio::test]
async fn two_controllers_whose_drivers_have_one_name_do_not_start() {
    let (world, bank) = (World::start().await, Bank::default());
    let manager = Manager::new(world.cluster.client());
    let other = windlass::external::ExternalController::new(accounts(&bank));
    let manager = manager.controller(Tills::of(&bank)).controller(other);
    let error = manager.run().await.unwrap_err().to_string();
    assert!(error.contains("\"tills\" and \"shop\"") && error.contains("named"), "{error}");
}

#[tokio::test]
async fn a_part_that_is_driven_by_hand_beside_its_field_has_the_name_of_the_controller() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    let manager = Manager::new(world.cluster.client());
    let running = world.cluster.spawn(manager.controller(parted::Tills(accounts(&bank))));
    world.eventually("both are there", async || bank.count() == 2).await;
    running.settled().await;
    let shop = world.api::<Shop>().get("shop").await.unwrap();
    let driver = format!("tills {}", Accounts::FINALIZER);
    for suffix in ["", "_savings"] {
        let key = format!("{EXTERNAL_DRIVER}{suffix}");
        assert_eq!(shop.annotation(&key), Some(driver.as_str()), "{key}");
    }
    world.api::<Shop>().delete("shop").await.unwrap();
    world.eventually("the shop is gone", async || world.is_gone().await).await;
    assert_eq!(bank.count(), 0);
    running.stop().await;
}
