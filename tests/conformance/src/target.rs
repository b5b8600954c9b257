//! The servers that scripts are played against.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use windlass_apiserver::{ApiServer, ControllerSet};

use crate::connect;
use crate::kubeconfig::{self, Access};

/// Users with tokens that a server needs to know before scripts are played.
pub const TOKENS: &str = "admin-token,admin,1,\"system:masters\"\nreader-token,reader,reader-uid,\"readers,testers\"\nplain-token,plain,,\n";

/// A stream of bytes in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A server.
pub struct Target(Kind);

/// A server in this process, or a server with an address.
enum Kind {
    Embedded(ApiServer),
    Remote(Access, TlsConnector),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Embedded(_) => "Target::Embedded",
            Kind::Remote(..) => "Target::Remote",
        })
    }
}

impl Target {
    /// Starts an embedded server, which does not listen, with the controllers that `record.py`
    /// starts: others make objects that quotas count and lists show.
    ///
    /// # Errors
    /// A controller has another name.
    pub fn embedded() -> Result<Self, String> {
        let names = "namespace,garbagecollector,clusterrole-aggregation";
        let controllers = names.parse::<ControllerSet>();
        let controllers = controllers.map_err(|error| format!("{names}: {error}"))?;
        let builder = ApiServer::builder().seed(1).tokens(TOKENS).controller_set(controllers);
        let builder = builder.service_account_issuer("https://corpus.example");
        Ok(Self(Kind::Embedded(builder.start())))
    }

    /// Returns the server of a kubeconfig.
    ///
    /// # Errors
    /// The text is no kubeconfig with a server and a token.
    pub fn remote(kubeconfig: &str) -> Result<Self, String> {
        Ok(Self(Kind::Remote(kubeconfig::read(kubeconfig)?, connect::connector()?)))
    }

    /// Opens a connection: in memory, or with the token that requests have to carry.
    pub(crate) async fn admin(&self) -> Result<(Box<dyn Stream>, Option<String>), String> {
        match &self.0 {
            Kind::Embedded(_) => Ok((self.anonymous().await?, Some("admin-token".to_owned()))),
            Kind::Remote(access, _) => Ok((self.anonymous().await?, Some(access.token.clone()))),
        }
    }

    /// Opens a connection without credentials.
    pub(crate) async fn anonymous(&self) -> Result<Box<dyn Stream>, String> {
        match &self.0 {
            Kind::Embedded(server) => {
                let stream = server.connect_anonymous();
                Ok(Box::new(stream.map_err(|error| error.to_string())?))
            }
            Kind::Remote(access, connector) => {
                Ok(Box::new(connect::open(connector, &access.address).await?))
            }
        }
    }

    /// Returns the longest time until an awaited answer comes.
    pub(crate) fn patience(&self) -> Duration {
        match &self.0 {
            // The embedded controllers need milliseconds.
            Kind::Embedded(_) => Duration::from_secs(2),
            Kind::Remote(..) => Duration::from_secs(15),
        }
    }

    /// Stops an embedded server.
    pub async fn stop(&self) {
        if let Kind::Embedded(server) = &self.0 {
            server.shutdown().await;
        }
    }
}
