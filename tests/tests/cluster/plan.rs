//! A plan: the real reconciles, whose writes are all dry runs.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::Patch;
use windlass::controller::{
    Finalize, PlannedAction, PlannedChange, PlannedObject, PlannedOutcome, note_external_call,
    predicates,
};
use windlass::manager::{Plan, PlanOptions};
use windlass::prelude::*;
use windlass::testing::TestCluster;
use windlass_apiserver::faults::{Fault, FaultAction};

use crate::bench::Bench;
use crate::gadget::{FINALIZER, Gadget, gadget};

/// Gives each gadget a page and a key, and acts according to the gadget's color.
#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(ConfigMap, Secret), finalizer = "test.windlass.dev/gadget", name = "painter")]
struct Painter;

impl Painter {
    async fn paint(gadget: &Gadget, cx: &Context<Self>, color: &str) -> Result<()> {
        let mut page = ConfigMap::default();
        page.metadata.name = Some(gadget.name().to_owned());
        page.data = Some([("color".to_owned(), color.to_owned())].into());
        cx.apply_owned(page).await?;
        let pages = cx.store_of::<ConfigMap>();
        let page = pages.get(&gadget.key()).expect("later steps see the page").get().unwrap();
        assert_eq!(page.data.as_ref().unwrap()["color"], color, "as it was applied");
        assert!(pages.owned_by(gadget.uid()).iter().any(|page| page.key() == &gadget.key()));
        Ok(())
    }

    /// Creates pages of generated names until there are two.
    async fn pages(gadget: &Gadget, cx: &Context<Self>) -> Result<()> {
        while cx.store_of::<ConfigMap>().owned_by(gadget.uid()).len() < 3 {
            assert!(cx.expectations().satisfied(), "nothing is awaited from the watch");
            let mut page = ConfigMap::default();
            page.metadata.generate_name = Some("page-".to_owned());
            cx.create_owned(page).await?;
        }
        assert!(cx.expectations().satisfied() && !cx.stale());
        Ok(())
    }
}

impl Reconciler for Painter {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        assert!(gadget.has_finalizer(FINALIZER), "it is put on before");
        Self::paint(gadget, cx, &gadget.spec.color).await?;
        let mut key = Secret::default();
        key.metadata.name = Some(gadget.name().to_owned());
        let token = ByteString(format!("token of {}", gadget.spec.color).into_bytes());
        key.data = Some(BTreeMap::from([("token".to_owned(), token)]));
        cx.apply_owned(key).await?;
        match gadget.spec.color.as_str() {
            "fails" => return Err("on purpose".into()),
            "panics" => panic!("on purpose"),
            "waits" => return Ok(Action::wait_for("Drying", "1 of 2 coats")),
            "twice" => Self::paint(gadget, cx, "a second coat").await?,
            "pages" => Self::pages(gadget, cx).await?,
            "red" => {
                cx.delete_owned::<ConfigMap>("old").await?;
                let old = cx.near("old");
                assert!(cx.store_of::<ConfigMap>().get(&old).is_none(), "later steps miss it");
            }
            "directly" => {
                let maps = cx.api::<ConfigMap>();
                maps.patch("shared", Patch::Merge(json!({ "data": { "by": "us" } }))).await?;
                maps.delete_collection().labels("kind=scrap").await?;
            }
            "labelled" => {
                let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
                cx.api::<ConfigMap>().patch(gadget.name(), Patch::Merge(label)).await?;
            }
            "back" => {
                let maps = cx.api::<ConfigMap>();
                for data in [json!({ "by": "us", "seen": "1" }), json!({ "by": "them" })] {
                    maps.patch("shared", Patch::Merge(json!({ "data": data }))).await?;
                }
            }
            _ => {}
        }
        cx.set_condition(met("Painted", "Done", &gadget.spec.color)).await?;
        cx.set_condition(met("Ready", "Done", &gadget.spec.color)).await?;
        cx.event(Normal, "Painted", "is not sent");
        Ok(Action::done())
    }
}

