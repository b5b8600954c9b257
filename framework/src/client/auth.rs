//! Credentials of requests: where they come from, how long they are kept, what a 401 does to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::exec::{ExecCredential, ExecPlugin};
use super::secret::Secret;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};

/// A token file is read again when it was read so long ago.
const FILE_AGE: Duration = Duration::from_secs(60);
/// Credentials are renewed so long before they expire.
const LEEWAY: SignedDuration = SignedDuration::from_secs(10);

/// Where the `Authorization` header comes from.
#[derive(Clone, Debug, Default)]
pub(crate) enum AuthSource {
    /// Nowhere: anonymous, or a client certificate says it all.
    #[default]
    None,
    /// A token that never changes.
    Token(Secret),
    /// A file that somebody rotates.
    TokenFile(PathBuf),
    /// User and password.
    Basic(String, Secret),
    /// A credential plugin.
    Exec(Arc<ExecPlugin>),
}

/// A client certificate and its key, PEM.
pub(crate) type Identity = Arc<(Secret, Secret)>;

/// The credentials of one client; reads, keeps and renews them.
#[derive(Debug)]
pub(crate) struct Credentials {
    source: AuthSource,
    clock: Clock,
    kept: tokio::sync::Mutex<Option<Kept>>,
    /// A run of the plugin that is under way; it outlives callers that give up on it.
    running: tokio::sync::Mutex<Option<Running>>,
}

type Running = AbortOnDropHandle<Result<ExecCredential, Error>>;

#[derive(Clone, Debug)]
struct Kept {
    header: Option<HeaderValue>,
    identity: Option<Identity>,
    read: Instant,
    expires: Option<Timestamp>,
}

impl Credentials {
    pub(crate) fn new(source: AuthSource, clock: Clock) -> Self {
        Self {
            source,
            clock,
            kept: tokio::sync::Mutex::default(),
            running: tokio::sync::Mutex::default(),
        }
    }

    /// The `Authorization` header for a request now.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, Error> {
        match &self.source {
            AuthSource::None => Ok(None),
            AuthSource::Token(token) => bearer(token).map(Some),
            AuthSource::Basic(user, password) => basic(user, password).map(Some),
            AuthSource::TokenFile(_) | AuthSource::Exec(_) => Ok(self.current().await?.header),
        }
    }

    /// The client certificate that a plugin handed out.
    pub(crate) async fn identity(&self) -> Result<Option<Identity>, Error> {
        match &self.source {
            AuthSource::Exec(_) => Ok(self.current().await?.identity),
            _ => Ok(None),
        }
    }

    /// Do requests carry an `Authorization` header?
    pub(crate) fn has_header(&self) -> bool {
        !matches!(self.source, AuthSource::None)
    }

    /// Can a refused credential be replaced by asking its source again?
    pub(crate) fn refreshable(&self) -> bool {
        matches!(self.source, AuthSource::TokenFile(_) | AuthSource::Exec(_))
    }

    /// Can client certificates change with the credentials?
    pub(crate) fn is_plugin(&self) -> bool {
        matches!(self.source, AuthSource::Exec(_))
    }

    /// The server refused `header`: the next request asks the source again, unless another request
    /// has already done so.
    pub(crate) async fn refused(&self, header: Option<&HeaderValue>) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|kept| kept.header.as_ref() == header) {
            *kept = None;
        }
    }

    /// What is kept, renewed if it is old. Whoever comes meanwhile waits for the same renewal.
    async fn current(&self) -> Result<Kept, Error> {
        let mut kept = self.kept.lock().await;
        if let Some(current) = kept.as_ref().filter(|kept| self.is_fresh(kept)) {
            return Ok(current.clone());
        }
        let renewed = match (self.renew().await, kept.as_mut()) {
            (Ok(renewed), _) => renewed,
            // A rotation in progress: go on with what worked, and look again in a minute.
            (Err(error), Some(old)) if matches!(self.source, AuthSource::TokenFile(_)) => {
                tracing::warn!(%error, "going on with the token that was read before");
                Kept { read: self.clock.now(), ..old.clone() }
            }
            (Err(error), _) => return Err(error),
        };
        *kept = Some(renewed.clone());
        Ok(renewed)
    }

    fn is_fresh(&self, kept: &Kept) -> bool {
        match self.source {
            AuthSource::TokenFile(_) => self.clock.now() < kept.read + FILE_AGE,
            _ => kept.expires.is_none_or(|expires| {
                self.clock.wall().checked_add(LEEWAY).is_ok_and(|soon| soon < expires)
            }),
        }
    }

    /// Runs the plugin, or waits for the run that an earlier caller gave up on.
    async fn run(&self, plugin: &Arc<ExecPlugin>) -> Result<ExecCredential, Error> {
        let mut running = self.running.lock().await;
        let run = running.get_or_insert_with(|| {
            let (plugin, clock) = (Arc::clone(plugin), self.clock.clone());
            AbortOnDropHandle::new(tokio::spawn(async move { plugin.run(&clock).await }))
        });
        let ended = run.await;
        *running = None;
        ended.unwrap_or_else(|error| {
            let text = "the run of the credential plugin was cut short";
            Err(Error::new(ErrorKind::Config, text).because(error))
        })
    }

    async fn renew(&self) -> Result<Kept, Error> {
        let read = self.clock.now();
        match &self.source {
            AuthSource::TokenFile(path) => {
                let header = Some(bearer(&token_from(path).await?)?);
                Ok(Kept { header, identity: None, read, expires: None })
            }
            AuthSource::Exec(plugin) => {
                let credential = self.run(plugin).await?;
                let header = credential.token.as_ref().map(bearer).transpose()?;
                let identity = credential.identity.map(Arc::new);
                Ok(Kept { header, identity, read, expires: credential.expires })
            }
            _ => Ok(Kept { header: None, identity: None, read, expires: None }),
        }
    }
}

