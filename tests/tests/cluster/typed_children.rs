//! Apply configurations, typed status and embedded kinds, on a server.

use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::prelude::*;
use windlass::testing::TestCluster;
use windlass::{ApplyConfiguration, ConditionType};

/// One page.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "typed.example.dev", version = "v1", namespaced)]
struct Page {
    metadata: ObjectMeta,
    spec: PageSpec,
    status: Option<PageStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
#[serde(rename_all = "camelCase")]
struct PageSpec {
    #[serde(default)]
    host_name: String,
    replicas: Option<i32>,
    tags: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct PageStatus {
    url: Option<String>,
    seen: Option<i64>,
    conditions: Conditions,
}

/// Pages made of a template.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "typed.example.dev", version = "v1", namespaced)]
struct Book {
    metadata: ObjectMeta,
    spec: BookSpec,
    status: Option<PageStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct BookSpec {
    template: Page,
}

#[derive(ConditionType)]
enum BookCondition {
    Ready,
}

#[derive(Controller)]
#[controller(for = Book, owns(Page, ConfigMap))]
struct Books;

impl Reconciler for Books {
    type Object = Book;

    async fn reconcile(&self, book: &Book, cx: &Context<Self>) -> Result {
        let template = &book.spec.template.spec;
        let spec = PageSpecApply::new().host_name(&template.host_name).tags(["a", "b"]);
        let page = PageApply::new(book.name()).label("app", "book").spec(spec);
        let page = cx.apply_owned(page).await?;
        let texts = object!(ConfigMap {
            metadata: { name: book.name() },
            data: { host: &page.spec.host_name, if page.spec.replicas.is_some() { scaled: "yes" } },
        });
        cx.apply_owned(texts).await?;
        cx.set_status(&PageStatus { url: Some("u".to_owned()), ..PageStatus::default() }).await?;
        cx.patch_status(PageStatusApply::new().seen(book.generation())).await?;
        cx.set_condition(met(BookCondition::Ready, "Bound", "")).await?;
        Ok(Action::done())
    }
}

fn book(host: &str) -> Book {
    let template = PageSpec { host_name: host.to_owned(), ..PageSpec::default() };
    Book::new("one", BookSpec { template: Page::new("any", template) })
}

#[tokio::test]
async fn a_child_applied_by_its_configuration_keeps_the_fields_of_others() {
    let cluster = TestCluster::start().await;
    cluster.install::<Page>().await;
    cluster.install::<Book>().await;
    let client = cluster.client();
    let books: Api<Book> = client.namespace(cluster.namespace());
    let pages: Api<Page> = client.namespace(cluster.namespace());
    let running = cluster.spawn(Manager::new(client.clone()).controller(Books));
    books.create(&book("a.example")).await.unwrap();
    running.settled().await;
    // An autoscaler's field, which the configuration never names.
    pages.patch("one", Patch::Merge(json!({ "spec": { "replicas": 5 } }))).await.unwrap();
    let change = json!({ "spec": { "template": { "spec": { "hostName": "b.example" } } } });
    books.patch("one", Patch::Merge(change)).await.unwrap();
    running.settled().await;
    let page = pages.get("one").await.unwrap();
    assert_eq!((page.spec.host_name.as_str(), page.spec.replicas), ("b.example", Some(5)));
    assert_eq!(page.label("app"), Some("book"));
    let maps: Api<ConfigMap> = client.namespace(cluster.namespace());
    assert_eq!(maps.get("one").await.unwrap().data.unwrap()["scaled"], "yes");
    let status = books.get("one").await.unwrap().status.expect("a status");
    assert_eq!((status.url.as_deref(), status.seen), (Some("u"), Some(2)));
    assert!(status.conditions.is_met(BookCondition::Ready));
    running.stop().await;
}

#[tokio::test]
async fn the_server_checks_an_embedded_object_by_the_schema_of_its_kind() {
    let cluster = TestCluster::start().await;
    cluster.install::<Book>().await;
    let books: Api<Book> = cluster.client().namespace(cluster.namespace());
    let stored = books.create(&book("a.example")).await.unwrap();
    assert_eq!(stored.spec.template.name(), "any");
    for (place, value) in [("spec", json!({ "replicas": "3" })), ("kind", json!(""))] {
        let patch = json!({ "spec": { "template": { place: value } } });
        let error = books.patch("one", Patch::Merge(patch)).await.unwrap_err();
        assert!(error.to_string().contains("spec.template"), "{place}: {error}");
    }
}

#[tokio::test]
async fn an_apply_configuration_is_applied_by_the_client_too() {
    let cluster = TestCluster::start().await;
    cluster.install::<Page>().await;
    let pages: Api<Page> = cluster.client().namespace(cluster.namespace());
    let page = PageApply::new("one").spec(PageSpecApply::new().host_name("a"));
    let stored = pages.apply("one", &page).manager("a").await.unwrap();
    assert_eq!(stored.spec.host_name, "a");
    let status = PageApply::new("one").status(PageStatusApply::new().url("u"));
    let stored = pages.apply_status("one", &status).manager("b").await.unwrap();
    assert_eq!(stored.status.unwrap().url.as_deref(), Some("u"));
}
