//! A model server: SavedModels over TensorFlow Serving's gRPC and REST interfaces.
//!
//! [`ModelServer`] listens on two ports. [`Models`] watches the folders of the models, loads new
//! versions and unloads old ones when their last request has ended. A request finds its version,
//! runs one step of the version's session, alone or in a batch with others, and answers.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod config;
pub mod fuzzing;
mod grpc;
mod http;
mod inference;
mod metrics;
mod model;
mod models;
mod rest;
mod rows;
mod server;
mod version_dirs;
mod warmup;
mod wire;

pub use config::{BatchingOptions, ModelSource, VersionPolicy};
pub use models::{Models, ModelsOptions, VersionState, VersionStatus};
pub use server::{ModelServer, ModelServerOptions};
