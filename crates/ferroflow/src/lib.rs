//! Ferroflow: distributed TensorFlow, rebuilt in Rust.
//!
//! Five lines that train something:
//!
//! ```
//! use ferroflow::prelude::*;
//!
//! let g = Graph::new();
//! let w = g.variable("w", 0.0);
//! let train = Sgd::new(0.1).minimize(&(&w - 3.0).square());
//! let session = Session::initialized(&g)?;
//! for _ in 0..50 { session.run(&train)?; }
//! # assert!((session.run(w.scalar::<f32>())? - 3.0).abs() < 1e-3);
//! # Ok::<(), ferroflow::Error>(())
//! ```
//!
//! | to … | see |
//! |---|---|
//! | build a graph | [`Graph`], [`ops`], [`train::layers`], [`train::losses`] |
//! | run it here or on a server | [`Session::local`], [`Session::connect`], [`AsyncSession`] |
//! | train it | [`train`]: optimizers, monitored sessions, SyncReplicas, estimators |
//! | train it with all-reduce | [`hvd`] |
//! | train it with tables on parameter servers and all-reduce for the rest | [`hybrid`] |
//! | start servers | [`cluster`] |
//! | read input | [`data`] |
//! | save and restore | [`checkpoint`] |
//! | run a graph from a file | [`graph`] |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod checkpoint;
pub mod cluster;
pub mod collective;
pub mod data;
pub mod gpu;
pub mod graph;
pub mod ops;
pub mod placement;
pub mod prelude;
pub mod train;

pub use ferroflow_core::{
    Code, DType, Element, Error, PartialShape, Result, Shape, Tensor, set_compute_threads,
};
pub use ferroflow_train::{
    AsyncSession, Graph, LocalOptions, Operation, Output, RunMetadata, Session, StepOptions,
    Variable, hvd, hybrid,
};
