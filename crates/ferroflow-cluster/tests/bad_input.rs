//! What a server does with malformed, hostile and absurd graphs, tensors and calls: it answers with
//! TensorFlow's error class, names the node, and lives on.
#![allow(clippy::unwrap_used)]

mod bad_input {
    mod fixture;
    mod functions;
    mod graphs;
    mod messages;
    mod sessions;
    mod sizes;
    mod steps;
}
