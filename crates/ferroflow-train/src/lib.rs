//! What a trainer writes with: a graph builder, optimizers, layers, losses, checkpoints, summaries and
//! the loops around them. It runs nothing itself: sessions come from whoever implements [`Steps`].
#![forbid(unsafe_code)]

mod checkpoint_state;
mod clip;
mod cond;
mod context;
mod dataset;
mod device;
mod events;
mod function;
mod gradient;
mod graph;
pub mod hooks;
pub mod hvd;
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
mod saver;
pub mod schedule;
mod session;
pub mod summary;
mod sync_replicas;
mod tensor_array;
#[cfg(test)]
mod testing;
mod value;
mod variable;
mod variable_scope;
mod while_loop;
mod wire;

pub use clip::{clip_by_global_norm, clip_by_norm, clip_gradients, global_norm};
pub use dataset::{Dataset, DatasetIterator};
pub use device::{DeviceFn, DeviceScope, IntoDevice, NodeSpec, PsStrategy, ReplicaDeviceSetter};
pub use events::{EventWriter, read_events};
pub use function::Function;
pub use gradient::{Differentiate, Gradient, IndexedSlices};
pub use graph::{Graph, keys};
pub use init::{Initializer, IntoInitializer};
pub use monitored::{MonitoredSession, MonitoredTraining, OpenSession};
pub use moving_average::ExponentialMovingAverage;
pub use node::NodeBuilder;
pub use ops::Padding;
pub use optimizer::{Adagrad, Adam, Ftrl, GradAndVar, Momentum, Optimizer, RmsProp, Sgd, Update};
pub use output::{Operation, Output};
pub use saver::{Saver, latest_checkpoint};
pub use schedule::Rate;
pub use session::{Callable, Feeds, Fetch, GraphSession, Scalar, Steps, Wanted};
pub use sync_replicas::{SyncReplicas, SyncTraining};
pub use tensor_array::TensorArray;
pub use value::{IntoOutput, IntoShape, IntoTensor};
pub use variable::{PartitionedVariable, Variable, VariableOptions};
pub use variable_scope::Reuse;
pub use while_loop::WhileOptions;
pub use wire::{Event, EventKind, SummaryValue, graph_of_meta_graph};