/// Keys near the reconciled object.
trait Near {
    fn near(&self, name: &str) -> windlass::resource::ObjectKey;
}

impl Near for Context<Painter> {
    fn near(&self, name: &str) -> windlass::resource::ObjectKey {
        windlass::resource::ObjectKey::new(self.object().namespace(), name)
    }
}

impl Finalize for Painter {
    async fn cleanup(&self, gadget: &Gadget, cx: &Context<Self>) -> Result<()> {
        if !note_external_call(cx, format!("unregister {}", gadget.name())) {
            assert!(!cx.client().is_dry_run());
        }
        Ok(())
    }
}

fn operator(cluster: &TestCluster, client: Client) -> Manager {
    Manager::new(client).namespaces([cluster.namespace()]).install::<Gadget>().controller(Painter)
}

impl Bench {
    async fn planned(&self) -> Plan {
        self.planned_with(PlanOptions::default()).await.unwrap()
    }

    async fn planned_with(&self, options: PlanOptions) -> Result<Plan, windlass::Error> {
        operator(&self.cluster, self.cluster.client().dry_run()).plan(options).await
    }

    async fn planned_of(&self, name: &str) -> PlannedObject {
        let plan = self.planned().await;
        let is_it = |object: &&PlannedObject| object.key.name() == name;
        plan.objects.iter().find(is_it).cloned().unwrap_or_else(|| panic!("{plan:#?}"))
    }

    /// Runs the operator until it has settled.
    async fn run(&self) {
        let running =
            self.cluster.spawn_unrestricted(operator(&self.cluster, self.cluster.client()));
        running.settled().await;
        running.stop().await;
    }

    async fn map(&self, name: &str, metadata: Value) {
        let mut map = json!({ "metadata": metadata });
        map["metadata"]["name"] = name.into();
        self.children.create(&serde_json::from_value(map).unwrap()).await.unwrap();
    }
}

/// Returns a line for each change: action, resource, name, paths.
fn lines(object: &PlannedObject) -> Vec<String> {
    let changes = object.changes.iter().map(|change| {
        let fields = change.fields.iter().map(|field| {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            format!("{}: {} -> {}", field.path, text(&field.from), text(&field.to))
        });
        let fields: Vec<String> = fields.collect();
        let (action, resource) = (change.action.as_str(), &change.resource);
        format!("{action} {resource} {} {}", change.key.name(), fields.join("; "))
    });
    changes.collect()
}

#[tokio::test]
async fn a_new_object_is_planned_with_all_its_writes_and_nothing_is_stored() {
    let cluster = TestCluster::builder().audit(true).start().await;
    let bench = Bench::on(cluster).await;
    bench.gadgets.create(&gadget("home", "blue")).await.unwrap();
    let before = bench.gadgets.get("home").await.unwrap();
    let server = bench.cluster.is_embedded().then(|| bench.cluster.server().clone());
    let (revision, audited) = match &server {
        Some(server) => (server.revision(), server.audit().len()),
        None => (0, 0),
    };
    let home = bench.planned_of("home").await;
    assert_eq!((&*home.controller, &*home.kind), ("painter", "Gadget"));
    assert_eq!(home.outcome, PlannedOutcome::Reconciled);
    let found = lines(&home);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(
        found[0].starts_with("update gadgets.test.windlass.dev home .metadata.finalizers"),
        "{found:#?}"
    );
    for part in [FINALIZER, ".status.conditions[type=Painted]", ".status.conditions[type=Ready]"] {
        assert!(found[0].contains(part), "{part:?} is not in {found:#?}");
    }
    assert!(
        found[1].starts_with("create configmaps home .data.color: - -> \"blue\""),
        "{found:#?}"
    );
    assert!(found[2].starts_with("create secrets home .data.token: - -> ***"), "{found:#?}");
    assert_eq!(
        bench.gadgets.get("home").await.unwrap().resource_version(),
        before.resource_version()
    );
    assert!(bench.children.get_opt("home").await.unwrap().is_none());
    if let Some(server) = server {
        assert_eq!(server.revision(), revision, "nothing was stored, not even an Event or a Lease");
        let mut writes = 0;
        for entry in server.audit().split_off(audited) {
            assert_eq!(entry["changes"], json!([]), "{entry}");
            let verb = entry["verb"].as_str().unwrap();
            writes += usize::from(!["get", "list", "watch"].contains(&verb));
        }
        assert!(writes >= 5, "finalizer, two children and two conditions were tried: {writes}");
    }
}

