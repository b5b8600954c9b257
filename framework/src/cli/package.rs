//! Package of the program: `--version`, and the first lines of `--help`.

// DESIGN.md, 89: A program passes its package to the command line

use clap::CommandFactory;

use super::options::Options;

/// Name of a program, with version and description of its package.
///
/// [`package!`](crate::package) reads them from the program's `Cargo.toml`;
/// [`App::package`](super::App::package) takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// Name of the program: of the binary, or of the package where there is no binary.
    pub name: &'static str,
    /// Version of the package, such as `1.4.0`: of the printed manifests and of `--version`.
    pub version: &'static str,
    /// Description of the package; empty when `Cargo.toml` has none.
    pub description: &'static str,
}

impl Package {
    /// A program of this name, version and description.
    #[must_use]
    pub const fn new(name: &'static str, version: &'static str, description: &'static str) -> Self {
        Self { name, version, description }
    }
}

/// The [`Package`](crate::cli::Package) of the calling crate, as described in that crate's
/// `Cargo.toml`, with the name of the binary that is being compiled.
///
/// ```
/// let package = windlass::package!();
/// assert!(!package.version.is_empty());
/// ```
#[macro_export]
macro_rules! package {
    () => {
        $crate::cli::Package::new(
            // `CARGO_BIN_NAME` differs per binary of a package.
            match ::core::option_env!("CARGO_BIN_NAME") {
                ::core::option::Option::Some(name) => name,
                ::core::option::Option::None => ::core::env!("CARGO_PKG_NAME"),
            },
            ::core::env!("CARGO_PKG_VERSION"),
            ::core::env!("CARGO_PKG_DESCRIPTION"),
        )
    };
}

/// Builds the command line of a program of that package.
pub(super) fn command(package: Option<Package>) -> clap::Command {
    let command = Options::command();
    let Some(package) = package else {
        // Without a package the framework's version is the only known one.
        let version = concat!("built with windlass ", env!("CARGO_PKG_VERSION"));
        return command.name("operator").version(version);
    };
    let command = command.name(package.name).version(package.version);
    if package.description.is_empty() { command } else { command.about(package.description) }
}
