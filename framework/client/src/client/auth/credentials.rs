//! Credentials of requests: their source, their age, and their renewal after a 401.
//!
//! Credentials are read before each attempt of each request. At the same point changed client
//! certificates and CAs are noticed: then the pool stops using the open connections for new
//! requests, while requests under way are completed. No task runs in the background.

// DESIGN.md, 21: Certificate and token files are checked on requests, at most once a minute

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use zeroize::Zeroizing;

use super::exec::{ExecCredential, ExecPlugin};
use crate::client::secret::SecretString;
use crate::client::transport::{Identity, IdentityFuture, IdentitySource, Pool, Tls};
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// Age at which a token file is read again.
const FILE_AGE: Duration = Duration::from_secs(60);
/// Time before their expiry at which credentials are renewed.
const LEEWAY: SignedDuration = SignedDuration::from_secs(10);

/// Largest token file; a server accepts no header of this size.
const FILE_LIMIT: usize = 64 << 10;
/// Shortest time between two runs of a plugin: the plugin's credentials are used for this time even
/// after their expiry, and a replacement of refused credentials is not replaced again within this
/// time. Otherwise a wrong clock, or a locked account, would start a process with each request.
const LEAST_USE: Duration = Duration::from_secs(5);
/// Pause after a failure of a plugin before the next run.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Source of the `Authorization` header.
#[derive(Clone, Debug, Default)]
pub(crate) enum AuthSource {
    /// No header: anonymous, or authenticated by a client certificate.
    #[default]
    None,
    /// A token that never changes.
    Token(SecretString),
    /// A token file that may be rotated, and the token to use until the file can be read.
    TokenFile(PathBuf, Option<SecretString>),
    /// User and password.
    Basic(String, SecretString),
    /// A credential plugin.
    Exec(Arc<ExecPlugin>),
}

/// Credentials of a client; reads, caches and renews them.
#[derive(Debug)]
pub(crate) struct Credentials {
    source: AuthSource,
    clock: Clock,
    /// Cached credentials. Locked during a renewal, so that concurrent requests share it.
    kept: tokio::sync::Mutex<CredentialState>,
    /// Run of the plugin that is under way; the run survives callers that are cancelled.
    running: tokio::sync::Mutex<Option<PluginRun>>,
    /// Set once by `concern`, because pool and TLS need the credentials first.
    connections: OnceLock<PluginConnections>,
}

/// A run of the plugin in a task; dropping the handle kills the plugin.
type PluginRun = AbortOnDropHandle<Result<ExecCredential, Error>>;

/// Connections that a change of certificates affects.
#[derive(Debug)]
struct PluginConnections {
    /// Weak, because the pool owns the connector, which owns the credentials.
    pool: Weak<Pool>,
    tls: Option<Arc<Tls>>,
}

/// Cached credentials and the state of their renewal.
#[derive(Debug, Default)]
struct CredentialState {
    kept: Option<CachedCredential>,
    /// Last client certificate of the plugin; kept after a refusal to notice a change.
    identity: Option<Identity>,
    /// Whether the cached credentials were refused and not replaced so far.
    refused: bool,
    /// Instant of the last replacement of refused credentials by the plugin.
    replaced: Option<Instant>,
    /// Last failure of the plugin, until a run succeeds.
    failure: Option<PluginFailure>,
}

/// Last failure of the plugin, reported to the requests that waited for the run.
#[derive(Debug)]
struct PluginFailure {
    /// End of the failed run.
    at: Instant,
    kind: ErrorKind,
    /// Text of the error, which is not cloneable.
    text: String,
}

/// Credentials from a single read of the source.
#[derive(Clone, Debug)]
struct CachedCredential {
    /// Value of the `Authorization` header.
    header: Option<HeaderValue>,
    identity: Option<Identity>,
    /// Instant of the read, from which the age counts.
    read: Instant,
    /// Expiry that the plugin named.
    expires: Option<Timestamp>,
}

impl Credentials {
    pub(crate) fn new(source: AuthSource, clock: Clock) -> Self {
        Self {
            source,
            clock,
            kept: tokio::sync::Mutex::default(),
            running: tokio::sync::Mutex::default(),
            connections: OnceLock::new(),
        }
    }