#[tokio::test]
async fn nothing_is_planned_once_the_operator_has_settled_and_a_change_is_planned_by_its_path() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "blue")).await.unwrap();
    bench.run().await;
    let plan = bench.planned().await;
    assert!(!plan.has_changes() && !plan.has_failures(), "{plan:#?}");
    assert_eq!(plan.objects.len(), 1);
    let owner = bench.gadgets.get("home").await.unwrap();
    let info = windlass::resource::ResourceInfo::of::<Gadget>();
    let reference = owner.controller_reference(&info).unwrap();
    bench.map("old", json!({ "ownerReferences": [reference] })).await;
    bench.change("home", json!({ "color": "red" })).await;
    let home = bench.planned_of("home").await;
    let found = lines(&home);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(found[0], "update configmaps home .data.color: \"blue\" -> \"red\"");
    assert_eq!(found[1], "update secrets home .data.token: *** -> ***");
    assert_eq!(found[2], "delete configmaps old ");
    assert!(found[3].contains(".status.conditions[type=Ready].message: \"blue\" -> \"red\""));
    assert!(bench.children.get_opt("old").await.unwrap().is_some());
    let all = format!("{home:?}");
    assert!(!all.contains("dG9rZW4"), "values of Secrets are masked: {all}");
}

#[tokio::test]
async fn a_step_sees_the_writes_before_it_and_another_plan_does_not() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("a", "twice")).await.unwrap();
    bench.gadgets.create(&gadget("b", "pages")).await.unwrap();
    for _ in 0..2 {
        let plan = bench.planned().await;
        assert!(!plan.has_failures(), "{plan:#?}");
        let found = lines(&plan.objects[0]);
        assert!(found.iter().any(|line| line.contains("\"a second coat\"")), "{found:#?}");
        let found = lines(&plan.objects[1]);
        let pages = found.iter().filter(|line| line.starts_with("create configmaps page-* "));
        assert_eq!(pages.count(), 2, "{found:#?}");
    }
}

