//! External resources between the children of a graph.

mod left;
mod shared;
mod unowned;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use windlass::external::{
    CreateError, CreateOutcome, External, ExternalObject, ExternalState, Externals,
    ObservedResource,
};
use windlass_apiserver::faults::{Fault, FaultAction};

use super::restarts::crash_at;
use super::*;

/// A bank with accounts, outside of the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Bank {
    /// Token of each account, by its id.
    accounts: Arc<Mutex<BTreeMap<String, String>>>,
    /// Ids of accounts whose deletion is begun, and does not end yet.
    closing: Arc<Mutex<bool>>,
    /// Whether accounts are shown without their tokens.
    hides_tokens: Arc<Mutex<bool>>,
    /// Ids of accounts that others have changed.
    changed: Arc<Mutex<BTreeSet<String>>>,
    /// Whether the bank's library panics when it is to delete an account.
    panics: Arc<Mutex<bool>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Bank {
    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(call.to_owned());
    }

    fn count(&self) -> usize {
        self.accounts.lock().unwrap().len()
    }

    /// Returns all calls that change something.
    pub(super) fn made(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn calls(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|it| *it == call).count()
    }
}

/// Accounts of shops.
pub(super) struct Accounts(Bank);

impl External for Accounts {
    type Object = Shop;
    type Handle = String;
    const FINALIZER: &'static str = "graph.example.dev/account";

    async fn observe(
        &self,
        _: &ExternalObject<'_, Shop>,
        id: &str,
    ) -> Result<ObservedResource<String>> {
        let accounts = self.0.accounts.lock().unwrap();
        let hides_token = *self.0.hides_tokens.lock().unwrap();
        let shown = |token: &String| if hides_token { String::new() } else { token.clone() };
        let is_changed = self.0.changed.lock().unwrap().contains(id);
        Ok(match accounts.get(id).map(shown) {
            None => ObservedResource::Missing,
            Some(token) if is_changed => {
                ObservedResource::Drifted(token, "another holder".to_owned())
            }
            Some(token) => ObservedResource::UpToDate(token),
        })
    }

    async fn create(
        &self,
        _: &ExternalObject<'_, Shop>,
        token: &str,
    ) -> Result<String, CreateError> {
        self.0.note("create");
        let mut accounts = self.0.accounts.lock().unwrap();
        let id = format!("account-{}", accounts.len());
        accounts.insert(id.clone(), token.to_owned());
        Ok(id)
    }

    async fn find_created(
        &self,
        _: &ExternalObject<'_, Shop>,
        token: &str,
    ) -> Result<CreateOutcome> {
        let accounts = self.0.accounts.lock().unwrap();
        let found = accounts.iter().find(|(_, it)| *it == token);
        Ok(found.map_or(CreateOutcome::Missing, |(id, _)| CreateOutcome::Created(id.clone())))
    }

    async fn update(&self, _: &ExternalObject<'_, Shop>, id: &str, _: &String) -> Result<()> {
        self.0.note("update");
        self.0.changed.lock().unwrap().remove(id);
        Ok(())
    }

    async fn delete(&self, _: &ExternalObject<'_, Shop>, id: &str, _: &String) -> Result<()> {
        self.0.note("delete");
        assert!(!*self.0.panics.lock().unwrap(), "no connection");
        if !*self.0.closing.lock().unwrap() {
            self.0.accounts.lock().unwrap().remove(id);
        }
        Ok(())
    }
}

fn has_token(account: &ExternalState<String>) -> bool {
    !account.handle.is_empty()
}

#[derive(Dependents)]
#[dependents(by = Tills)]
struct TillParts {
    login: Secret,
    #[dependent(external, after(login), when = Shop::is_exposed, ready = has_token)]
    account: Accounts,
    #[dependent(after(account))]
    till: ConfigMap,
}

#[derive(Controller)]
#[controller(for = Shop, dependents(TillParts), name = "tills")]
pub(super) struct Tills {
    accounts: Externals<Accounts>,
}

impl Tills {
    pub(super) fn of(bank: &Bank) -> Self {
        Self { accounts: accounts(bank) }
    }
}

