//! Help for typed decoding: of few members of a large object, of times that jiff cannot hold, and
//! the reason why a value does not decode.

mod explain;
mod node;
pub mod partial_decode;
pub mod times;

pub use explain::Undecodable;
