//! Results of the builder's setters: paths, mistakes, headers, bodies.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::*;
use crate::client::{Body, PatchType, Request};
use windlass_core::error::{Error, ErrorKind};

fn offline() -> Client {
    Client::over(Arc::new(transport::Nowhere), environment())
}

/// A client whose server's address has a path.
fn behind_a_proxy() -> Client {
    let config = ClientConfig::new("https://proxy:8443/clusters/c1/").unwrap();
    Client::builder().config(config).connector(Arc::new(transport::Nowhere)).build().unwrap()
}

/// The path of `request` below the server's root.
fn path(request: &Request) -> String {
    request.url().unwrap().replace("http://localhost", "")
}

fn mistake(request: Request) -> String {
    let error = request.prepare().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    error.to_string()
}

#[test]
fn mechanism_8_a_url_is_prefix_namespace_resource_name_subresource_and_suffix() {
    let client = offline();
    let request = || client.get().group_version("apps", "v1").resource("Deployments");
    for (request, expected) in [
        (request(), "/apis/apps/v1/deployments"),
        (request().namespace("shop"), "/apis/apps/v1/namespaces/shop/deployments"),
        (request().name("a"), "/apis/apps/v1/deployments/a"),
        (
            request().name("a").suffix(["x", "y"]).namespace("shop").subresource(["scale"]),
            "/apis/apps/v1/namespaces/shop/deployments/a/scale/x/y",
        ),
        (
            client
                .get()
                .resource("nodes")
                .name("n")
                .subresource(["proxy", "stats"])
                .group_version("", "v1"),
            "/api/v1/nodes/n/proxy/stats",
        ),
        (request().prefix(["a", "b/c"]).prefix(["d"]), "/apis/apps/v1/a/b/c/d/deployments"),
        (request().namespace(""), "/apis/apps/v1/deployments"),
        (request().name("a b?ü{"), "/apis/apps/v1/deployments/a%20b%3F%C3%BC%7B"),
        (client.get(), "/"),
        (client.get().resource("pods"), "/pods"),
    ] {
        assert_eq!(path(&request), expected);
    }
}

#[test]
fn mechanism_8_a_timeout_is_told_to_the_server_unless_it_is_zero() {
    let request = offline().get().abs_path(["/version"]);
    assert_eq!(path(&request.clone().timeout(Duration::ZERO)), "/version");
    assert_eq!(path(&request.clone().timeout(Duration::from_secs(90))), "/version?timeout=90s");
    let request = request.timeout(Duration::from_millis(1500));
    assert_eq!(path(&request), "/version?timeout=1500ms");
    assert_eq!(request.prepare().unwrap().timeout, Some(Duration::from_millis(1500)));
}

#[test]
fn mechanism_8_url_template() {
    let request = offline()
        .put()
        .group_version("apps", "v1")
        .namespace("shop")
        .resource("deployments")
        .name("home")
        .subresource(["status"])
        .param("x", "secret");
    assert_eq!(
        request.url_template(),
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status"
    );
}

#[test]
fn mechanism_9_an_absolute_path_joins_and_keeps_one_final_slash() {
    let client = offline();
    for (segments, expected) in [
        (vec!["/foo/"], "/foo/"),
        (vec!["/foo"], "/foo"),
        (vec!["foo/"], "/foo/"),
        (vec!["foo", "bar/"], "/foo/bar"),
        (vec!["/foo", "/bar/baz"], "/foo/bar/baz"),
        (vec!["/"], "/"),
        (vec![], "/"),
    ] {
        assert_eq!(path(&client.get().abs_path(&segments)), expected, "{segments:?}");
    }
    let client = behind_a_proxy();
    let root = "https://proxy:8443/clusters/c1";
    let url = |request: Request| request.url().unwrap();
    assert_eq!(url(client.get().abs_path(["/foo/"])), format!("{root}/foo/"));
    assert_eq!(url(client.get().abs_path(["/foo/"]).resource("a")), format!("{root}/foo/a"));
    assert_eq!(url(client.get()), format!("{root}/"));
    let request = client.get().group_version("", "v1").resource("pods");
    assert_eq!(url(request), format!("{root}/api/v1/pods"));
}

