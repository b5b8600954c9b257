//! A real kube-apiserver for the whole test process, on a free port, ended when the process ends.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;
use tokio::sync::OnceCell;

use crate::client::{Client, ClientConfig, Prepared};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};

/// From the start of the process until it says that it is ready.
const READY: Duration = Duration::from_secs(60);
/// Every test process has its own server on loopback; this is no secret.
const TOKEN: &str = "windlass-test-admin";

/// Runs its arguments until its standard input ends, which happens when the test process is gone,
/// however it went; then it removes the folder it was given first.
const GUARD: &str = r#"folder="$1"; shift
"$@" >"$folder/log" 2>&1 </dev/null &
child=$!
cat >/dev/null
kill -9 "$child" 2>/dev/null
rm -rf "$folder""#;

/// Do tests want the real server?
///
/// # Errors
/// When `WINDLASS_TEST_SERVER` is a word that means nothing: a typing error must not turn tests of the
/// real server into tests of the embedded one.
pub(super) fn wanted() -> Result<bool, Error> {
    match std::env::var("WINDLASS_TEST_SERVER").unwrap_or_default().as_str() {
        "real" => Ok(true),
        "" | "embedded" => Ok(false),
        other => Err(Error::new(
            ErrorKind::Config,
            format!("WINDLASS_TEST_SERVER is {other:?}; set it to `real` or `embedded`"),
        )),
    }
}

struct Real {
    config: ClientConfig,
    kubeconfig: String,
    /// Its standard input keeps the server alive.
    _guard: Child,
}

/// How to reach the server of this process; started by the first caller.
pub(super) async fn config() -> Result<ClientConfig, Error> {
    Ok(real().await?.config.clone())
}

/// The same, for other programs.
pub(super) async fn kubeconfig() -> Result<String, Error> {
    Ok(real().await?.kubeconfig.clone())
}

async fn real() -> Result<&'static Real, Error> {
    static REAL: OnceCell<Real> = OnceCell::const_new();
    REAL.get_or_try_init(start).await
}

/// `config`, whose user acts as `user` with `groups`.
pub(super) fn as_user(
    mut config: ClientConfig,
    user: &str,
    groups: &[&str],
) -> Result<ClientConfig, Error> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|error| {
            let text = format!("cannot act as {text:?}: no HTTP header can carry that");
            Error::new(ErrorKind::Usage, text).because(error)
        })
    };
    config.headers.insert("impersonate-user", value(user)?);
    for group in groups {
        config.headers.append("impersonate-group", value(group)?);
    }
    Ok(config)
}

fn kubeconfig_of(server: &str, ca: &str) -> String {
    let ca = BASE64.encode(ca);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{ name: test, cluster: {{ server: \"{server}\", certificate-authority-data: {ca} }} }}]\n\
         users: [{{ name: admin, user: {{ token: {TOKEN} }} }}]\n\
         contexts: [{{ name: test, context: {{ cluster: test, user: admin }} }}]\n"
    )
}

async fn start() -> Result<Real, Error> {
    let program = program()?;
    let folder = folder()?;
    let port = free_port()?;
    let guard = launch(&program, &folder, port).map_err(|error| {
        let text = format!("cannot start {}", program.display());
        Error::new(ErrorKind::Config, text).because(error)
    })?;
    let (config, kubeconfig) = ready(&folder, port).await?;
    Ok(Real { config, kubeconfig, _guard: guard })
}

/// `WINDLASS_KUBE_BIN/kube-apiserver`, or the newest build in the cache folder.
fn program() -> Result<PathBuf, Error> {
    let (found, looked) = match std::env::var_os("WINDLASS_KUBE_BIN") {
        Some(folder) => {
            let program = PathBuf::from(folder).join("kube-apiserver");
            let looked = format!("{} (named by WINDLASS_KUBE_BIN)", program.display());
            (Some(program), looked)
        }
        None => {
            let cache = cache();
            let looked = format!("{}/kube-v1.*/kube-apiserver", cache.display());
            (newest_build(&cache), looked)
        }
    };
    found.filter(|program| program.is_file()).ok_or_else(|| {
        let text = format!(
            "WINDLASS_TEST_SERVER=real needs a kube-apiserver, and there is none at {looked}; build \
             it by tests/kube-apiserver/build.sh (needs Go, takes minutes), or name the folder of \
             another build in WINDLASS_KUBE_BIN, or unset WINDLASS_TEST_SERVER to test on the \
             embedded server"
        );
        Error::new(ErrorKind::Config, text)
    })
}

/// Where `build.sh` puts its builds.
fn cache() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("WINDLASS_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("windlass")))
        .unwrap_or_else(|| folder("HOME").unwrap_or_default().join(".cache/windlass"))
}

fn newest_build(cache: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let builds = entries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kube-v1."))
    });
    let programs = builds.map(|path| path.join("kube-apiserver"));
    let built = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    programs.filter(|program| program.is_file()).max_by_key(built)
}

