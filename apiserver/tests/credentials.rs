//! Credentials of the program: certificates of other authorities, users, nobody.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};

mod support;

use support::{Client, Folder, Program};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Returns name and groups of a connection's user.
async fn whoami(client: &mut Client) -> (Value, Value) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reply = client.post(REVIEWS, review).await;
    let user = &reply.value["status"]["userInfo"];
    (user["username"].clone(), user["groups"].clone())
}

/// Returns the certificate of an authority, and a client certificate of it with its key.
fn authority(name: &str) -> (String, String, String) {
    let mut own = CertificateParams::default();
    own.distinguished_name.push(DnType::CommonName, name);
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = own.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(own, key);
    let mut user = CertificateParams::default();
    user.distinguished_name.push(DnType::CommonName, "alice");
    user.distinguished_name.push(DnType::OrganizationName, "team-a");
    user.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let user = user.signed_by(&key, &issuer).unwrap().pem();
    (certificate, user, key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_a_further_authority_name_user_and_group_and_others_are_refused() {
    let folder = Folder::new();
    let (ca, certificate, key) = authority("corporate");
    std::fs::write(folder.path("ca.pem"), ca).unwrap();
    let path = folder.path("ca.pem");
    let program = Program::start(&folder, &["--client-ca-file", path.to_str().unwrap()]);
    let mut client =
        program.client_with(&program.kubeconfig, Some((&certificate, &key))).await.unwrap();
    let (name, groups) = whoami(&mut client).await;
    assert_eq!((name, groups), (json!("alice"), json!(["team-a", "system:authenticated"])));
    // The own authority still counts.
    let own = (program.kubeconfig.certificate.as_str(), program.kubeconfig.key.as_str());
    let mut own = program.client_with(&program.kubeconfig, Some(own)).await.unwrap();
    assert_eq!(whoami(&mut own).await.0, "kubernetes-admin");
    let (_, certificate, key) = authority("stranger");
    let stranger = program.client_with(&program.kubeconfig, Some((&certificate, &key))).await;
    if let Ok(mut stranger) = stranger {
        // Also for a path that everybody may read: a wrong certificate is not none.
        assert_eq!(stranger.get("/version").await.code, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anonymous_requests_nobody_reads_even_the_version() {
    let folder = Folder::new();
    for (flag, code) in [("--anonymous-auth=true", 200), ("--anonymous-auth=false", 401)] {
        let program = Program::start(&folder, &[flag]);
        let mut nobody = program.client().await;
        nobody.token = None;
        let reply = nobody.get("/version").await;
        assert_eq!(reply.code, code, "{flag}: {}", reply.text);
        assert_eq!(program.client().await.get("/version").await.code, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_of_the_command_line_has_a_token_in_the_kubeconfig_that_outlives_a_restart() {
    let folder = Folder::new();
    let data = folder.path("data");
    let arguments = ["--user", "bob=dev,ops", "--user", "eve", "--data", data.to_str().unwrap()];
    let program = Program::start(&folder, &arguments);
    let text = program.kubeconfig.text.clone();
    let (_, user) = text.split_once("- name: \"bob\"\n  user:\n    token: ").unwrap();
    let token = user.lines().next().unwrap().to_owned();
    assert!(text.contains("- name: \"windlass-eve\"\n"), "{text}");
    program.kill();
    let program = Program::start(&folder, &arguments);
    let mut bob = program.client().await;
    bob.token = Some(token);
    assert_eq!(
        whoami(&mut bob).await,
        (json!("bob"), json!(["dev", "ops", "system:authenticated"]))
    );
}

#[test]
fn a_user_that_is_named_twice_is_refused() {
    let folder = Folder::new();
    let arguments = ["--user", "bob=dev", "--user", "bob=ops"];
    let error = Program::try_start(&folder, &arguments).map(drop).unwrap_err();
    assert!(error.contains("names the user \"bob\" a second time"), "{error}");
}

#[test]
fn a_file_without_a_certificate_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.path("ca.pem"), "no certificate").unwrap();
    let path = folder.path("ca.pem");
    let error = Program::try_start(&folder, &["--client-ca-file", path.to_str().unwrap()])
        .map(drop)
        .unwrap_err();
    assert!(
        error.contains("cannot read the authorities of clients: the text holds no certificate"),
        "{error}"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn files_that_others_may_have_written_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let (file, link) = (folder.path("file"), folder.path("link"));
    symlink(&file, &link).unwrap();
    for option in ["--data", "--audit-log"] {
        let refused = Program::try_start(&folder, &[option, link.to_str().unwrap()]).map(drop);
        let why = refused.unwrap_err();
        assert!(why.contains("a symbolic link") && why.contains("link:"), "{option}: {why}");
        assert!(!file.exists(), "{option} has followed the link");
    }
    symlink(&file, folder.path("kubeconfig")).unwrap();
    let why = Program::try_start(&folder, &[]).map(drop).unwrap_err();
    assert!(
        why.contains("cannot write the kubeconfig") && why.contains("a symbolic link"),
        "{why}"
    );
    assert!(!file.exists());
    std::fs::remove_file(folder.path("kubeconfig")).unwrap();
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o622)).unwrap();
    for option in ["--data", "--audit-log"] {
        let refused = Program::try_start(&folder, &[option, file.to_str().unwrap()]).map(drop);
        let why = refused.unwrap_err();
        assert!(why.contains("others may write to it"), "{option}: {why}");
    }
}
