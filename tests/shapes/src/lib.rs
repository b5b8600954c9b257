//! The test of this package is `tests/agree.rs`; its types are written by `build.rs`.
