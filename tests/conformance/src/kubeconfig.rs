//! The few fields of a kubeconfig that a runner needs.

use serde::Deserialize;

/// Address and token of a server.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Host and port.
    pub(crate) address: String,
    /// Bearer token of an administrator.
    pub(crate) token: String,
}

/// A kubeconfig.
#[derive(Deserialize)]
struct File {
    clusters: Vec<Cluster>,
    users: Vec<User>,
}

#[derive(Deserialize)]
struct Cluster {
    cluster: Server,
}

#[derive(Deserialize)]
struct Server {
    server: String,
}

#[derive(Deserialize)]
struct User {
    user: Credentials,
}

#[derive(Deserialize)]
struct Credentials {
    token: Option<String>,
}

/// Returns the access to the first cluster as the first user of a kubeconfig.
pub(crate) fn read(text: &str) -> Result<Access, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let cluster = file.clusters.first().ok_or("the kubeconfig has no cluster")?;
    let user = file.users.first().ok_or("the kubeconfig has no user")?;
    let address = cluster.cluster.server.strip_prefix("https://");
    let address = address.ok_or("the server's URL does not begin with https://")?;
    let token = user.user.token.clone().ok_or("the first user has no token")?;
    Ok(Access { address: address.trim_end_matches('/').to_owned(), token })
}
