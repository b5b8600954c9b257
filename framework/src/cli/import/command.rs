//! Command line of the program `windlass`.

use std::error::Error as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use super::{ImportOptions, import_definitions};
use crate::cli::diff::read;
use crate::cli::escape::escaped;
use windlass_core::error::Error;
use windlass_runtime::manager::exit_code;

/// Tools for operators that are written with windlass
#[derive(Debug, Parser)]
#[command(name = "windlass", version)]
struct Tool {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Print Rust types for existing custom resource definitions
    ///
    /// The types derive the definition that was imported; differences are comments in the source
    /// and warnings on the standard error.
    Import(Import),
}

#[derive(Args, Debug)]
struct Import {
    /// Definitions as YAML, in any number of documents, such as the output of `kubectl get crd -o
    /// yaml`; `-` reads the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Name of one definition, such as sites.example.dev; default: all of the file, each as a
    /// module
    #[arg(long)]
    name: Option<String>,

    /// Version of the kind; default: the one in which objects are stored
    #[arg(long)]
    version: Option<String>,

    /// Derive exactly the imported schema: optional fields refuse null, and numbers have a format
    /// only if the schema has one
    #[arg(long)]
    exact: bool,
}

/// Runs the program `windlass`: `windlass import crd.yaml`.
#[doc(hidden)]
pub fn main() -> ExitCode {
    let ImportCommand::Import(import) = Tool::parse().command;
    match run(import) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("error: {}", escaped(&error));
            let mut cause = error.source();
            while let Some(source) = cause {
                for line in source.to_string().lines() {
                    text.push_str(&format!("\n  {}", escaped(line)));
                }
                cause = source.source();
            }
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Prints the types to the standard output, and the warnings to the standard error.
fn run(import: Import) -> Result<(), Error> {
    let Import { file, name, version, exact } = import;
    let output = import_definitions(&read(&file)?, &ImportOptions { name, version, exact })?;
    for warning in &output.warnings {
        let _ = writeln!(std::io::stderr(), "warning: {}", escaped(warning));
    }
    // A closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(output.source.as_bytes());
    Ok(())
}
