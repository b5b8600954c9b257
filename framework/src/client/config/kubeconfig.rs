//! The kubeconfig format: parsed, merged, and one context of it resolved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{ClientConfig, config_error, impersonation};
use crate::client::auth::AuthSource;
use crate::client::exec::ExecPlugin;
use crate::client::secret::Secret;
use crate::client::tls::Pem;
use crate::error::Error;

/// One kubeconfig, or several merged: the first file that names something decides it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Kubeconfig {
    #[serde(deserialize_with = "or_default")]
    clusters: Vec<Named<Cluster>>,
    #[serde(deserialize_with = "or_default")]
    users: Vec<Named<User>>,
    #[serde(deserialize_with = "or_default")]
    contexts: Vec<Named<Context>>,
    #[serde(deserialize_with = "or_default")]
    current_context: String,
    /// Files it was read from, for error texts.
    #[serde(skip)]
    files: Vec<String>,
}

/// An entry of a list; each list calls its content by another name.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
struct Named<T> {
    name: String,
    #[serde(
        alias = "cluster",
        alias = "user",
        alias = "context",
        default,
        deserialize_with = "or_default"
    )]
    content: T,
    /// Folder of the file; relative paths count from it.
    #[serde(skip)]
    folder: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    tls_server_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    insecure_skip_tls_verify: bool,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<Secret>,
    proxy_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<Secret>,
    client_key: Option<PathBuf>,
    client_key_data: Option<Secret>,
    token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<Secret>,
    exec: Option<Exec>,
    #[serde(rename = "auth-provider")]
    auth_provider: Option<AuthProvider>,
    #[serde(rename = "as")]
    impersonate: Option<String>,
    as_uid: Option<String>,
    #[serde(deserialize_with = "or_default")]
    as_groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    as_user_extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Context {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exec {
    #[serde(default)]
    api_version: String,
    command: String,
    #[serde(default, deserialize_with = "or_default")]
    args: Vec<Secret>,
    #[serde(default, deserialize_with = "or_default")]
    env: Vec<ExecEnv>,
    #[serde(default)]
    install_hint: Option<String>,
    #[serde(default)]
    provide_cluster_info: Option<bool>,
    #[serde(default)]
    interactive_mode: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ExecEnv {
    name: String,
    value: Secret,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuthProvider {
    name: String,
}

/// `key: null` and a missing key are the same.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Kubeconfig {
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            config_error(format!("cannot read kubeconfig {shown}")).because(error)
        })?;
        // Credentials plugins and certificates must not depend on where we are later.
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        Self::parse(&text, &shown, &folder)
    }

    pub(super) fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Error> {
        let mut read = if text.trim().is_empty() {
            Self::default()
        } else {
            // The parser's text may quote the file, which may hold tokens: only the place is told.
            serde_saphyr::from_str::<Option<Self>>(text)
                .map_err(|error| {
                    let place = error.location().map_or_else(String::new, |at| {
                        format!(" near line {}, column {}", at.line(), at.column())
                    });
                    config_error(format!("{file} is no kubeconfig: it does not parse{place}"))
                })?
                .unwrap_or_default()
        };
        read.clusters.iter_mut().for_each(|entry| folder.clone_into(&mut entry.folder));
        read.users.iter_mut().for_each(|entry| folder.clone_into(&mut entry.folder));
        read.files.push(file.to_owned());
        Ok(read)
    }

    /// Says nothing about any cluster.
    pub(super) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.clusters.is_empty() && self.current_context.is_empty()
    }

    /// Adds what `later` names and this does not.
    pub(super) fn merge(&mut self, later: Self) {
        extend(&mut self.clusters, later.clusters);
        extend(&mut self.users, later.users);
        extend(&mut self.contexts, later.contexts);
        if self.current_context.is_empty() {
            self.current_context = later.current_context;
        }
        self.files.extend(later.files);
    }

    /// What `context` (or the current one) says.
    pub(super) fn resolve(&self, context: Option<&str>) -> Result<ClientConfig, Error> {
        let files = self.files.join(", ");
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() {
            return Err(config_error(format!(
                "{files} names no current context; run `kubectl config use-context NAME` with one \
                 of: {}",
                names(&self.contexts)
            )));
        }
        let context = find(&self.contexts, name).ok_or_else(|| {
            config_error(format!(
                "{files} has no context \"{name}\"; it has: {}",
                names(&self.contexts)
            ))
        })?;
        let origin = format!("context \"{name}\" of {files}");
        let context = &context.content;
        let cluster = find(&self.clusters, &context.cluster).ok_or_else(|| {
            config_error(format!("{origin}: there is no cluster \"{}\"", context.cluster))
        })?;
        let mut config = cluster.resolve(&origin)?;
        if let Some(namespace) = context.namespace.as_ref().filter(|name| !name.is_empty()) {
            config.namespace.clone_from(namespace);
        }
        if !context.user.is_empty() {
            let user = find(&self.users, &context.user).ok_or_else(|| {
                config_error(format!("{origin}: there is no user \"{}\"", context.user))
            })?;
            user.resolve(&cluster.content, &mut config)?;
        }
        config.check()?;
        Ok(config)
    }
}

