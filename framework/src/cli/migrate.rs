//! `migrate`: stored objects in the storage versions of their kinds.

use std::io::Write as _;
use std::process::ExitCode;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::manager::{Manager, MigratedKind, StorageMigration};

/// Migrates the kinds of an operator, and prints a line for each, and for each refused object. With
/// refused objects the program fails.
///
/// # Errors
/// Those of [`StorageMigration::run`].
pub(super) async fn run(
    mut manager: Manager,
    client: &Client,
    definitions: Vec<Result<CustomResourceDefinition, Error>>,
) -> Result<ExitCode, Error> {
    for definition in definitions {
        manager = manager.describes(definition?);
    }
    let mut text = String::new();
    let kinds = StorageMigration::of(&manager)?.run(client).await?;
    for kind in &kinds {
        text.push_str(&format!("{kind}\n"));
    }
    if text.is_empty() {
        text.push_str("the operator installs and prints no definition\n");
    }
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let has_refused = kinds.iter().any(MigratedKind::has_refused);
    Ok(if has_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The error of a migration without a cluster.
pub(super) fn no_cluster() -> Error {
    let text =
        "migrate needs a cluster, and none is configured: set KUBECONFIG, or give --kubeconfig";
    Error::new(ErrorKind::Config, text)
}
