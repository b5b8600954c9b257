//! Checks of constants that kube-apiserver refuses at creation: durations, timestamps and patterns.

use crate::check::LiteralValidator;
use crate::library::duration::Duration;
use crate::library::regex::Regex;
use crate::library::timestamp::Timestamp;
use crate::syntax::Literal;

/// The checks of constants of Kubernetes, for [`Environment::with_literal_validators`].
///
/// [`Environment::with_literal_validators`]: crate::check::Environment::with_literal_validators
pub const LITERALS: &[LiteralValidator] = &[
    LiteralValidator { function: "duration", argument: 0, is_valid: is_duration },
    LiteralValidator { function: "timestamp", argument: 0, is_valid: is_timestamp },
    LiteralValidator { function: "matches", argument: 0, is_valid: is_pattern },
];

fn is_duration(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Duration::parse(text).is_ok(),
        _ => false,
    }
}

fn is_timestamp(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Timestamp::parse(text).is_ok(),
        Literal::Int(seconds) => Timestamp::from_unix(*seconds).is_ok(),
        _ => false,
    }
}

fn is_pattern(literal: &Literal) -> bool {
    match literal {
        Literal::String(pattern) => Regex::compile(pattern).is_ok(),
        _ => true,
    }
}
