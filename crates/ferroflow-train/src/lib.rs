//! Builds graphs, runs them in sessions and trains them: layers, losses, optimizers, checkpoints,
//! summaries, estimators and the loops around them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod async_session;
mod background;
mod background_server;
mod best;
mod catalog;
mod checkpoint_state;
mod clip;
mod cond;
mod context;
mod dataset;
mod device;
pub mod estimator;
mod events;
mod example;
pub mod feature_column;
mod fetch;
mod function;
#[doc(hidden)]
pub mod fuzzing;
mod gradient;
mod graph;
mod graph_def_session;
pub mod hooks;
pub mod hvd;
pub mod hybrid;
pub mod init;
pub mod layers;
pub mod losses;
pub mod metrics;
mod monitored;
mod moving_average;
mod names;
mod node;
pub mod ops;
mod optimizer;
mod output;
mod saved_model;
mod saver;
pub mod schedule;
mod session;
mod step;
pub mod summary;
mod supervisor;
mod sync_replicas;
mod tensor_array;
#[cfg(test)]
mod testing;
mod towers;
mod value;
mod variable;
mod variable_scope;
mod while_loop;
mod wire;

pub use async_session::{AsyncCallable, AsyncPartialRun, AsyncSession};
pub use background::BackgroundSaver;
pub use background_server::{BackgroundServer, loopback_spec, stop_signal};
pub use best::BestSaver;
pub use catalog::default_catalog;
pub use clip::{clip_by_global_norm, clip_by_norm, clip_gradients, global_norm};
pub use dataset::{Csv, CsvColumn, Dataset, DatasetFeeder, DatasetIterator, Feeding};
pub use device::{DeviceFn, DeviceScope, IntoDevice, NodeSpec, PsStrategy, ReplicaDeviceSetter};
pub use events::{EventWriter, read_events};
pub use example::Example;
pub use ferroflow_op_kit::tfrecord::RecordWriter;
pub use fetch::{Feeds, Fetch, Scalar, Wanted};
// What `fetch_struct!` needs of other crates.
#[doc(hidden)]
pub use ferroflow_core::{Result, Tensor};
pub use ferroflow_graph::{NodeTiming, RunMetadata};
pub use function::Function;
pub use gradient::{Differentiate, Gradient, IndexedSlices};
pub use graph::{Graph, keys};
pub use graph_def_session::{GraphDefSession, LocalOptions};
pub use init::{Initializer, IntoInitializer};
pub use monitored::{MonitoredSession, MonitoredTraining, OpenSession};
pub use moving_average::ExponentialMovingAverage;
pub use node::NodeBuilder;
pub use ops::Padding;
pub use optimizer::{
    AccumulateGradients, Adagrad, Adam, Ftrl, GradAndVar, LossScale, Momentum, Optimizer, RmsProp,
    Sgd, Update,
};
pub use output::{Operation, Output};
pub use saved_model::{
    DEFAULT_SIGNATURE, SERVE, SavedGraph, SavedModel, SavedModelBuilder, Signature, TensorInfo,
    read_model_file, saved_graphs,
};
pub use saver::{Saver, latest_checkpoint};
pub use schedule::Rate;
pub use session::{Callable, PartialRun, Session, StepRunner};
pub use step::{StepOptions, StepOutput, StepRequest};
pub use supervisor::{Supervised, Supervisor};
pub use sync_replicas::{SyncReplicas, SyncTraining};
pub use tensor_array::TensorArray;
pub use towers::average_gradients;
pub use value::{IntoOutput, IntoShape, IntoTensor};
pub use variable::{PartitionedVariable, Variable, VariableOptions};
pub use variable_scope::Reuse;
pub use while_loop::WhileOptions;
pub use wire::{Event, EventKind, SummaryValue, graph_of_meta_graph};