fn extend<T>(entries: &mut Vec<Named<T>>, later: Vec<Named<T>>) {
    for entry in later {
        if find(entries, &entry.name).is_none() {
            entries.push(entry);
        }
    }
}

fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a Named<T>> {
    entries.iter().find(|entry| entry.name == name)
}

fn names<T>(entries: &[Named<T>]) -> String {
    if entries.is_empty() {
        return "(none)".to_owned();
    }
    entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl<T> Named<T> {
    /// Inline data wins over a file.
    fn pem(
        &self,
        data: Option<&Secret>,
        file: Option<&PathBuf>,
        what: &str,
    ) -> Result<Option<Pem>, Error> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let packed: String = data.expose().split_whitespace().collect();
            let text = STANDARD.decode(packed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.ok_or_else(|| {
                config_error(format!("{what}-data of \"{}\" is no base64 of PEM text", self.name))
            })?;
            return Ok(Some(Pem::Inline(text.into())));
        }
        let file = file.filter(|file| !file.as_os_str().is_empty());
        Ok(file.map(|file| Pem::File(self.folder.join(file))))
    }
}

/// A URL without its user and password, whatever else it is.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

impl Named<Cluster> {
    fn resolve(&self, origin: &str) -> Result<ClientConfig, Error> {
        let cluster = &self.content;
        let name = &self.name;
        if cluster.server.is_empty() {
            return Err(config_error(format!("{origin}: cluster \"{name}\" names no server")));
        }
        if let Some(proxy) = cluster.proxy_url.as_ref().filter(|proxy| !proxy.is_empty()) {
            let proxy = without_user(proxy);
            return Err(config_error(format!(
                "{origin}: cluster \"{name}\" asks for the proxy {proxy}, and proxies are not \
                 supported"
            )));
        }
        let mut config = ClientConfig::at(&cluster.server, origin)?;
        config.tls.ca = self.pem(
            cluster.certificate_authority_data.as_ref(),
            cluster.certificate_authority.as_ref(),
            "certificate-authority",
        )?;
        config.tls.server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
        config.tls.insecure = cluster.insecure_skip_tls_verify;
        if config.tls.insecure && config.tls.ca.is_some() {
            return Err(config_error(format!(
                "{origin}: cluster \"{name}\" has a certificate-authority and also \
                 insecure-skip-tls-verify; remove one"
            )));
        }
        Ok(config)
    }
}