fn folder() -> Result<PathBuf, Error> {
    let folder = std::env::temp_dir().join(format!("windlass-kube-{}", std::process::id()));
    let key = rcgen::KeyPair::generate().map_err(|error| {
        Error::new(ErrorKind::Config, "cannot make a key for service accounts").because(error)
    })?;
    let write = || -> std::io::Result<()> {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("certificates"))?;
        std::fs::write(folder.join("accounts.key"), key.serialize_pem())?;
        std::fs::write(folder.join("accounts.pub"), key.public_key_pem())?;
        std::fs::write(folder.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))
    };
    write().map_err(|error| {
        let text = format!("cannot prepare the folder {}", folder.display());
        Error::new(ErrorKind::Config, text).because(error)
    })?;
    Ok(folder)
}

fn free_port() -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|addr| addr.port())
        .map_err(|error| Error::new(ErrorKind::Config, "no loopback port is free").because(error))
}

fn launch(program: &Path, folder: &Path, port: u16) -> std::io::Result<Child> {
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    Command::new("sh")
        .args(["-c", GUARD, "guard"])
        .arg(folder)
        .arg(program)
        .arg(flag("etcd-data-dir", &folder.join("etcd")))
        .arg(flag("cert-dir", &folder.join("certificates")))
        .arg(flag("token-auth-file", &folder.join("tokens.csv")))
        .arg(flag("service-account-key-file", &folder.join("accounts.pub")))
        .arg(flag("service-account-signing-key-file", &folder.join("accounts.key")))
        .arg(format!("--secure-port={port}"))
        .args([
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://windlass.test",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--shutdown-delay-duration=0",
            "--allow-privileged",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Waits until `/readyz` says ok.
async fn ready(folder: &Path, port: u16) -> Result<(ClientConfig, String), Error> {
    let clock = Clock::system();
    let certificate = folder.join("certificates/apiserver.crt");
    let wait = async {
        loop {
            if let Ok(pem) = tokio::fs::read_to_string(&certificate).await
                && pem.contains("END CERTIFICATE")
            {
                let server = format!("https://127.0.0.1:{port}");
                let config = ClientConfig::new(&server)?.with_ca(&pem).with_token(TOKEN);
                let client = Client::builder().config(config.clone()).build()?;
                let request = Prepared::get("/readyz", "ask whether the real API server is ready");
                if client.send(request).await.is_ok() {
                    return Ok((config, kubeconfig_of(&server, &pem)));
                }
            }
            if log(folder).contains("command failed") {
                return Err(not_ready("ended at once", folder));
            }
            clock.sleep(Duration::from_millis(100)).await;
        }
    };
    let outcome = clock.within(READY, wait).await;
    outcome.unwrap_or_else(|| Err(not_ready("was not ready after 60 s", folder)))
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

fn not_ready(what: &str, folder: &Path) -> Error {
    let log = log(folder);
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(15)..].join("\n");
    let text = format!("the real API server {what}; the end of its log:\n{last}");
    Error::new(ErrorKind::Config, text)
}
