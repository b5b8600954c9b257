//! The kubeconfig format: parsing and merging, as by kubectl.
//!
//! Among several files the first with a cluster, user or context of a name decides all of that
//! entry, the first that sets `current-context` decides the current context, and relative paths are
//! relative to the folder of their file. Names are not resolved and no other files are read here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::config_error;
use crate::client::secret::SecretString;
use windlass_core::error::Error;

/// Largest file, in bytes; thousands of clusters fit.
const FILE_LIMIT: usize = 16 << 20;

/// A kubeconfig, or several merged: the first file with an entry of a name decides that entry.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Kubeconfig {
    #[serde(deserialize_with = "or_default")]
    kind: String,
    #[serde(rename = "apiVersion", deserialize_with = "or_default")]
    api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) clusters: Vec<NamedEntry<Cluster>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) users: Vec<NamedEntry<KubeconfigUser>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) contexts: Vec<NamedEntry<Context>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) current_context: String,
    /// Files that were read, for error texts.
    #[serde(skip)]
    pub(super) files: Vec<String>,
}

/// An entry of a list; the key of the content differs from list to list.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(super) struct NamedEntry<T> {
    pub(super) name: String,
    #[serde(
        alias = "cluster",
        alias = "user",
        alias = "context",
        default,
        deserialize_with = "or_default"
    )]
    pub(super) content: T,
    /// Folder of the file, to which paths are relative.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

/// A cluster of a kubeconfig.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    #[serde(deserialize_with = "or_default")]
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: Option<PathBuf>,
    pub(super) certificate_authority_data: Option<SecretString>,
    /// URL of a proxy, which may contain a password.
    pub(super) proxy_url: Option<SecretString>,
    #[serde(deserialize_with = "or_default")]
    pub(super) disable_compression: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) extensions: Vec<Extension>,
}

/// Settings of a cluster for other programs.
#[derive(Deserialize)]
pub(super) struct Extension {
    pub(super) name: String,
    #[serde(default)]
    pub(super) extension: Value,
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A user of a kubeconfig.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct KubeconfigUser {
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_certificate_data: Option<SecretString>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) client_key_data: Option<SecretString>,
    pub(super) token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<SecretString>,
    pub(super) exec: Option<Exec>,
    #[serde(rename = "auth-provider")]
    pub(super) auth_provider: Option<AuthProvider>,
    #[serde(rename = "as")]
    pub(super) impersonate: Option<String>,
    pub(super) as_uid: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) as_groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) as_user_extra: BTreeMap<String, Vec<String>>,
}

/// A context of a kubeconfig.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Context {
    #[serde(deserialize_with = "or_default")]
    pub(super) cluster: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

/// The settings of a credential plugin.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) args: Vec<SecretString>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) env: Vec<ExecEnv>,
    #[serde(default)]
    pub(super) install_hint: Option<String>,
    #[serde(default)]
    pub(super) provide_cluster_info: Option<bool>,
    #[serde(default)]
    pub(super) interactive_mode: Option<String>,
}

/// A variable of a plugin's environment.
#[derive(Debug, Deserialize)]
pub(super) struct ExecEnv {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: SecretString,
}

/// The legacy `auth-provider`; read only for a refusal with a reason.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthProvider {
    pub(super) name: String,
}

/// Deserializes a value; `null` is treated as a missing key.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Kubeconfig {
    /// Reads a file, which is wiped from memory after parsing.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let text = SecretString::read(path, FILE_LIMIT).map_err(|error| {
            let text = format!("cannot read kubeconfig {shown}: {error}; correct the path");
            config_error(text).because(error)
        })?;
        // Absolute, so that plugins and certificates do not depend on a later working directory.
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        Self::parse(text.expose(), &shown, &folder)
    }

    /// Parses the text of a kubeconfig; `file` is for error texts.
    pub(super) fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Error> {
        let mut read = if text.trim().is_empty() {
            Self::default()
        } else {
            // The parser's message may quote the file, which may contain tokens: only the position
            // is reported.
            serde_saphyr::from_str::<Option<Self>>(text)
                .map_err(|error| {
                    let place = error.location().map_or_else(String::new, |at| {
                        format!(" near line {}, column {}", at.line(), at.column())
                    });
                    config_error(format!(
                        "{file} is not a kubeconfig: it does not parse{place}; `kubectl config view \
                         --kubeconfig {file}` prints kubectl's reading of the file"
                    ))
                })?
                .unwrap_or_default()
        };
        if !matches!(read.kind.as_str(), "" | "Config") {
            let kind = &read.kind;
            return Err(config_error(format!("{file} is not a kubeconfig: its kind is `{kind}`")));
        }
        if !matches!(read.api_version.as_str(), "" | "v1") {
            let version = &read.api_version;
            let text =
                format!("{file} is not a kubeconfig that is known: its apiVersion is {version:?}");
            return Err(config_error(format!("{text}; the only one is `v1`")));
        }
        once(file, "clusters", &read.clusters)?;
        once(file, "users", &read.users)?;
        once(file, "contexts", &read.contexts)?;
        read.clusters.iter_mut().for_each(|entry| folder.clone_into(&mut entry.folder));
        read.users.iter_mut().for_each(|entry| folder.clone_into(&mut entry.folder));
        read.files.push(file.to_owned());
        Ok(read)
    }

    /// Returns whether the file describes no cluster.
    pub(super) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.clusters.is_empty() && self.current_context.is_empty()
    }

    /// Adds the entries of `later` whose names are missing here.
    pub(super) fn merge(&mut self, later: Self) {
        extend(&mut self.clusters, later.clusters);
        extend(&mut self.users, later.users);
        extend(&mut self.contexts, later.contexts);
        if self.current_context.is_empty() {
            self.current_context = later.current_context;
        }
        self.files.extend(later.files);
    }
}

/// Adds the entries of `later` whose names are missing.
fn extend<T>(entries: &mut Vec<NamedEntry<T>>, later: Vec<NamedEntry<T>>) {
    for entry in later {
        if find(entries, &entry.name).is_none() {
            entries.push(entry);
        }
    }
}

/// Returns the entry of a name.
pub(super) fn find<'a, T>(entries: &'a [NamedEntry<T>], name: &str) -> Option<&'a NamedEntry<T>> {
    entries.iter().find(|entry| entry.name == name)
}

/// Fails when two entries of a list have the same name, because either could be meant.
fn once<T>(file: &str, list: &str, entries: &[NamedEntry<T>]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    match entries.iter().find(|entry| !seen.insert(entry.name.as_str())) {
        None => Ok(()),
        Some(entry) => Err(config_error(format!(
            "{file} has two entries named {:?} under `{list}`; rename or remove one",
            entry.name
        ))),
    }
}
