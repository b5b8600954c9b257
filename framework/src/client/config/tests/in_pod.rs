//! The service account of a Pod, whose files the kubelet rotates.

use std::time::Duration;

use super::*;
use crate::client::auth::Credentials;
use crate::clock::Clock;

#[tokio::test(start_paused = true)]
async fn a_pods_token_and_ca_are_read_from_their_files_again_and_again() {
    let account = folder();
    let token = write(&account.join("token"), "one");
    let mut env = env(&[]);
    env.service_host = Some("10.0.0.1".into());
    env.service_port = Some("443".into());
    env.service_account.clone_from(&account);
    let config = env.find().unwrap().unwrap();
    assert_eq!(config.server(), "https://10.0.0.1:443/");
    let ca = config.tls.ca.clone();
    assert!(matches!(&ca, Some(Pem::File(path)) if *path == account.join("ca.crt")), "{ca:?}");

    let credentials = Credentials::new(config.auth_source(), Clock::system());
    for (text, seconds, expected) in
        [("one", 0, "Bearer one"), ("two", 59, "Bearer one"), ("two", 2, "Bearer two")]
    {
        write(&token, text);
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let header = credentials.header().await.unwrap().unwrap();
        assert_eq!(header, expected);
        assert!(header.is_sensitive());
    }
}