impl Named<User> {
    fn resolve(&self, cluster: &Cluster, config: &mut ClientConfig) -> Result<(), Error> {
        let user = &self.content;
        let name = &self.name;
        let certificate = self.pem(
            user.client_certificate_data.as_ref(),
            user.client_certificate.as_ref(),
            "client-certificate",
        )?;
        let key =
            self.pem(user.client_key_data.as_ref(), user.client_key.as_ref(), "client-key")?;
        config.tls.identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(config_error(format!(
                    "{}: user \"{name}\" has a client certificate or a client key without the other",
                    config.origin
                )));
            }
        };
        config.auth = self.auth(cluster, config)?;
        self.impersonate(config)
    }

    fn auth(&self, cluster: &Cluster, config: &ClientConfig) -> Result<AuthSource, Error> {
        let user = &self.content;
        if let Some(file) = user.token_file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            return Ok(AuthSource::TokenFile(self.folder.join(file)));
        }
        if let Some(token) = user.token.as_ref().filter(|token| !token.is_empty()) {
            return Ok(AuthSource::Token(token.clone()));
        }
        if let Some(exec) = &user.exec {
            return self.plugin(exec, cluster, config).map(|p| AuthSource::Exec(Arc::new(p)));
        }
        if let Some(username) = user.username.as_ref().filter(|username| !username.is_empty()) {
            return Ok(AuthSource::Basic(
                username.clone(),
                user.password.clone().unwrap_or_default(),
            ));
        }
        if let Some(provider) = &user.auth_provider {
            return Err(config_error(format!(
                "{}: user \"{}\" uses the auth-provider \"{}\", which Kubernetes has removed; use \
                 an exec plugin",
                config.origin, self.name, provider.name
            )));
        }
        Ok(AuthSource::None)
    }

    fn plugin(
        &self,
        exec: &Exec,
        cluster: &Cluster,
        config: &ClientConfig,
    ) -> Result<ExecPlugin, Error> {
        let refuse = |why: &str| {
            let (origin, name) = (&config.origin, &self.name);
            Err(config_error(format!("{origin}: the exec plugin of user \"{name}\" {why}")))
        };
        let known = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
        if !known.contains(&exec.api_version.as_str()) {
            return refuse("must have the apiVersion client.authentication.k8s.io/v1 (or v1beta1)");
        }
        if exec.command.is_empty() {
            return refuse("names no command");
        }
        if exec.interactive_mode.as_deref() == Some("Always") {
            return refuse(
                "wants a terminal (interactiveMode: Always), which operators do not have",
            );
        }
        // A path is relative to its file; a bare name is looked for in PATH.
        let command = if exec.command.contains('/') {
            self.folder.join(&exec.command)
        } else {
            PathBuf::from(&exec.command)
        };
        Ok(ExecPlugin {
            command,
            args: exec.args.clone(),
            env: exec.env.iter().map(|env| (env.name.clone(), env.value.clone())).collect(),
            api_version: exec.api_version.clone(),
            cluster: exec.provide_cluster_info.unwrap_or_default().then(|| cluster_info(cluster)),
            install_hint: exec.install_hint.clone().unwrap_or_default(),
        })
    }

    fn impersonate(&self, config: &mut ClientConfig) -> Result<(), Error> {
        let user = &self.content;
        let mut pairs = Vec::new();
        pairs.extend(user.impersonate.iter().map(|who| ("impersonate-user".to_owned(), who)));
        pairs.extend(user.as_uid.iter().map(|uid| ("impersonate-uid".to_owned(), uid)));
        pairs.extend(user.as_groups.iter().map(|group| ("impersonate-group".to_owned(), group)));
        for (key, values) in &user.as_user_extra {
            let header = format!("impersonate-extra-{key}");
            pairs.extend(values.iter().map(|value| (header.clone(), value)));
        }
        for (name, value) in pairs {
            let (name, value) = impersonation(&name, value)?;
            config.headers.append(name, value);
        }
        Ok(())
    }
}

/// `spec.cluster` of what a plugin that asks for it is told.
fn cluster_info(cluster: &Cluster) -> Value {
    let mut info = json!({ "server": cluster.server, "config": null });
    if let Some(name) = &cluster.tls_server_name {
        info["tls-server-name"] = json!(name);
    }
    if cluster.insecure_skip_tls_verify {
        info["insecure-skip-tls-verify"] = json!(true);
    }
    if let Some(data) = &cluster.certificate_authority_data {
        info["certificate-authority-data"] = json!(data.expose());
    }
    info
}
