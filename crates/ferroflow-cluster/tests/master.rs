//! Sessions over several tasks: servers in one process, each with threads of its own, so that one can
//! be killed.
#![allow(clippy::unwrap_used)]

mod master {
    mod collectives;
    mod failures;
    mod fixture;
    mod paths;
    mod placement;
    mod proxy;
    mod sessions;
    mod steps;
}