    /// Registers the connections to retire when certificates change, in the files behind `tls` or
    /// in the plugin.
    pub(crate) fn concern(&self, pool: &Arc<Pool>, tls: Option<Arc<Tls>>) {
        let _ = self.connections.set(PluginConnections { pool: Arc::downgrade(pool), tls });
    }

    /// Returns the `Authorization` header for a request now.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, Error> {
        if let Some(tls) = self.tls() {
            // Reads the certificate files at most once a minute (A9: rotated CA or client
            // certificate).
            tls.renew(|| self.retire()).await;
        }
        match &self.source {
            AuthSource::None => Ok(None),
            AuthSource::Token(token) => bearer(token).map(Some),
            AuthSource::Basic(user, password) => basic(user, password).map(Some),
            AuthSource::TokenFile(..) | AuthSource::Exec(_) => Ok(self.current().await?.header),
        }
    }

    /// The TLS settings whose files may change; `None` before the client is assembled, and without
    /// TLS.
    fn tls(&self) -> Option<&Arc<Tls>> {
        self.connections.get().and_then(|to| to.tls.as_ref())
    }

    /// Returns whether requests carry an `Authorization` header.
    pub(crate) fn has_header(&self) -> bool {
        !matches!(self.source, AuthSource::None)
    }

    /// Returns whether refused credentials can be replaced by reading their source again.
    pub(crate) fn refreshable(&self) -> bool {
        matches!(self.source, AuthSource::TokenFile(..) | AuthSource::Exec(_))
    }

    /// Whether the credentials come from an exec plugin.
    fn is_plugin(&self) -> bool {
        matches!(self.source, AuthSource::Exec(_))
    }

    /// Describes the credentials that did not come in time, with advice.
    pub(crate) fn awaited(&self) -> String {
        match &self.source {
            AuthSource::Exec(plugin) => {
                let (plugin, origin) = (plugin.command.display(), &plugin.origin);
                let of = if origin.is_empty() { String::new() } else { format!(" of {origin}") };
                format!(": the plugin {plugin}{of} has not ended; run it by hand to see why")
            }
            AuthSource::TokenFile(path, _) => {
                format!(": the token file {} cannot be read so long", path.display())
            }
            _ => String::new(),
        }
    }

    /// Returns advice on a 401, by the source of the credentials.
    pub(crate) fn advice(&self) -> String {
        let tls = self.tls();
        match &self.source {
            AuthSource::Token(_) => {
                "the token was refused; it may have expired: get a new one".to_owned()
            }
            AuthSource::TokenFile(path, _) => {
                let path = path.display();
                format!("the token of {path} was refused; it may have expired: renew the file")
            }
            AuthSource::Basic(user, _) => {
                format!("the password of the user `{user}` was refused: correct it")
            }
            AuthSource::Exec(plugin) => {
                let plugin = plugin.command.display();
                format!(
                    "the server refused the credentials of the plugin {plugin}: log in with it again"
                )
            }
            AuthSource::None if tls.is_some_and(|tls| tls.has_identity()) => {
                "the client certificate was refused; it may have expired: renew it".to_owned()
            }
            AuthSource::None => "there are no credentials: the user of the configuration has \
                                 neither token nor client certificate nor plugin"
                .to_owned(),
        }
    }

    /// Records that the server refused `header`, or the client certificate. The next request reads
    /// the source again, unless another request has already done so, and gets a new connection if
    /// the certificate has changed.
    ///
    /// # Cancel safety
    /// Safe: the refusal is then left to the next request that meets the refusal.
    pub(crate) async fn refused(&self, header: Option<&HeaderValue>) {
        if let Some(tls) = self.tls().filter(|tls| tls.rotates()) {
            tls.renew_now(|| self.retire()).await;
        }
        // A renewal under way ends first: the comparison below must see the header of the renewal.
        let mut held = self.kept.lock().await;
        let now = self.clock.now();
        // The header is compared: another request may have replaced the refused credentials
        // already.
        let tried = self.is_plugin() && held.replaced.is_some_and(|at| now < at + LEAST_USE);
        if !tried && held.kept.as_ref().is_some_and(|kept| kept.header.as_ref() == header) {
            held.kept = None;
            held.refused = true;
        }
    }

    /// Returns the cached credentials, renewed if they are too old. Concurrent callers wait for the
    /// same renewal.
    async fn current(&self) -> Result<CachedCredential, Error> {
        let came = self.clock.now();
        // Held across the renewal, so that a single caller reads the source or runs the plugin for
        // all. Lock order: `kept` before `running`.
        let mut held = self.kept.lock().await;
        if let Some(current) = held.kept.as_ref().filter(|kept| self.is_fresh(kept)) {
            return Ok(current.clone());
        }
        // A caller that waited during the failed run shares the run's error and does not run the
        // plugin again.
        if let Some(PluginFailure { at, kind, text }) = &held.failure
            && (came <= *at || self.clock.now() < *at + FAILURE_PAUSE)
        {
            return Err(Error::new(*kind, text));
        }
        let renewed = match (self.renew().await, &self.source, held.kept.as_ref()) {
            (Ok(renewed), ..) => renewed,
            // The file may be in the middle of a rotation: the earlier token is used for another
            // minute.
            (Err(error), AuthSource::TokenFile(..), Some(old)) => {
                tracing::warn!(
                    %error,
                    "the token cannot be read again; the previous one stays in use"
                );
                CachedCredential { read: self.clock.now(), ..old.clone() }
            }
            (Err(error), AuthSource::TokenFile(_, Some(initial)), None) => {
                tracing::warn!(%error, "the token file cannot be read; using the inline token");
                let header = Some(bearer(initial)?);
                CachedCredential { header, identity: None, read: self.clock.now(), expires: None }
            }
            (Err(error), source, _) => {
                if let AuthSource::Exec(_) = source {
                    let (at, kind, text) = (self.clock.now(), error.kind(), error.to_string());
                    held.failure = Some(PluginFailure { at, kind, text });
                }
                return Err(error);
            }
        };
        held.failure = None;
        // Remembered, so that a second refusal within `LEAST_USE` does not run the plugin again.
        if std::mem::take(&mut held.refused) {
            held.replaced = Some(renewed.read);
        }
        // TLS presents the certificate when a connection opens, so open connections keep the old
        // certificate.
        if held.identity != renewed.identity {
            tracing::debug!("the plugin gave another client certificate");
            self.retire();
        }
        held.identity.clone_from(&renewed.identity);
        held.kept = Some(renewed.clone());
        Ok(renewed)
    }

    /// Returns whether cached credentials need no renewal.
    fn is_fresh(&self, kept: &CachedCredential) -> bool {
        match self.source {
            AuthSource::TokenFile(..) => self.clock.now() < kept.read + FILE_AGE,
            _ => {
                self.clock.now() < kept.read + LEAST_USE
                    || kept.expires.is_none_or(|expires| {
                        self.clock.wall().checked_add(LEEWAY).is_ok_and(|soon| soon < expires)
                    })
            }
        }
    }

    /// Runs the plugin, or waits for the run of a caller that was cancelled.
    async fn run(&self, plugin: &Arc<ExecPlugin>) -> Result<ExecCredential, Error> {
        let mut running = self.running.lock().await;
        let run = running.get_or_insert_with(|| {
            let (plugin, clock) = (Arc::clone(plugin), self.clock.clone());
            // In a separate task: a cancelled caller does not stop the plugin, and the next caller
            // joins the run.
            AbortOnDropHandle::new(tokio::spawn(async move { plugin.run(&clock).await }))
        });
        // Cancelled here, the run stays in `running` for the next caller.
        let ended = run.await;
        *running = None;
        ended.unwrap_or_else(|error| {
            let text = "the run of the credential plugin was cut short";
            Err(Error::new(ErrorKind::Config, text).because(error))
        })
    }

    /// Reads the source.
    async fn renew(&self) -> Result<CachedCredential, Error> {
        let read = self.clock.now();
        match &self.source {
            AuthSource::TokenFile(path, _) => {
                let header = Some(bearer(&token_from(path).await?)?);
                Ok(CachedCredential { header, identity: None, read, expires: None })
            }
            AuthSource::Exec(plugin) => {
                let credential = self.run(plugin).await?;
                let header = credential.token.as_ref().map(bearer).transpose()?;
                let identity = credential.identity.map(Arc::new);
                let read = self.clock.now();
                Ok(CachedCredential { header, identity, read, expires: credential.expires })
            }
            _ => Ok(CachedCredential { header: None, identity: None, read, expires: None }),
        }
    }
}