#[tokio::test]
async fn requests_that_bypass_the_context_are_dry_runs_and_planned() {
    let bench = Bench::start().await;
    bench.map("shared", json!({})).await;
    for name in ["scrap-1", "scrap-2"] {
        bench.map(name, json!({ "labels": { "kind": "scrap" } })).await;
    }
    bench.gadgets.create(&gadget("home", "directly")).await.unwrap();
    let found = lines(&bench.planned_of("home").await);
    for expected in [
        "update configmaps shared .data.by: - -> \"us\"",
        "delete configmaps scrap-1 ",
        "delete configmaps scrap-2 ",
    ] {
        assert!(found.iter().any(|line| line == expected), "{expected:?} is not in {found:#?}");
    }
    assert_eq!(bench.children.list().labels("kind=scrap").await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn values_of_a_secret_are_masked_when_its_state_before_is_not_known() {
    let bench = Bench::on(TestCluster::builder().embedded().start().await).await;
    bench.gadgets.create(&gadget("home", "blue")).await.unwrap();
    bench.run().await;
    bench.change("home", json!({ "color": "red" })).await;
    let fault = Fault::new(FaultAction::Answer(403)).on("get").resource("secrets").always();
    let fault = bench.cluster.server().faults().add(fault);
    let home = bench.planned_of("home").await;
    fault.remove();
    let key = home.changes.iter().find(|change| change.resource == "secrets").unwrap();
    assert!(key.note.as_deref().unwrap().contains("not known"), "{key:?}");
    let token = key.fields.iter().find(|field| field.path == ".data.token").unwrap();
    assert_eq!(token.to.as_deref(), Some("***"));
    assert!(!format!("{home:?}").contains("dG9rZW4"), "{home:?}");
}

#[tokio::test]
async fn the_deletion_of_an_object_that_is_being_deleted_is_no_change() {
    let bench = Bench::start().await;
    let hold = json!(["example.dev/hold"]);
    bench.map("shared", json!({})).await;
    bench.map("scrap-1", json!({ "labels": { "kind": "scrap" }, "finalizers": hold })).await;
    bench.map("scrap-2", json!({ "labels": { "kind": "scrap" } })).await;
    bench.gadgets.create(&gadget("all", "directly")).await.unwrap();
    let one = bench.gadgets.create(&gadget("one", "red")).await.unwrap();
    let info = windlass::resource::ResourceInfo::of::<Gadget>();
    let reference = one.controller_reference(&info).unwrap();
    bench.map("old", json!({ "ownerReferences": [reference], "finalizers": hold })).await;
    let is_there = |found: &[String], line: &str| found.iter().any(|it| it == line);
    let found = lines(&bench.planned_of("one").await);
    assert!(is_there(&found, "delete configmaps old "), "{found:#?}");
    for name in ["scrap-1", "old"] {
        bench.children.delete(name).await.unwrap();
    }
    let found = lines(&bench.planned_of("one").await);
    assert!(!is_there(&found, "delete configmaps old "), "{found:#?}");
    let found = lines(&bench.planned_of("all").await);
    assert!(is_there(&found, "delete configmaps scrap-2 "), "{found:#?}");
    assert!(!is_there(&found, "delete configmaps scrap-1 "), "{found:#?}");
    for name in ["scrap-1", "old"] {
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        bench.children.patch(name, free).await.unwrap();
    }
}

#[tokio::test]
async fn a_value_that_a_later_write_sets_back_is_no_change() {
    let bench = Bench::start().await;
    let shared = json!({ "metadata": { "name": "shared" }, "data": { "by": "them" } });
    bench.children.create(&serde_json::from_value(shared).unwrap()).await.unwrap();
    bench.gadgets.create(&gadget("home", "back")).await.unwrap();
    let found = lines(&bench.planned_of("home").await);
    let of_shared: Vec<&String> = found.iter().filter(|line| line.contains(" shared ")).collect();
    assert_eq!(of_shared, ["update configmaps shared .data.seen: - -> \"1\""], "{found:#?}");
}

#[tokio::test]
async fn a_failure_is_shown_with_its_object_and_others_are_planned() {
    let bench = Bench::start().await;
    for (name, color) in [("a", "fails"), ("b", "panics"), ("c", "waits"), ("d", "blue")] {
        bench.gadgets.create(&gadget(name, color)).await.unwrap();
    }
    let plan = bench.planned().await;
    let text = |at: usize| format!("{:?}", plan.objects[at].outcome);
    assert!(text(0).starts_with("Failed(") && text(0).contains("on purpose"), "{}", text(0));
    assert!(text(1).contains("the reconciler panicked: on purpose"), "{}", text(1));
    assert_eq!(text(2), "Waiting(\"Drying: 1 of 2 coats\")");
    assert_eq!(plan.objects[3].outcome, PlannedOutcome::Reconciled);
    assert!(plan.has_failures());
    let created = |object: &PlannedObject| {
        object.changes.iter().filter(|change| change.action == PlannedAction::Create).count()
    };
    assert!(plan.objects.iter().all(|object| created(object) == 2), "{plan:#?}");
}

#[tokio::test]
async fn a_second_write_to_an_object_that_the_plan_creates_fails_with_the_reason() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "labelled")).await.unwrap();
    let home = bench.planned_of("home").await;
    let PlannedOutcome::Failed(text) = &home.outcome else { panic!("{:?}", home.outcome) };
    let page =
        format!("this plan creates configmaps {}/home by a dry run", bench.cluster.namespace());
    assert!(text.contains(&page) && text.contains("are in no plan until"), "{text}");
    let is_page = |change: &PlannedChange| change.resource == "configmaps";
    assert!(home.changes.iter().any(is_page), "changes until then are planned: {home:#?}");

    // An object that is missing for another reason has no such text.
    bench.gadgets.create(&gadget("other", "directly")).await.unwrap();
    let other = bench.planned_of("other").await;
    let PlannedOutcome::Failed(text) = &other.outcome else { panic!("{:?}", other.outcome) };
    assert!(text.contains("shared") && !text.contains("by a dry run"), "{text}");
}

