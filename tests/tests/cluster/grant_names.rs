//! Names in `can(…)` that do not compile: no server stores an object of such a name.

use serde_json::{Value, json};
use windlass::__private::{has_label_names, has_subdomain_names};
use windlass::client::Client;
use windlass::testing::TestCluster;

/// Kinds of a group that can be created and read, as `apiVersion`, kind, plural and scope.
async fn kinds(client: &Client, path: &[&str]) -> Vec<(&'static str, &'static str, String, bool)> {
    let list: Value = client.get().abs_path(path).send().await.unwrap().json().unwrap();
    let leak = |text: &Value| -> &'static str { text.as_str().unwrap().to_owned().leak() };
    let version = leak(&list["groupVersion"]);
    let all = list["resources"].as_array().unwrap().iter();
    let stored = all.filter(|it| {
        let has = |verb: &str| it["verbs"].as_array().unwrap().contains(&verb.into());
        has("create") && has("get") && !it["name"].as_str().unwrap().contains('/')
    });
    let kinds = stored.map(|it| {
        let plural = it["name"].as_str().unwrap().to_owned();
        (version, leak(&it["kind"]), plural, it["namespaced"] == true)
    });
    kinds.collect()
}

/// Returns all kinds of the server.
async fn all_kinds(client: &Client) -> Vec<(&'static str, &'static str, String, bool)> {
    let mut all = kinds(client, &["api", "v1"]).await;
    let groups: Value = client.get().abs_path(["apis"]).send().await.unwrap().json().unwrap();
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        let (name, version) = version.split_once('/').unwrap();
        all.extend(kinds(client, &["apis", name, version]).await);
    }
    all
}

/// The answer to an attempt to create an object of this name.
async fn attempt(
    client: &Client,
    namespace: &str,
    kind: &(&'static str, &'static str, String, bool),
    name: &str,
) -> Result<(), String> {
    let (version, kind, plural, is_namespaced) = kind;
    let body = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name } });
    let mut path = match version.split_once('/') {
        None => vec!["api", version],
        Some((group, version)) => vec!["apis", group, version],
    };
    if *is_namespaced {
        path.extend(["namespaces", namespace]);
    }
    path.push(plural);
    let request = client.post().abs_path(path).param("dryRun", "All").object(&body);
    request.send().await.map(drop).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn a_name_that_does_not_compile_in_a_grant_is_no_name_of_an_object() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let (mut refused, mut others) = (0, Vec::new());
    for kind in all_kinds(&client).await {
        let identity: &'static [&'static str] = vec![kind.0, kind.1].leak();
        let parts = (identity, 0, 0);
        let names = [(has_subdomain_names(parts, false), "Tls_"), (has_label_names(parts), "a.b")];
        for (_, name) in names.into_iter().filter(|(is_fault, _)| *is_fault) {
            match attempt(&client, cluster.namespace(), &kind, name).await {
                Err(text) if text.contains("metadata.name") => refused += 1,
                answer => others.push(format!("{} {}: {answer:?}", kind.0, kind.1)),
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(refused >= 40, "{refused} kinds");
}
