//! Servers that keep their data in a file, and continue from that file after a restart.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::auth::accounts::Issuer;
use crate::crds;
use crate::data::{Credentials, DataFile, Writer};
use crate::seed::Rng;
use crate::server::{ApiServer, Builder, ServerDataFile, new_token};
use crate::storage::{Backup, Journal};
use crate::tls::PemIdentity;
use crate::verbs::delete;

/// Certificate of the authority, in PEM.
const AUTHORITY: &str = "authority-certificate";
/// Key of the authority, in PEM.
const AUTHORITY_KEY: &str = "authority-key";
/// Token of the administrator.
const TOKEN: &str = "administrator-token";
/// Key of service accounts' tokens, in PKCS #8.
const ACCOUNTS_KEY: &str = "service-accounts-key";

impl Builder {
    /// Starts the server inside the current tokio runtime on a data file, which is created if
    /// missing (readable by the owner only). An empty file, as made by `mktemp`, counts as new and
    /// keeps the mode; any other file that is no data file is refused.
    ///
    /// Objects, versions, definitions, the keys of tokens and the certificates' authority are those
    /// of the file. A write is answered, and shown to readers and watches, once in the file; writes
    /// that come together share one commit. Histories are not kept: a watch from a version of
    /// before the restart is answered 410, as by a kube-apiserver whose watch cache is new.
    ///
    /// [`ApiServer::shutdown`] closes the file. If the file cannot be written any more, the server
    /// stops ([`ApiServer::stopped`]).
    ///
    /// # Errors
    /// The file cannot be opened, is open in another server, is damaged, or no data file.
    pub async fn start_on(self, path: impl AsRef<Path>) -> io::Result<ApiServer> {
        let path = path.as_ref().to_owned();
        let mut file = tokio::task::spawn_blocking(move || open(&path)).await??;
        let state = file.state.take();
        let core = self.core(state.as_ref().map(Backup::revision));
        let (authority, token, key) = credentials(&file.credentials)?;
        if !core.issuer.use_key(key) {
            return Err(io::Error::other("the data file's key of service accounts is damaged"));
        }
        let journal = Arc::new(Journal::default());
        core.store.load(&state.unwrap_or_else(|| core.store.backup()), journal.clone());
        let stop = core.stop.clone();
        let writer = Writer::start(file, journal, move || stop.cancel())?;
        crds::reload(&core, delete::instances);
        let mut server = self.run(core, false);
        server.data_file = Some(Arc::new(ServerDataFile { authority, token, writer }));
        server.flush().await?;
        Ok(server)
    }
}

/// Opens a data file, and gives a new file credentials. Blocks the thread.
fn open(path: &Path) -> io::Result<DataFile> {
    let mut file = DataFile::open(path)?;
    if file.credentials.is_empty() {
        let authority = PemIdentity::generate_authority()?;
        let key = Issuer::new_key();
        let key = key.ok_or_else(|| io::Error::other("the system gives no randomness"))?;
        let kept = [
            (AUTHORITY, authority.certificate.into_bytes()),
            (AUTHORITY_KEY, authority.key.into_bytes()),
            (TOKEN, new_token(&Rng::system()).into_bytes()),
            (ACCOUNTS_KEY, key),
        ];
        file.keep(kept.map(|(name, bytes)| (name.to_owned(), bytes)).into())?;
    }
    Ok(file)
}

/// Returns the authority, the administrator's token and the key of service accounts.
fn credentials(kept: &Credentials) -> io::Result<(PemIdentity, String, &[u8])> {
    let bytes = |name: &str| {
        let why = || io::Error::other(format!("the data file lacks its credential {name}"));
        kept.get(name).ok_or_else(why)
    };
    let text = |name: &str| {
        let text = String::from_utf8(bytes(name)?.clone());
        text.map_err(|_| io::Error::other(format!("the data file's credential {name} is not text")))
    };
    let authority = PemIdentity { certificate: text(AUTHORITY)?, key: text(AUTHORITY_KEY)? };
    Ok((authority, text(TOKEN)?, bytes(ACCOUNTS_KEY)?))
}
