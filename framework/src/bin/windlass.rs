//! Tools for operators that are written with windlass: `windlass import crd.yaml`.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::cli::tool_main()
}
