//! Help for typed decoding: of few members of a large object, of times that jiff cannot hold, and
//! the reason why a value does not decode.

mod explain;
mod node;
pub(crate) mod partial_decode;
pub(crate) mod times;

pub(crate) use explain::Undecodable;
