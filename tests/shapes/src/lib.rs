//! The test of this package is `tests/agree.rs`; the types are written by `build.rs`.
