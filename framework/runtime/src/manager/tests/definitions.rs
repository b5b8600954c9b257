//! Rights and reactions of a replica that does not lead, with regard to definitions.

use std::io;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;

use super::super::install::check_definitions;
use super::*;
use windlass_client::client::{BoxIo, Connect};
use windlass_core::environment::Environment;

/// A server without definitions that answers writes with a code; records the first lines of
/// requests.
#[derive(Debug)]
struct Strict {
    code: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Connect for Strict {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (code, seen) = (self.code, Arc::clone(&self.seen));
        let (ours, mut theirs) = tokio::io::duplex(256 * 1024);
        tokio::spawn(async move {
            let mut request = vec![0; 256 * 1024];
            let length = theirs.read(&mut request).await?;
            let text = String::from_utf8_lossy(&request[..length]);
            let line = text.lines().next().unwrap_or_default().to_owned();
            let code = if line.starts_with("GET") { 404 } else { code };
            seen.lock().push(line);
            let answer =
                format!("HTTP/1.1 {code} -\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            theirs.write_all(answer.as_bytes()).await?;
            // Until the client has read the answer.
            while theirs.read(&mut request).await? > 0 {}
            Ok::<_, io::Error>(())
        });
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

/// Returns the result of a look at a definition that no replica has installed yet, and the requests
/// for that definition.
async fn looked(code: u16) -> (Result<bool, Error>, Vec<String>) {
    let seen = Arc::default();
    let connector = Arc::new(Strict { code, seen: Arc::clone(&seen) });
    let client = Client::over(connector, Environment::system());
    let mut definition = CustomResourceDefinition::default();
    definition.metadata.name = Some("sites.example.dev".to_owned());
    let outcome =
        check_definitions(&client, &[definition], false).await.map(|check| check.are_served);
    let seen = seen.lock().clone();
    (outcome, seen)
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_would_be_refused_is_an_error_before_a_replica_is_ready() {
    for (code, kind) in [(422, ErrorKind::Invalid), (400, ErrorKind::BadRequest)] {
        let (outcome, seen) = looked(code).await;
        assert_eq!(outcome.unwrap_err().kind(), kind);
        assert!(seen.iter().any(|line| line.starts_with("PATCH")), "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_only_tries_out_and_does_not_mind_missing_rights() {
    for code in [200, 403] {
        let (outcome, seen) = looked(code).await;
        assert!(!outcome.unwrap(), "they are not served");
        let is_dry = |line: &String| line.starts_with("GET") || line.contains("dryRun=All");
        assert!(seen.iter().all(is_dry), "{seen:?}");
        assert!(seen.iter().any(|line| line.starts_with("PATCH")), "{seen:?}");
    }
}
