//! Tokens of service accounts: issued, used, reviewed, and refused once their reason is gone.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::ApiServer;
use crate::http::test_support::*;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Returns a server with an account `bot`, and a client.
async fn with_bot() -> (ApiServer, Client) {
    let (server, mut client) = start().await;
    let reply = client.post(ACCOUNTS, json!({"metadata": {"name": "bot"}})).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    (server, client)
}

/// Asks for a token of `bot`.
async fn ask(client: &mut Client, spec: Value) -> Reply {
    client.post(&format!("{ACCOUNTS}/bot/token"), json!({"spec": spec})).await
}

/// Returns a token of `bot`.
async fn token(client: &mut Client, spec: Value) -> String {
    let reply = ask(client, spec).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    reply.value["status"]["token"].as_str().unwrap().to_owned()
}

/// Returns the claims of a token.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Asks the server for the bearer of a token.
async fn who(server: &ApiServer, token: &str) -> Reply {
    let mut client = Client::anonymous(server).await;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    client.send("POST", WHO, &headers, "{}").await
}

/// Reviews a token and returns the status of the review.
async fn review(client: &mut Client, token: &str, audiences: &[&str]) -> Value {
    let spec = json!({"token": token, "audiences": audiences});
    let reply = client.post(REVIEWS, json!({"spec": spec})).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    reply.value["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_token_says_who_it_is_for_and_until_when() {
    let (_server, mut client) = with_bot().await;
    let table = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    let url = format!("{ACCOUNTS}/bot/token");
    let reply = client.send("POST", &url, &[table], "{}").await;
    assert_eq!(reply.value["kind"], "TokenRequest");
    let account = client.get(&format!("{ACCOUNTS}/bot")).await.value;
    let reply = ask(&mut client, json!({"audiences": ["a", "b"], "expirationSeconds": 900})).await;
    let status = &reply.value["status"];
    assert_eq!(status["expirationTimestamp"], "2026-01-01T00:15:00Z");
    assert_eq!(reply.value["metadata"]["uid"], account["metadata"]["uid"]);
    let mut claims = claims(status["token"].as_str().unwrap());
    assert_eq!(claims["jti"].take().as_str().unwrap().len(), 36);
    assert_eq!(
        claims,
        json!({
            "iss": ISSUER, "sub": "system:serviceaccount:default:bot", "aud": ["a", "b"],
            "iat": 1_767_225_600, "nbf": 1_767_225_600, "exp": 1_767_226_500, "jti": null,
            "kubernetes.io": {"namespace": "default", "serviceaccount": {
                "name": "bot", "uid": account["metadata"]["uid"]}},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_bearer_of_a_token_is_the_account() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({})).await;
    let reply = who(&server, &token).await;
    let info = &reply.value["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:default:bot");
    assert_eq!(
        info["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    let id = format!("JTI={}", claims(&token)["jti"].as_str().unwrap());
    assert_eq!(info["extra"], json!({"authentication.kubernetes.io/credential-id": [id]}));
}

#[tokio::test(start_paused = true)]
async fn a_token_counts_no_more_once_its_account_is_deleted_or_made_anew() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({})).await;
    assert_eq!(who(&server, &token).await.code, 201);
    client.delete(&format!("{ACCOUNTS}/bot")).await;
    let reply = who(&server, &token).await;
    assert_eq!((reply.code, reply.message()), (401, "Unauthorized"));
    assert_eq!(
        review(&mut client, &token, &[]).await,
        json!({"user": {}, "error": "[invalid bearer token, serviceaccounts \"bot\" not found]"})
    );
    client.post(ACCOUNTS, json!({"metadata": {"name": "bot"}})).await;
    assert_eq!(who(&server, &token).await.code, 401);
    let why = review(&mut client, &token, &[]).await["error"].to_string();
    assert!(why.contains("does not match claim"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_token_counts_until_a_minute_after_its_end_by_the_servers_clock() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({"expirationSeconds": 600})).await;
    tokio::time::advance(Duration::from_secs(660)).await;
    assert_eq!(who(&server, &token).await.code, 201);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(who(&server, &token).await.code, 401);
    let status = review(&mut client, &token, &[]).await;
    assert_eq!(status["error"], "[invalid bearer token, service account token has expired]");
}

#[tokio::test(start_paused = true)]
async fn a_token_for_others_does_not_count_here_but_is_reviewed_for_them() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({"audiences": ["vault", "db"]})).await;
    assert_eq!(who(&server, &token).await.code, 401);
    let status = review(&mut client, &token, &["vault", "x"]).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    let status = review(&mut client, &token, &[]).await;
    let text = format!(
        "[invalid bearer token, token audiences [\"vault\" \"db\"] is invalid for the target audiences [{ISSUER:?}]]"
    );
    assert_eq!(status, json!({"user": {}, "error": text}));
}

#[tokio::test(start_paused = true)]
async fn a_token_bound_to_a_pod_tells_it_and_ends_with_it() {
    let (server, mut client) = with_bot().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "bot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let pod = client.post(PODS, pod).await.value;
    let bound = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
    let token = token(&mut client, json!({"boundObjectRef": bound})).await;
    assert_eq!(claims(&token)["kubernetes.io"]["node"], json!({"name": "n"}));
    let extra = who(&server, &token).await.value["status"]["userInfo"]["extra"].clone();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/pod-uid"][0], pod["metadata"]["uid"]);
    assert_eq!(extra["authentication.kubernetes.io/node-name"], json!(["n"]));
    let options = json!({"gracePeriodSeconds": 0});
    assert_eq!(client.delete_with(&format!("{PODS}/p"), options).await.code, 200);
    assert_eq!(who(&server, &token).await.code, 401);
    let why = review(&mut client, &token, &[]).await["error"].clone();
    assert_eq!(why, "[invalid bearer token, service account token has been invalidated]");
}

#[tokio::test(start_paused = true)]
async fn requests_that_ask_for_too_much_are_refused_with_the_reason() {
    let (_server, mut client) = with_bot().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "other", "containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, pod).await;
    let bound = |kind: &str, name: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": name}});
    for (spec, code, text) in [
        (json!({"expirationSeconds": 599}), 422, "less than 10 minutes"),
        (json!({"expirationSeconds": 4_294_967_297_u64}), 422, "larger than 2^32 seconds"),
        (bound("Pod", "p"), 400, "pod running with different serviceaccount name"),
        (bound("Pod", "x"), 404, "pods \"x\" not found"),
        (bound("Secret", "x"), 404, "secrets \"x\" not found"),
        (bound("Node", "x"), 404, "nodes \"x\" not found"),
        (bound("Job", "x"), 400, "cannot bind token to object of type /v1, Kind=Job"),
    ] {
        let reply = ask(&mut client, spec.clone()).await;
        assert_eq!(reply.code, code, "{spec}: {}", reply.text);
        assert!(reply.message().contains(text), "{spec}: {}", reply.text);
    }
    for (metadata, code) in [(json!({"name": "x"}), 422), (json!({"uid": "x"}), 409)] {
        let url = format!("{ACCOUNTS}/bot/token");
        let reply = client.post(&url, json!({"metadata": metadata})).await;
        assert_eq!(reply.code, code, "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn forged_and_broken_tokens_are_refused_alike() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({})).await;
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut admin = claims(&token);
    admin["kubernetes.io"]["serviceaccount"]["name"] = json!("default");
    let none = encode(json!({"alg": "none", "typ": "JWT"}));
    let hmac = encode(json!({"alg": "HS256", "typ": "JWT"}));
    for forged in [
        format!("{}.{}.{}", parts[0], encode(admin), parts[2]),
        format!("{none}.{}.", parts[1]),
        format!("{hmac}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{token}{}", "A".repeat(20_000)),
        "a.b.c".to_owned(),
    ] {
        let reply = who(&server, &forged).await;
        assert_eq!((reply.code, reply.message()), (401, "Unauthorized"), "{forged}");
        let status = review(&mut client, &forged, &[]).await;
        assert_eq!(status["authenticated"], Value::Null, "{forged}");
        // No answer repeats a part of the token.
        assert!(!status.to_string().contains(parts[2]), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_server_does_not_accept_the_token_although_both_have_one_seed() {
    let (_server, mut client) = with_bot().await;
    let (other, mut second) = with_bot().await;
    let (first, own) = (token(&mut client, json!({})).await, token(&mut second, json!({})).await);
    assert_eq!(claims(&first), claims(&own));
    assert_eq!(who(&other, &first).await.code, 401);
    assert_eq!(who(&other, &own).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_the_issuer_are_published() {
    let (server, mut client) = with_bot().await;
    let token = token(&mut client, json!({})).await;
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let mut bearer = Client::anonymous(&server).await;
    assert_eq!(bearer.get("/openid/v1/jwks").await.code, 403);
    let headers = [("authorization", format!("Bearer {token}"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let keys = bearer.send("GET", "/openid/v1/jwks", &headers, "").await;
    assert_eq!(keys.headers["content-type"], "application/jwk-set+json");
    assert_eq!(keys.value["keys"][0]["kid"], header["kid"]);
    assert_eq!(header["alg"], "ES256");
    let about = client.get("/.well-known/openid-configuration").await.value;
    assert_eq!(about["issuer"], ISSUER);
    assert_eq!(about["jwks_uri"], format!("{ISSUER}/openid/v1/jwks"));
}
