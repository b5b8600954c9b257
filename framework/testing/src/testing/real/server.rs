//! A real API server: folder, port and processes.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::guard::{Guard, Word};
use super::pki::{Authority, ClientCertificate};
use super::{failed, folder, program};
use windlass_client::client::{Client, ClientConfig, Prepared};
use windlass_core::clock::Clock;
use windlass_core::error::Error;

/// Longest time from the start of the process until its report of readiness.
///
/// An idle machine needs 3 s.
const READY: Duration = Duration::from_secs(60);

/// A real kube-apiserver 1.36 with a separate etcd, on loopback.
///
/// Static tokens are `token-of-admin` (may do everything), `token-of-alice` (groups `readers` and
/// `writers`) and `token-of-bob` (no group); no role is granted to the latter two. Dropping the
/// value kills the processes and removes the server's folder, also when a test panics; so does any
/// end of this process.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use windlass::client::Client;
/// use windlass::testing::RealServer;
///
/// # async fn example() -> Result<(), windlass::Error> {
/// let server = RealServer::start().await;
/// let client = Client::new(server.admin())?;
/// server.kill().await;
/// assert!(client.get().abs_path(["version"]).send().await.is_err());
/// server.start_again().await;
/// # Ok(())
/// # }
/// ```
pub struct RealServer {
    /// Loopback address; the port was free when the server was made.
    address: SocketAddr,
    /// Certificates, keys and the data of etcd.
    ///
    /// The guard removes the folder when the processes have ended.
    folder: PathBuf,
    /// Authority whose client certificates the server accepts.
    clients: Authority,
    /// Certificate of the CA of the server's own certificate, PEM; replaced by
    /// [`replace_certificate`](Self::replace_certificate).
    server_ca: Mutex<String>,
    /// Shell that ends the processes; shared with blocking threads.
    guard: Arc<Mutex<Guard>>,
}

impl RealServer {
    /// Starts a separate server, for tests that stop it.
    ///
    /// # Panics
    /// When the server cannot be started; the text gives the reason and the remedy.
    pub async fn start() -> Self {
        Self::try_start().await.unwrap_or_else(|error| cannot("start", &error))
    }

    /// Does the same as [`start`](Self::start), with more flags of kube-apiserver.
    ///
    /// A flag that is given twice counts with the last value.
    ///
    /// # Panics
    /// When the server cannot be started; the text gives the reason and the remedy.
    pub async fn start_with(flags: &[&str]) -> Self {
        Self::launch(flags).await.unwrap_or_else(|error| cannot("start", &error))
    }

