//! Conversion of a context of a kubeconfig into a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::format::{Cluster, Exec, Kubeconfig, KubeconfigUser, NamedEntry, find};
use super::{ClientConfig, Impersonation, config_error, parse_server};
use crate::client::auth::{AuthSource, ExecPlugin, InteractiveMode, V1, V1BETA1};
use crate::client::secret::SecretString;
use crate::client::transport::{Pem, Proxy, ProxyChoice};
use windlass_core::error::Error;

/// Name of the cluster extension with the settings of credential plugins.
const PLUGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

impl Kubeconfig {
    /// Returns the configuration of `context`, or of the current context.
    pub(super) fn resolve(&self, context: Option<&str>) -> Result<ClientConfig, Error> {
        let files = self.files.join(", ");
        let name = context.unwrap_or(&self.current_context);
        if name.is_empty() && self.contexts.is_empty() {
            return Err(config_error(format!(
                "{files} has no contexts; is it the right file? `kubectl config set-context` writes \
                 one, and the cluster's administrator can give you a kubeconfig"
            )));
        }
        if name.is_empty() {
            return Err(config_error(format!(
                "{files} names no current context; run `kubectl config use-context NAME` with one \
                 of: {}",
                names(&self.contexts)
            )));
        }
        let context = find(&self.contexts, name).ok_or_else(|| {
            config_error(format!(
                "{files} has no context {name:?}; it has: {}",
                names(&self.contexts)
            ))
        })?;
        let origin = format!("context {name:?} of {files}");
        let context = &context.content;
        let cluster = find(&self.clusters, &context.cluster).ok_or_else(|| {
            let known = names(&self.clusters);
            let text = format!("{origin}: there is no cluster {:?}", context.cluster);
            config_error(format!("{text}; correct the context's `cluster` to one of: {known}"))
        })?;
        let mut config = cluster.resolve(&origin)?;
        if let Some(namespace) = context.namespace.as_ref().filter(|name| !name.is_empty()) {
            config.namespace.clone_from(namespace);
        }
        if !context.user.is_empty() {
            let user = find(&self.users, &context.user).ok_or_else(|| {
                let known = names(&self.users);
                let text = format!("{origin}: there is no user {:?}", context.user);
                config_error(format!("{text}; correct the context's `user` to one of: {known}"))
            })?;
            user.resolve(&cluster.content, &mut config)?;
        }
        // As kubectl: an address without a scheme means `https` where TLS is configured.
        let server = &cluster.content.server;
        let tls = &config.tls;
        if !server.contains("://") && (tls.ca.is_some() || tls.insecure || tls.identity.is_some()) {
            config.server = parse_server(&format!("https://{server}"), &origin)?;
        }
        config.check()?;
        Ok(config)
    }
}

/// Returns the names of `entries` for error texts.
fn names<T>(entries: &[NamedEntry<T>]) -> String {
    if entries.is_empty() {
        return "(none)".to_owned();
    }
    // Escaped: text from a file must not control the user's terminal.
    let names = entries.iter().map(|entry| entry.name.escape_debug().to_string());
    names.collect::<Vec<_>>().join(", ")
}

impl<T> NamedEntry<T> {
    /// Returns PEM text; inline data takes precedence over a file.
    fn pem(
        &self,
        data: Option<&SecretString>,
        file: Option<&PathBuf>,
        what: &str,
        origin: &str,
    ) -> Result<Option<Pem>, Error> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            // YAML may fold long base64 over several lines.
            let packed: SecretString =
                data.expose().split_whitespace().collect::<Vec<_>>().concat().into();
            let text = STANDARD.decode(packed.expose()).ok();
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
                let name = &self.name;
                config_error(format!(
                    "{origin}: {what}-data of {name:?} is not base64 of PEM text; write the output \
                     of `base64 -w0 FILE` there, or name the file under `{what}`"
                ))
            })?;
            return Ok(Some(Pem::Inline(text.into())));
        }
        let file = file.filter(|file| !file.as_os_str().is_empty());
        Ok(file.map(|file| Pem::File(self.folder.join(file))))
    }
}

impl NamedEntry<Cluster> {
    fn resolve(&self, origin: &str) -> Result<ClientConfig, Error> {
        let cluster = &self.content;
        let name = &self.name;
        if cluster.server.is_empty() {
            return Err(config_error(format!(
                "{origin}: cluster {name:?} names no server; write its address as `server`"
            )));
        }
        let mut config = ClientConfig::at(&cluster.server, origin)?;
        if let Some(url) = cluster.proxy_url.as_ref().filter(|url| !url.is_empty()) {
            let named_by = format!("proxy-url of {origin}");
            let proxy = Proxy::parse(url.expose(), &named_by).map_err(|why| {
                config_error(format!("{origin}: the proxy-url of cluster {name:?} {why}"))
            })?;
            config.proxy = ProxyChoice::Through(Arc::new(proxy));
        }
        config.compression = !cluster.disable_compression;
        config.tls.ca = self.pem(
            cluster.certificate_authority_data.as_ref(),
            cluster.certificate_authority.as_ref(),
            "certificate-authority",
            origin,
        )?;
        config.tls.server_name = cluster.tls_server_name.clone().filter(|name| !name.is_empty());
        config.tls.insecure = cluster.insecure_skip_tls_verify;
        if config.tls.insecure && config.tls.ca.is_some() {
            return Err(config_error(format!(
                "{origin}: cluster {name:?} has a certificate-authority and also \
                 insecure-skip-tls-verify; remove one"
            )));
        }
        Ok(config)
    }
}

