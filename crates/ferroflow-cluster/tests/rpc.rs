//! Our client against our server, and a raw HTTP/2 client for what ours would never send.
#![allow(clippy::unwrap_used)]

mod rpc {
    mod clients;
    mod fixture;
    mod malformed;
    mod servers;
}
