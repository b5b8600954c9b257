//! Authentication by each method that kube-apiserver offers, out of kubeconfig files as kubectl
//! writes them. The server's own answer about our identity decides.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::client::{Client, ClientConfig};
use windlass::resource::ResourceExt;
use windlass::testing::RealServer;

use crate::bench::{
    Identity, LONG, Scratch, answers, client, client_of, eventually, name, new_namespace, post,
    whoami,
};

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_client_certificate_inside_the_kubeconfig_says_who_we_are() {
    certificate(&["--embed-certs"]).await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_client_certificate_in_files_says_who_we_are() {
    certificate(&[]).await;
}

async fn certificate(flags: &[&str]) {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let [key, certificate] = scratch.identity(&server.certificate("carol", Some("builders"), LONG));
    let mut credentials = vec![
        format!("--client-certificate={}", certificate.display()),
        format!("--client-key={}", key.display()),
    ];
    credentials.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let client = client_of(&scratch.kubeconfig(server, &credentials));
    assert_eq!(client.default_namespace(), "shop");
    let found = whoami(&client).await.unwrap();
    assert_eq!(found.username, "carol");
    assert_eq!(found.groups, ["builders", "system:authenticated"]);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_static_token_says_who_we_are() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let token = format!("--token={}", RealServer::token("alice"));
    let client = client_of(&scratch.kubeconfig(server, &[token]));
    let alice = Identity {
        username: "alice".into(),
        uid: "alice-uid".into(),
        groups: ["readers", "writers", "system:authenticated"].map(str::to_owned).into(),
        extra: BTreeMap::new(),
    };
    assert_eq!(whoami(&client).await.unwrap(), alice);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_token_file_says_who_we_are() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let client = with_token_file(server, &scratch, &RealServer::token("bob"));
    assert_eq!(name(&client).await, "bob");
    assert_eq!(answers(&client, "201"), 1);
}

/// Returns a client that reads the token from the file `token`, whose content is `token` at first.
fn with_token_file(server: &RealServer, scratch: &Scratch, token: &str) -> Client {
    let file = scratch.write("token", &format!("{token}\n"));
    let kubeconfig = scratch.kubeconfig(server, &[]);
    scratch.kubectl(&["config", "set", "users.me.tokenFile", &file.display().to_string()]);
    client_of(&kubeconfig)
}

/// A service account, and the objects that the account's tokens may be bound to.
struct Account {
    admin: Client,
    namespace: String,
}

impl Account {
    async fn new(server: &RealServer) -> Self {
        let account =
            Self { admin: client(server.admin()), namespace: new_namespace(server).await };
        account.create().await;
        account
    }

    fn metadata(name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
    }

    async fn create(&self) -> ServiceAccount {
        let robot = ServiceAccount { metadata: Self::metadata("robot"), ..Default::default() };
        self.admin.namespace(&self.namespace).create(&robot).await.unwrap()
    }

    async fn delete(&self) {
        self.admin.namespace::<ServiceAccount>(&self.namespace).delete("robot").await.unwrap();
    }

    /// Returns a new token by `TokenRequest`, bound to `object` if given.
    async fn token(&self, object: Option<Value>) -> String {
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/robot/token", self.namespace);
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "audiences": [], "expirationSeconds": 600, "boundObjectRef": object },
        });
        let answer = post(&self.admin, &path, "request a token", &body).await.unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    fn user(&self) -> String {
        format!("system:serviceaccount:{}:robot", self.namespace)
    }
}

