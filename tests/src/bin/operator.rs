//! The operator of widgets as a program, for tests of flags, environment and signals.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::cli::main(windlass_tests::widget::operator)
}
