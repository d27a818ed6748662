//! The integration tests of this crate, in one binary.

mod encoding;
mod generated;
mod recorded;
