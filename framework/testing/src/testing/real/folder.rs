//! Folder of a real API server: keys, certificates, tokens, and the flags that name them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::KeyPair;

use super::failed;
use super::pki::{Authority, cannot_make};
use windlass_core::error::Error;

/// Name, uid and groups of the users that have a static token.
///
/// Groups are separated by commas, as the file of static tokens has them. RBAC grants everything to
/// `system:masters`.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin-uid", "system:masters"),
    ("alice", "alice-uid", "readers,writers"),
    ("bob", "bob-uid", ""),
];

/// Returns the static token of a user.
pub(super) fn token(user: &str) -> String {
    format!("token-of-{user}")
}

/// Copies a folder and the contents.
pub(super) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Creates a folder that no other running server uses.
///
/// The folder lies in the system's folder for temporary files; the name has the process id and a
/// number.
pub(super) fn new_folder() -> Result<PathBuf, Error> {
    /// Number of folders that this process has created.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // `Relaxed`: the number need only be unique.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("windlass-kube-{}-{count}", std::process::id()));
    // A former process with the same id may have left a folder.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("certificates")).map_err(|error| {
        failed(format!("cannot prepare the folder {}", folder.display())).because(error)
    })?;
    Ok(folder)
}

/// Writes keys, certificates and tokens; returns the CA of the server's certificate.
///
/// The key pair of `accounts.*` signs tokens of service accounts and verifies them.
pub(super) fn furnish(folder: &Path, clients: &Authority) -> Result<String, Error> {
    let accounts = KeyPair::generate().map_err(cannot_make)?;
    write(folder, "accounts.key", &accounts.serialize_pem())?;
    write(folder, "accounts.pub", &accounts.public_key_pem())?;
    write(folder, "clients.crt", &clients.certificate)?;
    let tokens = USERS.iter().map(|(name, uid, groups)| {
        let token = token(name);
        format!("{token},{name},{uid},\"{groups}\"\n")
    });
    write(folder, "tokens.csv", &tokens.collect::<String>())?;
    write_server_certificate(folder)
}

/// Writes a certificate of a new CA for the server; returns the CA's certificate.
///
/// A new CA each time, so that a client which trusts the former CA rejects the new certificate.
pub(super) fn write_server_certificate(folder: &Path) -> Result<String, Error> {
    let authority = Authority::new("windlass test servers")?;
    let pair = authority.server()?;
    write(folder, "server.crt", &pair.certificate)?;
    write(folder, "server.key", &pair.key)?;
    Ok(authority.certificate)
}

/// Writes a file of the server.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    std::fs::write(folder.join(name), text).map_err(|error| {
        failed(format!("cannot write {name} in {}", folder.display())).because(error)
    })
}

/// Returns the command line of kube-apiserver.
///
/// The first eight flags name files of the server's folder; `etcd-data-dir` is a flag of the
/// project's build, which runs etcd in the same process.
pub(super) fn arguments(folder: &Path, port: u16) -> Vec<String> {
    let files = [
        ("etcd-data-dir", "etcd"),
        ("cert-dir", "certificates"),
        ("tls-cert-file", "server.crt"),
        ("tls-private-key-file", "server.key"),
        ("client-ca-file", "clients.crt"),
        ("token-auth-file", "tokens.csv"),
        ("service-account-key-file", "accounts.pub"),
        ("service-account-signing-key-file", "accounts.key"),
    ];
    let files = files.map(|(flag, name)| format!("--{flag}={}", folder.join(name).display()));
    let others = [
        "--bind-address=127.0.0.1",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://windlass.test",
        // No controller creates the default ServiceAccount, without which this plugin refuses every
        // Pod.
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
        // The address is loopback, which is not valid in the Endpoints of the `kubernetes` Service.
        "--endpoint-reconciler-type=none",
        "--shutdown-delay-duration=0",
        // Without this flag an open watch keeps the server for a minute after SIGTERM.
        "--shutdown-watch-termination-grace-period=1s",
        "--allow-privileged",
    ];
    let others = others.map(str::to_owned);
    files.into_iter().chain(others).chain([format!("--secure-port={port}")]).collect()
}
