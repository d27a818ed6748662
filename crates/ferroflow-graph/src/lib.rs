//! See the crate README line in ARCHITECTURE.md.