impl IdentitySource for Credentials {
    fn identity(&self) -> IdentityFuture<'_> {
        Box::pin(async {
            match &self.source {
                AuthSource::Exec(_) => Ok(self.current().await?.identity),
                _ => Ok(None),
            }
        })
    }

    fn retire(&self) {
        if let Some(pool) = self.connections.get().and_then(|to| to.pool.upgrade()) {
            pool.retire();
        }
    }
}

impl AuthSource {
    /// Refuses a token or password that no header could carry.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Token(token) if token.expose().trim().is_empty() => {
                Err(Error::new(ErrorKind::Config, "the token is empty; give one, or none at all"))
            }
            Self::Token(token) => bearer(token).map(drop),
            Self::Basic(user, password) => basic(user, password).map(drop),
            _ => Ok(()),
        }
    }
}

/// Reads a token file.
async fn token_from(path: &Path) -> Result<SecretString, Error> {
    let shown = path.display();
    let text = SecretString::load(path, FILE_LIMIT).await.map_err(|error| {
        let text = format!("cannot read the token file {shown}: {error}; correct the path");
        Error::new(ErrorKind::Config, text).because(error)
    })?;
    let token = text.expose().trim();
    if token.is_empty() {
        let text = format!("the token file {shown} is empty; write a token into it");
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(token.into())
}

/// Returns the header of a bearer token; surrounding blanks are removed.
fn bearer(token: &SecretString) -> Result<HeaderValue, Error> {
    header(&Zeroizing::new(format!("Bearer {}", token.expose().trim())))
}

/// Returns the header of a user and a password.
fn basic(user: &str, password: &SecretString) -> Result<HeaderValue, Error> {
    let plain = Zeroizing::new(format!("{user}:{}", password.expose()));
    header(&Zeroizing::new(format!("Basic {}", STANDARD.encode(plain.as_bytes()))))
}

/// Builds a header value that is marked as sensitive, so that no log shows the value.
fn header(value: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::new(
            ErrorKind::Config,
            "the token has characters that no HTTP header can carry; remove line breaks",
        )
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

    async fn pass(time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    async fn text(credentials: &Credentials) -> String {
        credentials.header().await.unwrap().unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_is_read_again_after_a_minute_and_after_a_refusal() {
        let path = scratch("rotated");
        std::fs::write(&path, "one\n").unwrap();
        let credentials =
            Credentials::new(AuthSource::TokenFile(path.clone(), None), Clock::system());
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
        let credentials =
            Credentials::new(AuthSource::TokenFile(path.clone(), None), Clock::system());
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
            Arc::new(ExecPlugin::new("/bin/sh").arg("-c").arg(script))
        };
        let runs = || std::fs::read_to_string(&path).unwrap().lines().count();
        let lasting = AuthSource::Exec(plugin("2999-01-01T00:00:00Z"));
        let lasting = Credentials::new(lasting, Clock::system());
        assert_eq!(text(&lasting).await, text(&lasting).await);
        pass(LEAST_USE).await;
        assert_eq!(text(&lasting).await, "Bearer t");
        assert_eq!(runs(), 1);
        let expired = AuthSource::Exec(plugin("2001-01-01T00:00:00Z"));
        let expired = Credentials::new(expired, Clock::system());
        assert_eq!(text(&expired).await, text(&expired).await);
        assert_eq!(runs(), 2);
        pass(LEAST_USE).await;
        assert_eq!(text(&expired).await, "Bearer t");
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
        let plugin = ExecPlugin::new("/bin/sh").arg("-c").arg(script);
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
