//! The worker of a task: masters and other tasks make every call over the wire.

mod failures;
mod fixture;
mod masters;
mod transfers;