#[test]
fn mechanism_9_a_request_uri_replaces_path_and_query_from_the_root() {
    let request = behind_a_proxy()
        .get()
        .group_version("", "v1")
        .param("a", "old")
        .param("b", "kept")
        .request_uri("/other/x%20y?a=1&a=2&c=%2F+");
    assert_eq!(request.url().unwrap(), "https://proxy:8443/other/x%20y?b=kept&a=1&a=2&c=%2F%20");
    let text = mistake(offline().get().request_uri("no uri at all"));
    assert!(text.contains("is not a request URI"), "{text}");
}

#[derive(Serialize)]
struct Options {
    #[serde(rename = "labelSelector")]
    labels: Option<&'static str>,
    limit: u32,
    watch: bool,
    names: Vec<&'static str>,
    absent: Option<u32>,
}

#[test]
fn mechanism_9_parameters_are_a_multimap_and_options_become_parameters() {
    let options = Options {
        labels: Some("a=b"),
        limit: 5,
        watch: false,
        names: vec!["x", "y"],
        absent: None,
    };
    let request =
        offline().get().param("p", "1").param("p", "2").versioned_params(&options).param("é", "&");
    let url = path(&request);
    assert!(url.starts_with("/?p=1&p=2&"), "{url}");
    assert!(url.ends_with("&%C3%A9=%26"), "{url}");
    for part in ["labelSelector=a%3Db", "limit=5", "watch=false", "names=x&names=y"] {
        assert!(url.contains(part), "{url}");
    }
    assert!(!url.contains("absent"), "{url}");
    let text = mistake(offline().get().versioned_params(&json!({"a": {"b": 1}})));
    assert!(text.contains("the option `a` has parts of its own"), "{text}");
}

#[test]
fn mechanism_9_a_header_is_replaced_and_may_have_several_values() {
    let request = offline().get().header("X-A", ["0"]).header("x-a", ["1", "2"]);
    let headers = request.prepare().unwrap().headers;
    let values: Vec<_> = headers.get_all("x-a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    let text = mistake(offline().get().header("x-a", ["can\nary"]));
    assert!(text.contains("`x-a` fits no HTTP header") && !text.contains("ary"), "{text}");
    assert!(mistake(offline().get().header("x a", ["1"])).contains("not a name of a header"));
}

#[tokio::test(start_paused = true)]
async fn mechanism_5_the_first_error_sticks_and_surfaces_at_the_terminal_call() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let request = client(&server)
        .get()
        .group_version("", "v1")
        .resource("pods")
        .name("")
        .name("..")
        .body(Body::File("/does/not/exist".into()))
        .namespace("shop");
    let expected = "cannot get pods";
    let all: [Error; 5] = [
        request.send().await.unwrap_err(),
        request.send_raw().await.unwrap_err(),
        request.stream().await.unwrap_err(),
        request.watch().await.unwrap_err(),
        request.url().unwrap_err().because(request.curl().unwrap_err()),
    ];
    for error in all {
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(text.contains("the resource name may not be empty"), "{text}");
        assert!(!text.contains("exist") && !text.contains("shop"), "later setters ran: {text}");
        assert!(text.starts_with("cannot "), "{text} {expected}");
    }
    assert_eq!(server.count(), 0);
}

