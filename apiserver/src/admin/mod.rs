//! Administration over a Unix socket: faults, history, snapshots, the audit log and counters.
//!
//! The socket gives all rights that a test has through [`ApiServer`], so it belongs to the owner
//! alone. The routes are listed at [`ApiServer::serve_admin`].

mod forms;
mod routes;
mod state;

use std::convert::Infallible;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::files;
use crate::server::ApiServer;

/// Most connections at once; further connections wait.
const CONNECTIONS: usize = 16;
/// Longest time for the headers of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

impl ApiServer {
    /// Serves administration over a Unix socket that only the owner may open (mode 0600), until the
    /// server stops. HTTP/1.1 with JSON:
    ///
    /// | route | effect |
    /// |---|---|
    /// | `GET /faults` | faults of requests, each with its `id`, its remaining `times` and its `hits` |
    /// | `POST /faults` | adds a fault: `verb`, `resource`, `subresource`, `namespace`, `name`, `agent`, `user`, `after`, `times` (default 1, null for ever), `actions`; answers its `id` |
    /// | `DELETE /faults/ID`, `DELETE /faults` | removes one; removes all, and resumes watches |
    /// | `POST /watches/ACTION` | `close`, `fail` (`code`), `pause`, `resume` or `lag` (`milliseconds`) the watches of `resource`, `*` for all |
    /// | `POST /compact` | drops the history of watches |
    /// | `POST /restart` | cuts all connections and drops the history, as a restart does |
    /// | `GET /snapshot` | all objects and the newest version |
    /// | `PUT /snapshot` | goes back to a snapshot: versions go backwards, connections are cut |
    /// | `GET /audit` | the kept entries of the audit log, and the numbers of dropped and lost ones |
    /// | `GET /counters` | requests, panics, open watches, the newest version, objects, and the history's changes and bytes |
    ///
    /// An action is one of `"drop"`, `"hang"`, `"executeThenDrop"`, `"executeThenHang"`,
    /// `"closeWatch"`, `{"answer": 503}`, `{"executeThenAnswer": 500}`,
    /// `{"delayMilliseconds": 20}`, `{"retryAfter": "1"}`, `{"failWatch": 410}`,
    /// `{"rawFrame": "text"}`, `{"repeatWatch": 3}`, `{"garble": "name"}`,
    /// `{"rawBody": [200, "text"]}`.
    ///
    /// A socket that a killed server has left behind is replaced.
    ///
    /// # Errors
    /// The socket cannot be made, another server listens there, or the path names another file.
    pub async fn serve_admin(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_owned();
        let listener = bind(&path).await.map_err(|error| {
            let text = format!("cannot open the admin socket {}: {error}", path.display());
            io::Error::new(error.kind(), text)
        })?;
        tokio::spawn(accept(self.clone(), listener, path));
        Ok(())
    }
}

/// Makes a socket that no other user can have opened, not even before the mode is set.
async fn bind(path: &Path) -> io::Result<UnixListener> {
    match path.symlink_metadata() {
        Ok(about) if !about.file_type().is_socket() => {
            return Err(io::Error::other(
                "the path names a file that is not a socket; name another",
            ));
        }
        Ok(_) if UnixStream::connect(path).await.is_ok() => {
            return Err(io::Error::other("another server listens on it; stop it, or name another"));
        }
        _ => {}
    }
    // In a separate folder at first: between `bind` and the change of mode others could open the
    // socket.
    let mut folder = path.as_os_str().to_owned();
    folder.push(".part");
    let folder = PathBuf::from(folder);
    let inner = folder.join("s");
    // Always of the same name: a server that was killed here leaves a single folder behind, and not
    // a folder each time.
    files::check(&folder)?;
    drop(std::fs::remove_file(&inner));
    drop(std::fs::remove_dir(&folder));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = UnixListener::bind(&inner).and_then(|listener| {
        std::fs::set_permissions(&inner, Permissions::from_mode(0o600))?;
        std::fs::rename(&inner, path)?;
        Ok(listener)
    });
    // Best effort: the error of the socket is reported instead.
    drop(std::fs::remove_dir_all(&folder));
    made
}

/// Accepts connections until the server stops.
async fn accept(server: ApiServer, listener: UnixListener, path: PathBuf) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let stop = server.core.stop.clone();
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await;
            (slot, listener.accept().await)
        };
        tokio::select! {
            biased;
            // First: a server that stops accepts no further connection.
            () = stop.cancelled() => break,
            next = next => match next {
                (Ok(slot), Ok((stream, _))) => {
                    let server = server.clone();
                    tokio::spawn(async move {
                        serve(server, stream).await;
                        drop(slot);
                    });
                }
                _ => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    // Best effort: the next server replaces a socket that is left.
    drop(std::fs::remove_file(path));
}

/// Serves a connection.
async fn serve(server: ApiServer, stream: UnixStream) {
    let stop = server.core.stop.clone();
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(routes::answer(&server, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection of the admin socket ended");
        },
    }
}
