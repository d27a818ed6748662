//! Ferroflow: distributed TensorFlow, re-founded in Rust. This crate is its one public face.
//!
//! A [`Session`] runs a [`GraphDef`], in this process or on a server:
//!
//! ```
//! use ferroflow::{AttrValue, Attrs, GraphDef, NodeDef, Session, Tensor, DType};
//!
//! let constant = |name: &str, x: f32| NodeDef {
//!     name: name.into(),
//!     op: "Const".into(),
//!     attrs: Attrs::new().with("dtype", DType::Float).with("value", Tensor::scalar(x)),
//!     ..NodeDef::default()
//! };
//! let sum = NodeDef {
//!     name: "sum".into(),
//!     op: "AddV2".into(),
//!     inputs: vec!["a".into(), "b".into()],
//!     attrs: Attrs::new().with("T", DType::Float),
//!     ..NodeDef::default()
//! };
//! let graph = GraphDef { nodes: vec![constant("a", 1.0), constant("b", 2.0), sum], ..Default::default() };
//! let session = Session::local(&graph)?;
//! let out = session.run(&[], &["sum:0"])?;
//! assert_eq!(out[0].scalar_value::<f32>()?, 3.0);
//! # Ok::<(), ferroflow::Error>(())
//! ```
#![forbid(unsafe_code)]

mod async_session;
mod background_server;
mod estimator;
mod gradients;
pub mod hvd;
pub mod placement;
pub mod prelude;
mod session;

pub use async_session::{AsyncCallable, AsyncPartialRun, AsyncSession};
pub use background_server::{BackgroundServer, stop_signal};
pub use estimator::{estimator, train_and_evaluate};
pub use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, DataPath, Server, ServerOptions, TfConfig, network_threads,
    workers_done,
};
/// All-reduce and its family between processes.
pub use ferroflow_collective as collective;
pub use ferroflow_core::{
    Code, DType, Element, Error, PartialShape, Result, Shape, Tensor, set_compute_threads,
};
pub use ferroflow_graph::wire::graph::{decode_graph, encode_graph};
pub use ferroflow_graph::{AttrList, AttrValue, Attrs, Catalog, FuncRef, GraphDef, NodeDef};
pub use ferroflow_ops::CheckpointFile;
pub use ferroflow_runtime::SessionOptions;
pub use ferroflow_train as train;
pub use gradients::{GradientName, gradients};
pub use session::{Session, filtered_session, graph, local_session, remote_session, saved_model};

use std::sync::{Arc, LazyLock};

/// Every op Ferroflow has, and the signatures of all others TensorFlow has.
pub fn default_catalog() -> Arc<Catalog> {
    static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
        let mut catalog = Catalog::new();
        ferroflow_ops::register(&mut catalog);
        catalog.add_signatures(ferroflow_graph::tensorflow_ops::tensorflow_signatures());
        Arc::new(catalog)
    });
    CATALOG.clone()
}
