//! `migrate`: stored objects in the storage versions of their kinds.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use super::escape::indented;
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
    let kinds = StorageMigration::of(&manager)?.run(client).await?;
    let mut text = printed(&kinds);
    if text.is_empty() {
        text.push_str("the operator installs and prints no definition\n");
    }
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let has_refused = kinds.iter().any(MigratedKind::has_refused);
    Ok(if has_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the lines of all kinds. Refusals have words of the API server, which may quote objects.
fn printed(kinds: &[impl fmt::Display]) -> String {
    kinds.iter().map(|kind| format!("{}\n", indented(kind))).collect()
}

/// The error of a migration without a cluster.
pub(super) fn no_cluster() -> Error {
    let text =
        "migrate needs a cluster, and none is configured: set KUBECONFIG, or give --kubeconfig";
    Error::new(ErrorKind::Config, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_refusal_steer_no_terminal_and_forge_no_line_of_a_kind() {
        let kinds = ["jobs: 2 are refused:\n  a/b: \u{1b}[2J\nsites: all", "sites: all"];
        let text = "jobs: 2 are refused:\n      a/b: \\u{1b}[2J\n    sites: all\nsites: all\n";
        assert_eq!(printed(&kinds), text);
    }
}