impl NamedEntry<KubeconfigUser> {
    fn resolve(&self, cluster: &Cluster, config: &mut ClientConfig) -> Result<(), Error> {
        let user = &self.content;
        let (name, origin) = (&self.name, &config.origin);
        let certificate = self.pem(
            user.client_certificate_data.as_ref(),
            user.client_certificate.as_ref(),
            "client-certificate",
            origin,
        )?;
        let data = user.client_key_data.as_ref();
        let key = self.pem(data, user.client_key.as_ref(), "client-key", origin)?;
        config.tls.identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(config_error(format!(
                    "{origin}: user {name:?} has a client certificate or a client key without \
                     the other; add it"
                )));
            }
        };
        config.auth = self.auth(cluster, config)?;
        self.impersonate(config)
    }

    /// Returns the source of the credentials. As kubectl: a token before a plugin, and a plugin
    /// only without other credentials.
    fn auth(&self, cluster: &Cluster, config: &ClientConfig) -> Result<AuthSource, Error> {
        let user = &self.content;
        let token = user.token.clone().filter(|token| !token.is_empty());
        let username = user.username.as_ref().filter(|username| !username.is_empty());
        if token.is_some() && username.is_some() {
            return Err(config_error(format!(
                "{}: user {:?} has a token and also a username; remove one",
                config.origin, self.name
            )));
        }
        if let Some(file) = user.token_file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            return Ok(AuthSource::TokenFile(self.folder.join(file), token));
        }
        if let Some(token) = token {
            return Ok(AuthSource::Token(token));
        }
        if let Some(username) = username {
            let password = user.password.clone().unwrap_or_default();
            return Ok(AuthSource::Basic(username.clone(), password));
        }
        if config.tls.identity.is_some() {
            return Ok(AuthSource::None);
        }
        if let Some(exec) = &user.exec {
            return self.plugin(exec, cluster, config).map(|p| AuthSource::Exec(Arc::new(p)));
        }
        if let Some(provider) = &user.auth_provider {
            return Err(config_error(format!(
                "{}: user {:?} uses the auth-provider {:?}, which Kubernetes has removed; use \
                 an exec plugin",
                config.origin, self.name, provider.name
            )));
        }
        Ok(AuthSource::None)
    }

    /// Converts the entry `exec`.
    fn plugin(
        &self,
        exec: &Exec,
        cluster: &Cluster,
        config: &ClientConfig,
    ) -> Result<ExecPlugin, Error> {
        let refuse = |why: &str| {
            let (origin, name) = (&config.origin, &self.name);
            config_error(format!("{origin}: the exec plugin of user {name:?} {why}"))
        };
        let api_version = [V1, V1BETA1].into_iter().find(|known| *known == exec.api_version);
        let api_version = api_version.ok_or_else(|| {
            refuse("must have the apiVersion client.authentication.k8s.io/v1 (or v1beta1)")
        })?;
        if exec.command.is_empty() {
            return Err(refuse("names no command; write the program's name"));
        }
        if exec.env.iter().any(|env| env.name.is_empty()) {
            return Err(refuse("has an entry of `env` without a name"));
        }
        let interactive = match exec.interactive_mode.as_deref().unwrap_or_default() {
            "Never" => InteractiveMode::Never,
            "IfAvailable" => InteractiveMode::IfAvailable,
            "Always" => InteractiveMode::Always,
            // The default of v1beta1; v1 requires the field.
            "" if api_version == V1BETA1 => InteractiveMode::IfAvailable,
            "" => {
                return Err(refuse("has no interactiveMode; write Never, IfAvailable or Always"));
            }
            _ => {
                let why = "has an unknown interactiveMode; write Never, IfAvailable or Always";
                return Err(refuse(why));
            }
        };
        // A path is relative to the file; a bare name is searched in `PATH`.
        let command = if exec.command.contains('/') {
            self.folder.join(&exec.command).components().collect()
        } else {
            PathBuf::from(&exec.command)
        };
        let extension = cluster.extensions.iter().find(|found| found.name == PLUGIN_EXTENSION);
        Ok(ExecPlugin {
            args: exec.args.clone(),
            env: exec.env.iter().map(|env| (env.name.clone(), env.value.clone())).collect(),
            api_version,
            interactive,
            wants_cluster: exec.provide_cluster_info.unwrap_or_default(),
            extension: extension.map(|found| found.extension.clone()).unwrap_or_default(),
            install_hint: exec.install_hint.clone().unwrap_or_default(),
            ..ExecPlugin::new(command)
        })
    }

    /// Sets the headers of an impersonation.
    fn impersonate(&self, config: &mut ClientConfig) -> Result<(), Error> {
        let user = &self.content;
        let rest = user.as_uid.as_ref().is_some_and(|uid| !uid.is_empty())
            || !user.as_groups.is_empty()
            || !user.as_user_extra.is_empty();
        let Some(who) = user.impersonate.as_ref().filter(|who| !who.is_empty()) else {
            if rest {
                return Err(config_error(format!(
                    "{}: user {:?} impersonates a uid, groups or extra without a user; write it \
                     as `as`",
                    config.origin, self.name
                )));
            }
            return Ok(());
        };
        let mut who = Impersonation::user(who).groups(user.as_groups.iter().cloned());
        if let Some(uid) = user.as_uid.as_ref().filter(|uid| !uid.is_empty()) {
            who = who.uid(uid);
        }
        for (key, values) in &user.as_user_extra {
            who = who.extra(key, values.iter().cloned());
        }
        config.headers = who.headers(&config.origin)?;
        Ok(())
    }
}