async fn token_from(path: &Path) -> Result<Secret, Error> {
    let shown = path.display();
    let text = tokio::fs::read_to_string(path).await.map_err(|error| {
        Error::new(ErrorKind::Config, format!("cannot read the token file {shown}")).because(error)
    })?;
    let token = text.trim();
    if token.is_empty() {
        return Err(Error::new(ErrorKind::Config, format!("the token file {shown} is empty")));
    }
    Ok(token.into())
}

fn bearer(token: &Secret) -> Result<HeaderValue, Error> {
    header(&format!("Bearer {}", token.expose().trim()))
}

fn basic(user: &str, password: &Secret) -> Result<HeaderValue, Error> {
    header(&format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose()))))
}

fn header(value: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::new(ErrorKind::Config, "the token has characters that no HTTP header can carry")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("windlass-auth-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    }

    async fn text(credentials: &Credentials) -> String {
        credentials.header().await.unwrap().unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_is_read_again_after_a_minute_and_after_a_refusal() {
        let path = scratch("rotated");
        std::fs::write(&path, "one\n").unwrap();
        let credentials = Credentials::new(AuthSource::TokenFile(path.clone()), Clock::system());
        assert_eq!(text(&credentials).await, "Bearer one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(text(&credentials).await, "Bearer one");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(text(&credentials).await, "Bearer two");
        std::fs::write(&path, "three").unwrap();
        let other = HeaderValue::from_static("Bearer one");
        credentials.refused(Some(&other)).await;
        assert_eq!(text(&credentials).await, "Bearer two");
        let current = credentials.header().await.unwrap();
        credentials.refused(current.as_ref()).await;
        assert_eq!(text(&credentials).await, "Bearer three");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_that_vanishes_for_a_moment_does_not_fail_requests() {
        let path = scratch("vanishing");
        std::fs::write(&path, "one").unwrap();
        let credentials = Credentials::new(AuthSource::TokenFile(path.clone()), Clock::system());
        assert_eq!(text(&credentials).await, "Bearer one");
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(text(&credentials).await, "Bearer one");
    }

    #[tokio::test]
    async fn a_plugin_is_asked_again_only_when_its_credential_expires() {
        let path = scratch("count");
        let _ = std::fs::remove_file(&path);
        let plugin = |expires: &str| {
            let script = format!(
                r#"echo x >> {}; printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"t","expirationTimestamp":"{expires}"}}}}'"#,
                path.display()
            );
            Arc::new(ExecPlugin {
                command: "/bin/sh".into(),
                args: vec!["-c".into(), script.into()],
                env: vec![],
                api_version: "client.authentication.k8s.io/v1".into(),
                cluster: None,
                install_hint: String::new(),
            })
        };
        let runs = || std::fs::read_to_string(&path).unwrap().lines().count();
        let lasting = AuthSource::Exec(plugin("2999-01-01T00:00:00Z"));
        let lasting = Credentials::new(lasting, Clock::system());
        assert_eq!(text(&lasting).await, text(&lasting).await);
        assert_eq!(runs(), 1);
        let expired = AuthSource::Exec(plugin("2001-01-01T00:00:00Z"));
        let expired = Credentials::new(expired, Clock::system());
        assert_eq!(text(&expired).await, text(&expired).await);
        assert_eq!(runs(), 3);
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_does_not_start_the_plugin_anew() {
        let (path, go) = (scratch("given-up"), scratch("go"));
        let _ = (std::fs::remove_file(&path), std::fs::remove_file(&go));
        let script = format!(
            r#"echo x >> {}; while [ ! -e {} ]; do sleep 0.05; done; printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"t"}}}}'"#,
            path.display(),
            go.display()
        );
        let plugin = ExecPlugin {
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![],
            api_version: "client.authentication.k8s.io/v1".into(),
            cluster: None,
            install_hint: String::new(),
        };
        let credentials = Credentials::new(AuthSource::Exec(Arc::new(plugin)), Clock::system());
        for _ in 0..2 {
            let short = Duration::from_millis(100);
            assert!(tokio::time::timeout(short, credentials.header()).await.is_err());
        }
        std::fs::write(&go, "").unwrap();
        assert_eq!(text(&credentials).await, "Bearer t");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x\n");
    }

    #[tokio::test]
    async fn basic_credentials_are_sent_as_base64_and_marked_sensitive() {
        let source = AuthSource::Basic("user".into(), "pass".into());
        let header = Credentials::new(source, Clock::system()).header().await.unwrap().unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic dXNlcjpwYXNz");
        assert!(header.is_sensitive());
    }

    #[tokio::test]
    async fn no_debug_output_shows_a_secret() {
        let sources =
            [AuthSource::Token("canary".into()), AuthSource::Basic("user".into(), "canary".into())];
        for source in sources {
            let credentials = Credentials::new(source, Clock::system());
            let header = credentials.header().await.unwrap();
            assert!(!format!("{credentials:?} {header:?}").contains("canary"));
        }
    }
}