#[tokio::test]
async fn the_clean_up_of_a_deleted_object_is_planned_with_its_calls_of_other_systems() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "blue")).await.unwrap();
    bench.run().await;
    bench.gadgets.delete("home").await.unwrap();
    let home = bench.planned_of("home").await;
    assert_eq!(home.external_calls, ["unregister home"]);
    let found = lines(&home);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("update gadgets.test.windlass.dev home .metadata.finalizers: ["));
    assert!(found[0].ends_with("-> -"), "{found:#?}");
    assert!(bench.gadgets.get("home").await.unwrap().has_finalizer(FINALIZER));
}

#[tokio::test]
async fn a_plan_is_limited_to_the_named_objects() {
    let bench = Bench::start().await;
    for name in ["a", "b"] {
        bench.gadgets.create(&gadget(name, "blue")).await.unwrap();
    }
    let namespace = bench.cluster.namespace().to_owned();
    let wanted = |kind: &str, object: &str| {
        let mut options = PlanOptions::default();
        options.kind = Some(kind.to_owned());
        options.objects = vec![object.to_owned()];
        options
    };
    for kind in ["Gadget", "gadgets", "gadgets.test.windlass.dev"] {
        let plan = bench.planned_with(wanted(kind, &format!("{namespace}/b"))).await.unwrap();
        let names: Vec<&str> = plan.objects.iter().map(|object| object.key.name()).collect();
        assert_eq!(names, ["b"], "{kind}");
    }
    let plan = bench.planned_with(wanted("Gadget", &format!("{namespace}/none"))).await.unwrap();
    assert!(plan.has_failures(), "there is no such object: {plan:#?}");
    for (kind, object, part) in [("Pod", "a/b", "no controller"), ("Gadget", "b", "NAMESPACE/NAME")]
    {
        let error = bench.planned_with(wanted(kind, object)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_named_object_that_the_controller_does_not_select_is_not_reconciled() {
    let bench = Bench::start().await;
    for name in ["a", "b"] {
        bench.gadgets.create(&gadget(name, "blue")).await.unwrap();
    }
    let namespace = bench.cluster.namespace();
    let mut options = PlanOptions::default();
    options.kind = Some("Gadget".to_owned());
    options.objects = vec![format!("{namespace}/a"), format!("{namespace}/b")];
    let manager = Manager::new(bench.cluster.client().dry_run()).namespaces([namespace]);
    let manager =
        manager.controller_configured(Painter, |builder| builder.when(predicates::name("a")));
    let plan = manager.plan(options).await.unwrap();
    let outcomes: Vec<&PlannedOutcome> = plan.objects.iter().map(|one| &one.outcome).collect();
    assert_eq!(outcomes, [&PlannedOutcome::Reconciled, &PlannedOutcome::NotSelected]);
    assert!(!plan.objects[1].has_changes() && !plan.has_failures(), "{plan:#?}");
}

#[tokio::test]
async fn the_condition_of_an_object_that_waits_is_planned() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "waits")).await.unwrap();
    let manager =
        Manager::new(bench.cluster.client().dry_run()).namespaces([bench.cluster.namespace()]);
    let manager =
        manager.controller_configured(Painter, |builder| builder.outcome_condition("Reconciled"));
    let plan = manager.plan(PlanOptions::default()).await.unwrap();
    let found = lines(&plan.objects[0]).join("; ");
    let message = ".status.conditions[type=Reconciled].message: - -> \"Drying: 1 of 2 coats\"";
    assert!(found.contains(message), "{found}");
}