    /// Returns the server that the tests of this process share; started by the first caller.
    ///
    /// Never stop this server: other tests of the process use the server at the same time.
    ///
    /// # Panics
    /// When the server cannot be started; the text gives the reason and the remedy.
    pub async fn shared() -> &'static Self {
        Self::try_shared().await.unwrap_or_else(|error| cannot("start", &error))
    }

    /// Does the same as [`shared`](Self::shared).
    ///
    /// # Errors
    /// When the server cannot be started; the text gives the reason and the remedy.
    ///
    /// The server ends with the process: a static is never dropped, and the guard sees the end of
    /// the guard's input.
    pub async fn try_shared() -> Result<&'static Self, Error> {
        static SHARED: OnceCell<RealServer> = OnceCell::const_new();
        // A failure is not kept: the next test tries again.
        SHARED.get_or_try_init(Self::try_start).await
    }

    /// Does the same as [`start`](Self::start).
    ///
    /// # Errors
    /// When the server cannot be started; the text gives the reason and the remedy.
    pub async fn try_start() -> Result<Self, Error> {
        Self::launch(&[]).await
    }

    /// Prepares the folder, starts the processes, and waits until the server is ready.
    ///
    /// `flags` follow the flags of all servers, so that a flag given twice has the caller's value.
    async fn launch(flags: &[&str]) -> Result<Self, Error> {
        let program = program::find("kube-apiserver")?;
        let clients = Authority::new("windlass test clients")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let folder = folder::new_folder()?;
        // Before the process starts, which reads the files once.
        let server_ca = Mutex::new(folder::furnish(&folder, &clients)?);
        let mut arguments = folder::arguments(&folder, address.port());
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let guard = Guard::start(&folder, &program, &arguments);
        let guard = guard.map_err(|error| {
            failed(format!("cannot start {}", program.display())).because(error)
        })?;
        // Shared with the blocking threads that send commands.
        let guard = Arc::new(Mutex::new(guard));
        let server = Self { address, folder, clients, server_ca, guard };
        // On failure `server` is dropped, which ends the processes and removes the folder.
        server.ready().await?;
        Ok(server)
    }

    /// Returns the server's address; the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's URL, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Returns the certificate of the CA that signed the server's certificate, PEM.
    pub fn ca(&self) -> String {
        self.server_ca.lock().clone()
    }

    /// Returns the configuration of a client without credentials.
    ///
    /// Requests are those of `system:anonymous`, if the server admits them.
    ///
    /// # Panics
    /// Never on an address that this server has.
    pub fn anonymous(&self) -> ClientConfig {
        match ClientConfig::new(&self.url()) {
            Ok(config) => config.with_ca(&self.ca()),
            Err(error) => cannot("name", &error),
        }
    }

    /// Returns the configuration of a client for a user with a static token.
    ///
    /// `admin`, `alice` or `bob`.
    pub fn user(&self, name: &str) -> ClientConfig {
        self.anonymous().with_token(Self::token(name))
    }

    /// Returns the configuration of a client of the administrator, which may do everything.
    pub fn admin(&self) -> ClientConfig {
        self.user("admin")
    }

    /// Returns the static token of a user: `admin`, `alice` or `bob`.
    pub fn token(user: &str) -> String {
        folder::token(user)
    }

    /// Creates a client certificate of `user` in `group`, which the server accepts for `lifetime`.
    ///
    /// # Panics
    /// When the certificate cannot be created.
    pub fn certificate(
        &self,
        user: &str,
        group: Option<&str>,
        lifetime: Duration,
    ) -> ClientCertificate {
        // The server's clock is the machine's: lifetimes cannot be simulated.
        let until = Clock::system().wall().checked_add(lifetime).unwrap_or_default();
        match self.clients.client(user, group, until) {
            Ok(made) => made,
            Err(error) => cannot("make a certificate for", &error),
        }
    }

    /// Returns a kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> String {
        let (server, ca) = (self.url(), BASE64.encode(self.ca()));
        let token = Self::token("admin");
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{ name: test, cluster: {{ server: \"{server}\", certificate-authority-data: {ca} }} }}]\n\
             users: [{{ name: admin, user: {{ token: {token} }} }}]\n\
             contexts: [{{ name: test, context: {{ cluster: test, user: admin }} }}]\n"
        )
    }

    /// Returns the path of another program of the same Kubernetes build, such as `kubectl`.
    ///
    /// # Panics
    /// When there is none.
    pub fn program(name: &str) -> PathBuf {
        program::find(name).unwrap_or_else(|error| cannot("find a program of", &error))
    }

    /// Kills the server, as `kill -9` does: connections are reset without a message.
    ///
    /// # Panics
    /// When the guard does not obey.
    pub async fn kill(&self) {
        self.send(Word::Kill).await;
    }

    /// Asks the server to end, as `kill` does, and waits until the server has ended: a terminating
    /// server finishes requests and closes connections in order.
    ///
    /// # Panics
    /// When the guard does not obey.
    pub async fn terminate(&self) {
        self.send(Word::Terminate).await;
    }

    /// Stops the server's execution: connections stay open, no request is answered.
    ///
    /// # Panics
    /// When the guard does not obey.
    pub async fn freeze(&self) {
        self.send(Word::Stop).await;
    }

    /// Lets the server go on after [`freeze`](Self::freeze).
    ///
    /// # Panics
    /// When the guard does not obey.
    pub async fn thaw(&self) {
        self.send(Word::Continue).await;
    }

    /// Starts the server again, on the same port, with the same data, and waits until ready.
    ///
    /// # Panics
    /// When the server does not become ready.
    pub async fn start_again(&self) {
        self.send(Word::Begin).await;
        if let Err(error) = self.ready().await {
            cannot("start again", &error);
        }
    }

    /// Gives the server, while stopped, a certificate of a new CA; [`ca`](Self::ca) returns the new
    /// CA from now on.
    ///
    /// # Panics
    /// When the server's folder cannot be written.
    pub fn replace_certificate(&self) {
        match folder::write_server_certificate(&self.folder) {
            Ok(ca) => *self.server_ca.lock() = ca,
            Err(error) => cannot("replace the certificate of", &error),
        }
    }

    /// Keeps a copy of the server's store, while stopped; only the last copy is kept.
    ///
    /// # Panics
    /// When the server's folder cannot be copied.
    pub fn back_up(&self) {
        self.replace_store("etcd.backup", Some("etcd"));
    }

    /// Puts the copy of the store in place of the store, while the server is ended, as a restored
    /// backup does: versions go backwards.
    ///
    /// # Panics
    /// When there is no copy, or it cannot be restored.
    pub fn restore(&self) {
        self.replace_store("etcd", Some("etcd.backup"));
    }

    /// Removes the server's store, while stopped: versions begin anew.
    ///
    /// # Panics
    /// When the store cannot be removed.
    pub fn empty(&self) {
        self.replace_store("etcd", None);
    }

    /// Replaces a folder of the server by a copy of another, or removes that folder.
    ///
    /// The processes must be ended: etcd keeps files open, and would write into removed files.
    fn replace_store(&self, name: &str, by: Option<&str>) {
        let place = self.folder.join(name);
        let replace = || {
            // Removed first: a copy into an existing folder would mix the files of two stores.
            if place.exists() {
                std::fs::remove_dir_all(&place)?;
            }
            by.map_or(Ok(()), |by| folder::copy(&self.folder.join(by), &place))
        };
        if let Err(error) = replace() {
            let text = format!("cannot replace {}", place.display());
            cannot("set back the store of", &failed(text).because(error));
        }
    }

    /// Sends a command to the guard, and panics when it does not obey.
    ///
    /// The lock is held until the command was obeyed, so that commands take effect one after
    /// another.
    async fn send(&self, word: Word) {
        // The guard answers over a pipe, which blocks the thread.
        let guard = Arc::clone(&self.guard);
        let sent = tokio::task::spawn_blocking(move || guard.lock().send(word)).await;
        match sent {
            Ok(Ok(())) => {}
            other => panic!("the real API server did not obey {word:?}: {other:?}"),
        }
    }

    /// Waits until `/readyz` answers ok.
    ///
    /// Polls every 100 ms, as the administrator.
    async fn ready(&self) -> Result<(), Error> {
        let clock = Clock::system();
        // The log of earlier starts does not count.
        let before = self.log().len();
        let wait = async {
            loop {
                // A new client for each look: no backoff and no connection of an earlier attempt
                // delays the look, and the client trusts the present CA.
                let client = Client::builder().config(self.admin()).build()?;
                let request = Prepared::get("/readyz", "ask whether the real API server is ready");
                if client.send(request).await.is_ok() {
                    return Ok(());
                }
                let log = self.log();
                // Reported at once: the process is gone, and the deadline is a minute away.
                if log.get(before..).unwrap_or(&log).contains("command failed") {
                    return Err(self.not_ready("ended at once"));
                }
                clock.sleep(Duration::from_millis(100)).await;
            }
        };
        let outcome = clock.timeout(READY, wait).await;
        outcome.unwrap_or_else(|| Err(self.not_ready("was not ready after 60 s")))
    }

    /// Returns the output of the processes so far; empty if there is none.
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Returns the error about a server that does not start, with the end of the server's log.
    ///
    /// The log's last 15 lines have the reason in most cases, and fit on a screen.
    fn not_ready(&self, what: &str) -> Error {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n");
        failed(format!("the real API server {what}; the end of its log:\n{last}"))
    }
}

impl fmt::Debug for RealServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealServer")
            .field("address", &self.address)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Fails the test with the attempted action and the error.
///
/// The text names the remedy if there is one.
fn cannot(what: &str, error: &Error) -> ! {
    panic!("cannot {what} the real API server: {error:?}")
}

/// Returns a free port below those that the kernel gives to outgoing connections, so that no
/// connection takes the port while the server is down.
///
/// The port may be taken between the check and the server's start; ports of different processes and
/// calls differ, which makes that unlikely.
fn free_port() -> Result<u16, Error> {
    /// Lowest port; Linux gives outgoing connections those from 32768 by default.
    const FIRST: u16 = 20_000;
    /// Number of ports.
    const COUNT: u16 = 10_000;
    /// Offset of the next port to try in this process.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % u32::from(COUNT)) as u16;
    let free = (0..COUNT).find_map(|_| {
        // Offset by the process id: test processes that run beside each other try different ports
        // first.
        // `Relaxed`: the number need only differ between calls, the bind decides.
        let offset = own.wrapping_mul(7).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = FIRST + offset;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
    });
    free.ok_or_else(|| failed("no loopback port from 20000 to 29999 is free"))
}