/// A driver that knows soon whether an account was made, since the time of a real server is real.
fn accounts(bank: &Bank) -> Externals<Accounts> {
    let second = Duration::from_secs(1);
    let accounts = Externals::new(Accounts(bank.clone())).poll_every(5 * second);
    accounts.call_timeout(2 * second).creation_grace(Duration::ZERO)
}

impl DesiredTillParts for Tills {
    async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
        Ok(secret(shop.name().to_owned()))
    }

    fn account(&self) -> &Externals<Accounts> {
        &self.accounts
    }

    async fn till(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(map(shop.name().to_owned()))
    }
}

impl Reconciler for Tills {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
        let parts = TillParts::apply_each(self, shop, cx).await;
        let id = parts.account.resource().map_or("none", |account| &account.id);
        let condition = if parts.all_ready() { met } else { unmet };
        let text = format!("{id}: {}", parts.summary());
        cx.set_condition(condition("Ready", "Reconciled", text)).await?;
        parts.action()
    }
}

fn tills(world: &World, bank: &Bank) -> RunningOperator {
    world.cluster.spawn(Manager::new(world.cluster.client()).controller(Tills::of(bank)))
}

impl World {
    async fn message(&self, name: &str) -> String {
        let shop = self.api::<Shop>().get(name).await.unwrap();
        let conditions = shop.status.unwrap_or_default().conditions;
        conditions.get("Ready").map_or_else(String::new, |ready| ready.message.clone())
    }

    pub(super) async fn expose(&self, exposed: bool) {
        self.patch("shop", json!({ "spec": { "exposed": exposed } })).await;
    }

    async fn is_gone(&self) -> bool {
        self.api::<Shop>().get_opt("shop").await.unwrap().is_none()
    }
}

#[tokio::test]
async fn an_external_resource_stands_between_the_children_in_both_orders() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    assert_eq!(bank.count(), 1);
    assert_eq!(world.message("shop").await, "account-0: ");
    let shop = world.api::<Shop>().get("shop").await.unwrap();
    assert!(shop.has_finalizer(Accounts::FINALIZER), "without one in the attribute");

    // The deletion: the till, the account, the login.
    *bank.closing.lock().unwrap() = true;
    world.api::<Shop>().delete("shop").await.unwrap();
    world.eventually("it is closing", async || bank.calls("delete") > 0).await;
    world
        .eventually("the till is gone", async || world.owned::<ConfigMap>().await.is_empty())
        .await;
    world.rest().await;
    assert_eq!(world.owned::<Secret>().await, ["shop"], "it comes before the account");
    assert!(!world.is_gone().await);
    *bank.closing.lock().unwrap() = false;
    world.eventually("the shop is gone", async || world.is_gone().await).await;
    assert_eq!((bank.count(), world.owned::<Secret>().await.len()), (0, 0));
    running.stop().await;
}

#[tokio::test]
async fn an_external_resource_goes_with_its_condition_and_is_then_asked_for_no_more() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    world.eventually("the account is there", async || bank.count() == 1).await;
    running.settled().await;
    world.expose(false).await;
    world.eventually("the account is gone", async || bank.count() == 0).await;
    running.settled().await;
    assert_eq!(world.message("shop").await, "none: ");
    let deletes = bank.calls("delete");
    world.patch("shop", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    running.settled().await;
    assert_eq!(bank.calls("delete"), deletes);
    world.api::<Shop>().delete("shop").await.unwrap();
    world.eventually("the shop is gone", async || world.is_gone().await).await;
    running.stop().await;
}

