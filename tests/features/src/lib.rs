//! Nothing: see `Cargo.toml`.

// DESIGN.md, 227: Crates of others have the same features in every selection of packages
