//! The kubeconfig format: parsed and merged, as kubectl does it.
//!
//! Of several files the first that names a cluster, user or context decides all of it, the first that
//! sets `current-context` decides that, and relative paths count from the folder of the file that
//! holds them. Nothing here is resolved or read further.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::config_error;
use crate::client::secret::Secret;
use crate::error::Error;

/// Largest file; clusters by the thousand fit.
const FILE_LIMIT: usize = 16 << 20;

/// One kubeconfig, or several merged: the first file that names something decides it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Kubeconfig {
    #[serde(deserialize_with = "or_default")]
    kind: String,
    #[serde(rename = "apiVersion", deserialize_with = "or_default")]
    api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) clusters: Vec<Named<Cluster>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) users: Vec<Named<User>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) contexts: Vec<Named<Context>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) current_context: String,
    /// Files it was read from, for error texts.
    #[serde(skip)]
    pub(super) files: Vec<String>,
}

/// An entry of a list; each list calls its content by another name.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub(super) struct Named<T> {
    pub(super) name: String,
    #[serde(
        alias = "cluster",
        alias = "user",
        alias = "context",
        default,
        deserialize_with = "or_default"
    )]
    pub(super) content: T,
    /// Folder of the file; relative paths count from it.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    #[serde(deserialize_with = "or_default")]
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: Option<PathBuf>,
    pub(super) certificate_authority_data: Option<Secret>,
    /// May hold a password.
    pub(super) proxy_url: Option<Secret>,
    #[serde(deserialize_with = "or_default")]
    pub(super) disable_compression: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) extensions: Vec<Extension>,
}

/// Somebody else's settings of a cluster.
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    pub(super) client_certificate: Option<PathBuf>,
    pub(super) client_certificate_data: Option<Secret>,
    pub(super) client_key: Option<PathBuf>,
    pub(super) client_key_data: Option<Secret>,
    pub(super) token: Option<Secret>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<PathBuf>,
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
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

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Context {
    #[serde(deserialize_with = "or_default")]
    pub(super) cluster: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) user: String,
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_version: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) args: Vec<Secret>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) env: Vec<ExecEnv>,
    #[serde(default)]
    pub(super) install_hint: Option<String>,
    #[serde(default)]
    pub(super) provide_cluster_info: Option<bool>,
    #[serde(default)]
    pub(super) interactive_mode: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecEnv {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: Secret,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthProvider {
    pub(super) name: String,
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
        let text = Secret::read(path, FILE_LIMIT).map_err(|error| {
            let text = format!("cannot read kubeconfig {shown}: {error}; correct the path");
            config_error(text).because(error)
        })?;
        // Credentials plugins and certificates must not depend on where we are later.
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        Self::parse(text.expose(), &shown, &folder)
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
                    config_error(format!(
                        "{file} is no kubeconfig: it does not parse{place}; `kubectl config view \
                         --kubeconfig {file}` says what kubectl thinks of it"
                    ))
                })?
                .unwrap_or_default()
        };
        if !matches!(read.kind.as_str(), "" | "Config") {
            let kind = &read.kind;
            return Err(config_error(format!("{file} is no kubeconfig: its kind is `{kind}`")));
        }
        if !matches!(read.api_version.as_str(), "" | "v1") {
            let version = &read.api_version;
            let text =
                format!("{file} is no kubeconfig that is known: its apiVersion is {version:?}");
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
}

fn extend<T>(entries: &mut Vec<Named<T>>, later: Vec<Named<T>>) {
    for entry in later {
        if find(entries, &entry.name).is_none() {
            entries.push(entry);
        }
    }
}

pub(super) fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a Named<T>> {
    entries.iter().find(|entry| entry.name == name)
}

/// One file names each thing once: which of two would count?
fn once<T>(file: &str, list: &str, entries: &[Named<T>]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    match entries.iter().find(|entry| !seen.insert(entry.name.as_str())) {
        None => Ok(()),
        Some(entry) => Err(config_error(format!(
            "{file} has two entries named {:?} under `{list}`; rename or remove one",
            entry.name
        ))),
    }
}