/// Waits for a refusal: the server remembers for 10 s that a token was good.
async fn refused(server: &RealServer, token: &str) {
    let other = client(server.anonymous().with_token(token));
    eventually("the token is refused", async || {
        whoami(&other).await.is_err_and(|error| error.kind() == ErrorKind::Unauthorized)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a8_a_token_whose_service_account_is_gone_is_replaced_by_the_file_s_within_the_same_call() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let account = Account::new(server).await;
    let first = account.token(None).await;
    let client = with_token_file(server, &scratch, &first);
    let found = whoami(&client).await.unwrap();
    assert_eq!(found.username, account.user());
    let group = format!("system:serviceaccounts:{}", account.namespace);
    assert_eq!(found.groups, ["system:serviceaccounts", &group, "system:authenticated"]);

    account.delete().await;
    let successor = account.create().await;
    scratch.write("token", &account.token(None).await);
    refused(server, &first).await;
    let found = whoami(&client).await.unwrap();
    assert_eq!((found.username, found.uid), (account.user(), successor.uid().to_owned()));
    assert_eq!(answers(&client, "401"), 1, "the old token was tried once");
    assert_eq!(answers(&client, "201"), 2);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a8_a_token_whose_bound_object_is_gone_is_replaced_by_the_file_s_within_the_same_call() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let account = Account::new(server).await;
    let secrets = account.admin.namespace::<Secret>(&account.namespace);
    let bound = Secret { metadata: Account::metadata("bound"), ..Default::default() };
    let bound = secrets.create(&bound).await.unwrap();
    let reference =
        json!({ "kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": bound.uid() });
    let first = account.token(Some(reference)).await;
    let client = with_token_file(server, &scratch, &first);
    assert_eq!(name(&client).await, account.user());

    secrets.delete("bound").await.unwrap();
    refused(server, &first).await;
    let error = whoami(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "the file has no other yet: {error}");
    assert_eq!(answers(&client, "401"), 2, "it was read again, and tried once more");
    scratch.write("token", &account.token(None).await);
    assert_eq!(name(&client).await, account.user());
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn impersonation_shows_exactly_the_user_groups_uid_and_extra_that_were_asked_for() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let token = format!("--token={}", RealServer::token("admin"));
    let kubeconfig = scratch.kubeconfig(server, &[token]);
    let text = scratch.read("kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    let user = &mut config["users"][0]["user"];
    user["as"] = json!("dora");
    user["as-uid"] = json!("dora-uid");
    user["as-groups"] = json!(["night", "day"]);
    user["as-user-extra"] = json!({
        "reason": ["on call", "drill"],
        "example.dev/scopes": ["read", "100 %"],
    });
    scratch.write("kubeconfig", &config.to_string());
    let found = whoami(&client_of(&kubeconfig)).await.unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let dora = Identity {
        username: "dora".into(),
        uid: "dora-uid".into(),
        groups: texts(&["night", "day", "system:authenticated"]),
        extra: BTreeMap::from([
            ("reason".into(), texts(&["on call", "drill"])),
            ("example.dev/scopes".into(), texts(&["read", "100 %"])),
        ]),
    };
    assert_eq!(found, dora);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn who_may_not_impersonate_is_told_so() {
    let server = RealServer::shared().await;
    let text = server.kubeconfig();
    let text = text.replace("token: token-of-admin", "token: token-of-alice, as: dora");
    let client = client(ClientConfig::from_yaml(&text, None).unwrap());
    let error = whoami(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains("\"alice\" cannot impersonate"), "{error}");
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn nobody_and_strangers_are_refused() {
    let server = RealServer::shared().await;
    let error = whoami(&client(server.anonymous())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains("system:anonymous"), "{error}");

    let stranger = client(server.anonymous().with_token("canary-of-nobody"));
    let error = whoami(&stranger).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!format!("{error:?} {stranger:?}").contains("canary"), "{error:?}");
    assert_eq!(answers(&stranger, "401"), 1, "a token that cannot change is not tried again");

    let late = server.certificate("carol", None, Duration::ZERO);
    let late = server.anonymous().with_identity(&late.certificate, late.key);
    let error = whoami(&client(late)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
}

/// kube-apiserver has had no basic authentication since 1.19: a client with basic authentication is
/// anonymous.
#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn user_and_password_count_for_nothing() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    let credentials = ["--username=alice".to_owned(), "--password=canary".to_owned()];
    let client = client_of(&scratch.kubeconfig(server, &credentials));
    let error = whoami(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert!(error.to_string().contains("system:anonymous"), "{error}");
}
