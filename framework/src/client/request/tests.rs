//! How requests are built.