#[tokio::test]
async fn a_plan_needs_a_client_for_dry_runs_and_an_installed_kind() {
    let bench = Bench::start().await;
    let client = bench.cluster.client();
    let error = operator(&bench.cluster, client).plan(PlanOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("client.dry_run()"), "{error}");
    let client = bench.cluster.client().dry_run();
    let absent = Manager::new(client).controller(windlass_tests::widget::Absents);
    let error = absent.plan(PlanOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("does not serve absents.test.windlass.dev"), "{error}");
}

/// Another version of the painter, which paints the page in another color than the gadget says.
#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(ConfigMap), name = "painter")]
struct NextPainter(&'static str);

impl Reconciler for NextPainter {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let color = if self.0.is_empty() { gadget.spec.color.clone() } else { self.0.to_owned() };
        let mut page = ConfigMap::default();
        page.metadata.name = Some(gadget.name().to_owned());
        page.data = Some([("color".to_owned(), color)].into());
        match gadget.spec.color.as_str() {
            // The second finds the answer to the first.
            "twice" => {
                cx.apply_owned(page.clone()).await?;
            }
            "calls" => {
                note_external_call(cx, "paint the wall");
            }
            _ => {}
        }
        cx.apply_owned(page).await?;
        if self.0 == "waits" || gadget.spec.color == "dries" {
            return Ok(Action::wait_for("Drying", "1 of 2 coats"));
        }
        Ok(Action::done())
    }
}

impl Bench {
    /// Returns the number of objects whose reported differences stand.
    fn differing(&self) -> String {
        let metrics = self.cluster.client().environment().metrics.encode();
        let line = metrics.lines().find(|line| line.starts_with("windlass_shadow_differences{"));
        line.and_then(|line| line.rsplit(' ').next()).unwrap_or("none").to_owned()
    }
}

#[tokio::test]
async fn a_shadow_reports_differences_that_last_and_writes_nothing() {
    let cluster = TestCluster::builder().embedded().audit(true).start().await;
    let bench = Bench::on(cluster).await;
    let operator = |client: Client, painter| {
        Manager::new(client).namespaces([bench.cluster.namespace()]).controller(painter)
    };
    let running = bench.cluster.spawn(operator(bench.cluster.client(), NextPainter("")));
    let settle_time = Duration::from_secs(10);
    let shadow = bench.cluster.client().dry_run();
    let shadow = operator(shadow, NextPainter("red")).leader_election("shadow").shadow(settle_time);
    let shadow = bench.cluster.spawn_unrestricted(shadow);
    bench.gadgets.create(&gadget("same", "red")).await.unwrap();
    bench.gadgets.create(&gadget("other", "blue")).await.unwrap();
    bench.eventually("the page is there", async || bench.data("other").await.is_some()).await;
    bench.clock().sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.differing(), "0.0", "the running operator may be about to write");
    bench.clock().sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.differing(), "1.0", "the difference has lasted");
    assert_eq!(bench.data("other").await.unwrap()["color"], "blue");
    bench.change("other", json!({ "color": "red" })).await;
    bench.eventually("both agree", async || bench.differing() == "0.0").await;
    let entries = bench.cluster.server().audit();
    let leases = entries.iter().filter(|entry| entry["resource"] == "leases").count();
    assert_eq!(leases, 0, "a shadow takes no part in an election");
    shadow.stop().await;
    running.stop().await;
}