#[test]
fn mechanism_6_what_is_set_twice_is_a_mistake() {
    let client = offline();
    for (request, what) in [
        (client.get().namespace("a").namespace("b"), "the namespace is set already, to \"a\""),
        (client.get().namespace("").namespace("b"), "the namespace is set already, to \"\""),
        (client.get().resource("a").resource("a"), "the resource is set already, to \"a\""),
        (client.get().name("a").name("b"), "the name is set already, to \"a\""),
        (
            client.get().subresource(["a"]).subresource(["b"]),
            "the subresource is set already, to [\"a\"]",
        ),
        (
            client.get().group_version("", "v1").group_version("apps", "v1"),
            "group and version is set already, to (\"\", \"v1\")",
        ),
    ] {
        let text = mistake(request);
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn mechanism_6_no_segment_can_change_the_path() {
    let client = offline();
    for bad in [".", "..", "a/b", "%2e", "a%20b"] {
        for request in [
            client.get().resource(bad),
            client.get().resource("pods").name(bad),
            client.get().resource("pods").namespace(bad),
            client.get().resource("pods").name("a").subresource([bad]),
            client.get().group_version(bad, "v1"),
            client.get().group_version("", bad),
        ] {
            let text = mistake(request);
            assert!(text.contains(&format!("`{bad}` is not ")), "{text}");
        }
    }
    assert!(mistake(client.get().resource("")).contains("the resource is empty"));
    assert!(mistake(client.get().group_version("apps", "")).contains("name one, such as `v1`"));
    assert!(mistake(client.get().name("a")).contains("set `resource`"));
}

#[tokio::test(start_paused = true)]
async fn mechanism_6_a_path_of_prefixes_that_would_become_another_is_not_sent() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    for request in [
        client(&server).get().prefix([".."]),
        client(&server).get().abs_path(["/a/../b"]),
        client(&server).get().abs_path(["/a"]).suffix(["."]),
        client(&server).get().request_uri("/a/%2e%2E/b"),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert_eq!(server.count(), 0);
}

#[test]
fn mechanism_6_a_namespace_is_left_out_for_kinds_without_one() {
    let request =
        |scoped| offline().get().resource("pods").namespace_if_scoped("shop", scoped).name("a");
    assert_eq!(path(&request(true)), "/namespaces/shop/pods/a");
    assert_eq!(path(&request(false)), "/pods/a");
}

#[test]
fn mechanism_13_preflight() {
    let client = offline();
    let creation = "an empty namespace may not be set during creation";
    let named = "an empty namespace may not be set when a resource name is provided";
    for (request, name, expected) in [
        (client.post(), false, Some(creation)),
        (client.post(), true, Some(creation)),
        (client.get(), true, Some(named)),
        (client.put(), true, Some(named)),
        (client.patch(PatchType::Merge), true, Some(named)),
        (client.delete(), true, Some(named)),
        (client.get(), false, None),
        (client.delete(), false, None),
    ] {
        let request = request.group_version("", "v1").resource("pods").namespace("");
        let request = if name { request.name("a") } else { request };
        match (request.prepare(), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(text)) => assert!(error.to_string().contains(text), "{error}"),
            (result, expected) => panic!("{result:?} {expected:?}"),
        }
    }
    // A namespace that was never set is not an empty namespace: the kind may have no namespaces.
    assert!(client.get().resource("nodes").name("a").prepare().is_ok());
}

#[test]
fn mechanism_3_the_accept_header_follows_from_both_content_types() {
    let accept = |content_type: Option<&str>, accept: Option<&str>| {
        let mut builder = Client::builder();
        if let Some(content_type) = content_type {
            builder = builder.content_type(content_type);
        }
        if let Some(accept) = accept {
            builder = builder.accept(accept);
        }
        let client = builder.connector(Arc::new(transport::Nowhere)).build().unwrap();
        let curl = client.get().curl().unwrap();
        curl.split(" -H ").find_map(|part| {
            part.strip_prefix("'accept: ")
                .and_then(|text| Some(text.split_once('\'')?.0.to_owned()))
        })
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(accept(None, None), text("application/json, */*"));
    assert_eq!(accept(Some("application/yaml"), None), text("application/yaml, */*"));
    assert_eq!(accept(Some("application/yaml"), Some("text/plain")), text("text/plain"));
    assert_eq!(accept(Some(""), Some("text/plain")), text("text/plain"));
    assert_eq!(accept(Some(""), None), None);
}

#[test]
fn mechanism_2_a_request_starts_with_the_clients_timeout_and_no_backoff() {
    let client = offline();
    let prepared = client.get().prepare().unwrap();
    assert_eq!(prepared.timeout, None, "the default of 30 s is not a server's business");
    assert!(prepared.extra.backoff.is_none() && prepared.extra.max_retries.is_none());
    let client = Client::builder()
        .timeout(Duration::from_secs(7))
        .connector(Arc::new(transport::Nowhere))
        .build()
        .unwrap();
    assert_eq!(path(&client.get()), "/?timeout=7s");
}

#[test]
fn mechanism_2_the_verb_follows_from_method_name_and_parameters() {
    let client = offline();
    let pods = |request: Request| request.group_version("", "v1").resource("pods");
    for (request, verb, what) in [
        (pods(client.get()), Verb::List, "list pods"),
        (pods(client.get()).name("a"), Verb::Get, "get pods \"a\""),
        (pods(client.get()).param("watch", "true"), Verb::Watch, "watch pods"),
        (pods(client.post()).namespace("n"), Verb::Create, "create pods in \"n\""),
        (pods(client.put()).name("a"), Verb::Update, "replace pods \"a\""),
        (pods(client.patch(PatchType::Json)).name("a"), Verb::Patch, "patch pods \"a\""),
        (pods(client.patch(PatchType::Apply)).name("a"), Verb::Apply, "apply pods \"a\""),
        (pods(client.delete()).name("a"), Verb::Delete, "delete pods \"a\""),
        (pods(client.delete()), Verb::DeleteCollection, "delete all pods"),
        (client.get().abs_path(["/healthz"]), Verb::Get, "GET /healthz"),
        (client.verb(Method::HEAD).abs_path(["/x"]), Verb::Get, "HEAD /x"),
        (
            pods(client.post()).name("a").subresource(["eviction"]),
            Verb::Create,
            "create eviction of pods \"a\"",
        ),
        (pods(client.get()).name("a").describe("look at a"), Verb::Get, "look at a"),
    ] {
        let prepared = request.prepare().unwrap();
        assert_eq!((prepared.verb, prepared.what.as_str()), (verb, what));
        assert_eq!(prepared.repeatable, !verb.writes() || verb == Verb::Apply, "{what}");
    }
    assert!(pods(client.put()).name("a").repeatable().prepare().unwrap().repeatable);
}

#[test]
fn mechanism_7_a_body_is_a_file_bytes_a_reader_or_an_object() {
    let client = offline();
    let file = std::env::temp_dir().join(format!("windlass-body-{}", std::process::id()));
    std::fs::write(&file, "in a file").unwrap();
    let prepared = |body: Body| client.post().body(body).prepare().unwrap();
    assert_eq!(prepared(Body::File(file)).body, "in a file");
    assert_eq!(prepared(Body::from(b"bytes".to_vec())).body, "bytes");
    let object = prepared(Body::object(&json!({"a": 1})));
    assert_eq!(object.body, r#"{"a":1}"#);
    assert_eq!(object.headers["content-type"], "application/json");
    let nothing = prepared(Body::object(&None::<u32>));
    assert!(nothing.body.is_empty() && nothing.headers.is_empty(), "null is no body");
    let reader = prepared(Body::reader(&b"streamed"[..]));
    assert!(reader.body.is_empty() && reader.extra.reader.is_some());
    let text = mistake(client.post().body_file("/does/not/exist"));
    assert!(text.contains("/does/not/exist cannot be read"), "{text}");
    let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(mistake(client.post().object(&keys)).contains("cannot be serialized as JSON"));
}

#[test]
fn mechanism_7_a_content_type_that_was_set_stays() {
    let client = offline();
    let patch = client.patch(PatchType::Strategic).object(&json!({})).prepare().unwrap();
    assert_eq!(patch.headers["content-type"], "application/strategic-merge-patch+json");
    let own = client.post().object(&json!({})).content_type("application/x").prepare().unwrap();
    assert_eq!(own.headers["content-type"], "application/x");
}

#[test]
fn mechanism_17_a_curl_line_shows_the_request_and_no_credentials() {
    let config = ClientConfig::new("https://c").unwrap().with_token("canary");
    let client =
        Client::builder().config(config).connector(Arc::new(transport::Nowhere)).build().unwrap();
    let request = client
        .post()
        .group_version("", "v1")
        .namespace("shop")
        .resource("configmaps")
        .header("cookie", ["canary"])
        .object(&json!({"it's": 1, "data": {"a": "canary"}}));
    let line = request.curl().unwrap();
    assert_eq!(
        line,
        "curl -v -X POST -H 'accept: application/json, */*' -H 'cookie: [redacted]' -H \
         'content-type: application/json' -H 'authorization: [redacted]' --data-binary \
         '{\"data\":\"[redacted]\",\"it'\\''s\":1}' \
         'https://c/api/v1/namespaces/shop/configmaps?fieldManager=windlass'"
    );
    assert!(!format!("{request:?}").contains("canary"));
}
