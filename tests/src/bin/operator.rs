//! The operator of widgets as a program, for tests of what flags, environment and signals do to one.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass::cli::main(windlass_tests::widget::operator)
}