/// Runs an operator, and a shadow of the operator that paints pages in `color`, for a gadget of the
/// color `of`; returns the number of differences after the time to settle.
async fn differences_of(of: &str, color: &'static str) -> String {
    let cluster = TestCluster::builder().embedded().start().await;
    let bench = Bench::on(cluster).await;
    let operator = |client: Client, painter| {
        let manager = Manager::new(client).namespaces([bench.cluster.namespace()]);
        manager.controller_configured(painter, |builder| builder.outcome_condition("Reconciled"))
    };
    let running = bench.cluster.spawn(operator(bench.cluster.client(), NextPainter("")));
    bench.gadgets.create(&gadget("home", of)).await.unwrap();
    bench.eventually("the page is there", async || bench.data("home").await.is_some()).await;
    let shadow = operator(bench.cluster.client().dry_run(), NextPainter(color));
    let shadow = bench.cluster.spawn_unrestricted(shadow.shadow(Duration::from_secs(10)));
    // Twice the time to settle: the first reconcile may be earlier than the status of the running
    // operator.
    bench.clock().sleep(Duration::from_secs(25)).await;
    let found = bench.differing();
    shadow.stop().await;
    running.stop().await;
    found
}

#[tokio::test]
async fn a_shadow_finds_a_difference_again_in_a_child_that_it_applies_twice() {
    assert_eq!(differences_of("twice", "red").await, "1.0");
}

#[tokio::test]
async fn a_shadow_finds_no_difference_in_a_child_that_both_apply_twice() {
    assert_eq!(differences_of("twice", "").await, "0.0");
}

#[tokio::test]
async fn a_shadow_counts_a_call_of_another_system_as_a_difference() {
    assert_eq!(differences_of("calls", "").await, "1.0");
}

#[tokio::test]
async fn a_shadow_of_the_same_operator_finds_no_difference() {
    assert_eq!(differences_of("blue", "").await, "0.0");
}

#[tokio::test]
async fn a_shadow_that_waits_where_the_running_operator_does_not_differs_by_the_condition() {
    assert_eq!(differences_of("waits", "waits").await, "1.0");
}

#[tokio::test]
async fn a_shadow_that_waits_as_the_running_operator_does_finds_no_difference() {
    assert_eq!(differences_of("dries", "").await, "0.0");
}

#[tokio::test]
async fn a_shadow_beside_nobody_changes_nothing() {
    let cluster = TestCluster::builder().embedded().audit(true).start().await;
    let bench = Bench::on(cluster).await;
    bench.gadgets.create(&gadget("home", "blue")).await.unwrap();
    let server = bench.cluster.server();
    let (revision, audited) = (server.revision(), server.audit().len());
    let shadow = operator(&bench.cluster, bench.cluster.client().dry_run());
    let shadow = bench.cluster.spawn_unrestricted(shadow.shadow(Duration::from_secs(10)));
    bench.eventually("it differs", async || bench.differing() == "1.0").await;
    shadow.stop().await;
    assert_eq!(server.revision(), revision, "nothing is stored");
    let entries = server.audit().split_off(audited);
    let writes = entries.iter().filter(|entry| {
        assert_eq!(entry["changes"], json!([]), "{entry}");
        !["get", "list", "watch"].contains(&entry["verb"].as_str().unwrap())
    });
    assert!(writes.count() >= 5, "the writes of two reconciles were dry runs");
}

#[tokio::test]
async fn a_shadow_needs_a_client_for_dry_runs() {
    let bench = Bench::start().await;
    let manager = operator(&bench.cluster, bench.cluster.client()).shadow(Duration::ZERO);
    let error = manager.without_health().without_metrics().run().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains("client.dry_run()"), "{error}");
}
