//! A local cluster for a machine without a cluster: the embedded API server, with a kubeconfig for
//! kubectl.
//!
//! An operator can be tried without a cluster, Docker or a download. A [`LocalCluster`] serves the
//! Kubernetes API on a free loopback port with TLS, and gives this process a client that does not
//! need the port. Stand-ins report Deployments available, so that an operator can finish its work.
//! A drop removes everything. Not included: Pods that run, storage that stays.
//!
//! ```no_run
//! use windlass::local::LocalCluster;
//!
//! # async fn example() -> Result<(), windlass::Error> {
//! let cluster = LocalCluster::start("shop").await?;
//! println!("kubectl --kubeconfig {} get pods", cluster.kubeconfig().display());
//! let version = cluster.client().discovery().server_version().await?;
//! println!("serving {version} on {}", cluster.addr());
//! cluster.shutdown().await;
//! # Ok(())
//! # }
//! ```

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_apiserver::ApiServer;

use windlass_client::client::{Client, NewServer};
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::manager::Manager;
use windlass_testing::embedded::{self, WebhookRoutes};

/// An API server in this process that kubectl can use.
///
/// A drop removes the kubeconfig. Other processes of this machine can reach the server with that
/// file, so elections on this server wait as on any server.
#[derive(Debug)]
pub struct LocalCluster {
    /// The server, which holds all objects in memory.
    server: ApiServer,
    /// Connections of the server to webhooks of operators in this process.
    webhooks: WebhookRoutes,
    /// Client of the administrator, through memory.
    client: Client,
    /// Loopback address with the free port that was chosen.
    addr: SocketAddr,
    /// File that is removed with the cluster.
    kubeconfig: PathBuf,
}

impl LocalCluster {
    /// Starts a cluster; `name` is part of the file name of the kubeconfig, which only this user
    /// can read.
    ///
    /// Needs a tokio runtime, on which the server runs. Two clusters of the same name in a process
    /// have two files.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when no loopback port can be opened or the kubeconfig not be written.
    pub async fn start(name: &str) -> Result<Self, Error> {
        // No controller manager runs here: without stand-ins a Deployment would never become
        // available.
        let webhooks = WebhookRoutes::default();
        let server = ApiServer::builder().stand_ins(true).connector(webhooks.clone()).start();
        let client = embedded::client(&server, None, "default", Environment::system())?;
        let new_server = Arc::new(NewServer::default());
        // Other processes can reach the port as soon as the port is open, and may hold a lease
        // then.
        new_server.open(client.environment().clock.reading());
        let client = client.of_new_server(&new_server);
        let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.map_err(|error| {
            let text = "cannot serve the embedded API server on a loopback port";
            Error::new(ErrorKind::Config, text).because(error)
        })?;
        let kubeconfig = state_path(name);
        write_private(&kubeconfig, &listening.kubeconfig).map_err(|error| {
            let text = format!(
                "cannot write the kubeconfig {}; set XDG_RUNTIME_DIR or TMPDIR to a writable folder",
                kubeconfig.display()
            );
            Error::new(ErrorKind::Config, text).because(error)
        })?;
        Ok(Self { server, webhooks, client, addr: listening.addr, kubeconfig })
    }

    /// Returns a client with administrator's rights, through memory.
    ///
    /// For the operator in this process: this client needs neither the port nor TLS.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Lets the API server ask the webhooks of an operator that is started in this process.
    pub(crate) fn ask_webhooks_of(&self, manager: &mut Manager) {
        self.webhooks.connect(manager, &self.client);
    }

    /// Returns the address of the HTTPS port, on the loopback interface, that kubectl uses.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the path of an administrator's kubeconfig; the file is removed with the cluster.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Stops the API server.
    ///
    /// The kubeconfig is removed, too.
    ///
    /// # Cancel safety
    /// The kubeconfig is removed in any case.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// Path of the kubeconfig, in the user's runtime folder if that exists.
fn state_path(name: &str) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_dir())
        .unwrap_or_else(std::env::temp_dir);
    // Clusters of a process share the process id: without the count the second cluster would remove
    // the file of the first. Relaxed: the count orders no other memory.
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let count = match STARTED.fetch_add(1, Ordering::Relaxed) {
        0 => String::new(),
        earlier => format!("-{}", earlier + 1),
    };
    folder.join(format!("windlass-{name}-{}{count}.kubeconfig", std::process::id()))
}

/// Writes a new file that only this user can read. An existing file is not followed: a file that an
/// earlier process with this id left behind is removed first.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut options = OpenOptions::new();
    // Does not follow a link that another user has placed there.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_clusters_of_one_process_and_name_each_keep_their_own_kubeconfig() {
        let first = LocalCluster::start("twin").await.unwrap();
        let second = LocalCluster::start("twin").await.unwrap();
        assert_ne!(first.kubeconfig(), second.kubeconfig());
        let path = first.kubeconfig().to_owned();
        drop(first);
        assert!(!path.exists());
        let text = std::fs::read_to_string(second.kubeconfig()).unwrap();
        assert!(text.contains(&second.addr().to_string()), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_kubeconfig_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("windlass-test-{}", std::process::id()));
        std::fs::write(&path, "left over, readable by all").unwrap();
        write_private(&path, "secret").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret");
        std::fs::remove_file(&path).unwrap();
    }
}
