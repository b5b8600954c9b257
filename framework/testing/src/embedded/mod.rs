//! Connects a client to an API server in the same process, through memory.

mod webhooks;

pub use self::webhooks::WebhookRoutes;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use windlass_apiserver::ApiServer;

use windlass_client::client::{BoxIo, Client, ClientConfig, Connect};
use windlass_core::environment::Environment;
use windlass_core::error::Error;

/// Opens pipes to an [`ApiServer`], as the administrator or as another user.
pub(crate) struct InProcess {
    /// Server behind the pipes; a handle that keeps the server alive.
    server: ApiServer,
    /// User and groups of the requests; `None` is the administrator.
    user: Option<(String, Vec<String>)>,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Connect for InProcess {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let pipe = match &self.user {
            None => self.server.connect(),
            Some((user, groups)) => {
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                self.server.connect_as(user, &groups)
            }
        };
        Box::pin(async move { Ok(Box::new(pipe?) as BoxIo) })
    }
}

/// Builds a client of `server` whose default namespace is `namespace`.
#[doc(hidden)]
pub fn client(
    server: &ApiServer,
    user: Option<(String, Vec<String>)>,
    namespace: &str,
    environment: Environment,
) -> Result<Client, Error> {
    // The name is never resolved: the connector opens pipes.
    let config = ClientConfig::new("http://in-process.windlass")?.with_namespace(namespace);
    let connector = Arc::new(InProcess { server: server.clone(), user });
    Client::builder().config(config).connector(connector).environment(environment).build()
}