#[tokio::test]
async fn a_crash_between_any_two_writes_makes_no_second_resource_and_leaves_none() {
    for n in 0..9 {
        let (world, bank) = (World::start().await, Bank::default());
        let operator = |client| Manager::new(client).controller(Tills::of(&bank));
        world.create("shop", &[]).await;
        world.expose(true).await;
        crash_at(&world, n, operator).await;
        let running = tills(&world, &bank);
        world
            .eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"])
            .await;
        running.settled().await;
        assert_eq!(bank.count(), 1, "write {n}");
        running.stop().await;

        world.api::<Shop>().delete("shop").await.unwrap();
        crash_at(&world, n, operator).await;
        let running = tills(&world, &bank);
        world.eventually("the shop is gone", async || world.is_gone().await).await;
        assert_eq!(bank.count(), 0, "write {n}");
        assert!(world.owned::<Secret>().await.is_empty(), "write {n}");
        running.stop().await;
        world.end();
    }
}

#[tokio::test]
async fn an_external_resource_is_not_made_before_what_it_comes_after() {
    let (world, bank) = (World::embedded().await, Bank::default());
    let refusing = Fault::new(FaultAction::Answer(403)).on("patch").resource("secrets").always();
    let refusing = world.cluster.server().faults().add(refusing);
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    world
        .eventually("it is told", async || {
            world
                .message("shop")
                .await
                .contains("account: waits for login; till: waits for account")
        })
        .await;
    world.pass(60).await;
    assert_eq!(bank.made(), Vec::<String>::new());
    refusing.remove();
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    assert_eq!(bank.made(), ["create"]);
    running.stop().await;
}

#[tokio::test]
async fn an_external_resource_is_judged_by_its_rule_and_observed_again() {
    let (world, bank) = (World::start().await, Bank::default());
    *bank.hides_tokens.lock().unwrap() = true;
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    let text = "account-0: account: not ready; till: waits for account";
    world.eventually("it is told", async || world.message("shop").await == text).await;
    assert!(world.owned::<ConfigMap>().await.is_empty());
    *bank.hides_tokens.lock().unwrap() = false;
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    assert_eq!(world.message("shop").await, "account-0: ");

    // Nothing but its interval shows that somebody has closed the account.
    bank.accounts.lock().unwrap().clear();
    world.eventually("it is made again", async || bank.count() == 1).await;
    world.rest().await;
    assert_eq!((bank.count(), bank.made()), (1, vec!["create".to_owned(); 2]));
    running.stop().await;
}

#[tokio::test]
async fn what_others_change_outside_is_seen_and_set_back() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    world.expose(true).await;
    let running = tills(&world, &bank);
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    bank.changed.lock().unwrap().insert("account-0".to_owned());
    world.eventually("it is set back", async || bank.changed.lock().unwrap().is_empty()).await;
    world.rest().await;
    assert_eq!(bank.made(), ["create", "update"]);
    assert_eq!(world.message("shop").await, "account-0: ");
    running.stop().await;
}

/// A graph with a child that does not depend on its external resource.
mod apart {
    use super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Tills)]
    struct TillParts {
        sign: Secret,
        #[dependent(external)]
        account: Accounts,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(TillParts), name = "tills", outcome_condition = "Ready")]
    pub(super) struct Tills(pub(super) Externals<Accounts>);

    impl DesiredTillParts for Tills {
        async fn sign(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }

        fn account(&self) -> &Externals<Accounts> {
            &self.0
        }
    }
}

#[tokio::test]
async fn a_panic_in_the_deletion_of_a_resource_stops_no_other_field() {
    let (world, bank) = (World::start().await, Bank::default());
    world.create("shop", &[]).await;
    let manager = Manager::new(world.cluster.client());
    let running = world.cluster.spawn(manager.controller(apart::Tills(accounts(&bank))));
    world.eventually("the account is there", async || bank.count() == 1).await;
    running.settled().await;
    *bank.panics.lock().unwrap() = true;
    world.api::<Shop>().delete("shop").await.unwrap();
    world.eventually("the sign is gone", async || world.owned::<Secret>().await.is_empty()).await;
    let is_told = async || {
        let message = world.message("shop").await;
        message.contains("deleting account: panicked: no connection")
    };
    world.eventually("it is told", is_told).await;
    assert!(!world.is_gone().await && bank.count() == 1);
    *bank.panics.lock().unwrap() = false;
    world.eventually("the shop is gone", async || world.is_gone().await).await;
    assert_eq!(bank.count(), 0);
    running.stop().await;
}
