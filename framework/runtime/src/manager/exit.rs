//! The end of an operator, and the exit code of the process.
//!
//! A Pod's `lastState.terminated.exitCode` is often the only trace of a process, so the number
//! points to the cause: the operator's settings, the rights, or the API server. The numbers of
//! errors are those of BSD's `sysexits.h`.

use std::process::{ExitCode, Termination};

use windlass_core::error::{Error, ErrorKind};

/// Outcome of an operator that ended without an error.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::manager::Exit;
///
/// assert_eq!(Exit::Drained.code(), 0);
/// assert_eq!(Exit::Cut.code(), 2);
/// ```
///
/// May be the return type of `main`, as this type implements [`Termination`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All work ended normally. Exit code 0.
    Drained,
    /// Some work was cut off: the drain time ran out, or a second signal came. Exit code 2.
    Cut,
}

impl Exit {
    /// Returns the process's exit code: 0 or 2.
    pub fn code(self) -> u8 {
        match self {
            Self::Drained => 0,
            Self::Cut => 2,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

/// Returns the exit code of a process that ends with `error`; `cli::main` (feature `cli`) uses this
/// code.
///
/// | code | meaning |
/// |---|---|
/// | 64 | the program or the command line asks for something that makes no sense |
/// | 65 | an answer of the API server does not decode |
/// | 69 | the API server cannot be reached, or is in trouble |
/// | 77 | credentials or rights are missing |
/// | 78 | settings, or a definition, that cannot work |
/// | 1 | anything else |
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::manager::exit_code;
/// use windlass::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Forbidden, "the service account may not list websites");
/// assert_eq!(exit_code(&error), 77);
/// ```
pub fn exit_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Usage | ErrorKind::BadRequest => 64,
        ErrorKind::Decode => 65,
        ErrorKind::Connect
        | ErrorKind::Transport
        | ErrorKind::Timeout
        | ErrorKind::TooManyRequests
        | ErrorKind::Server
        | ErrorKind::Ambiguous => 69,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => 77,
        ErrorKind::Config | ErrorKind::Invalid | ErrorKind::NotFound => 78,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let code = |kind| exit_code(&Error::new(kind, "no"));
        assert_eq!(code(ErrorKind::Config), 78);
        assert_eq!(code(ErrorKind::Forbidden), 77);
        assert_eq!(code(ErrorKind::Connect), 69);
        assert_eq!(code(ErrorKind::Usage), 64);
        assert_eq!(code(ErrorKind::Other), 1);
        assert_eq!((Exit::Drained.code(), Exit::Cut.code()), (0, 2));
    }
}
