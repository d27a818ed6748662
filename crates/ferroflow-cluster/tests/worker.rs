//! The worker of a task, as masters and other tasks see it: every call over the wire.
#![allow(clippy::unwrap_used)]

mod worker {
    mod failures;
    mod fixture;
    mod masters;
    mod transfers;
}
