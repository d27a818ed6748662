//! What a training program writes with: `use ferroflow::prelude::*;`

pub use crate::{Code, DType, Error, PartialShape, Result, Shape, Tensor};
pub use crate::{graph, local_session, remote_session};
pub use ferroflow_train::{
    Adagrad, Adam, Callable, Dataset, EventWriter, ExponentialMovingAverage, Ftrl, Function,
    Gradient, Graph, GraphSession, IntoOutput, IntoTensor, Momentum, MonitoredSession, Operation,
    Optimizer, Output, Padding, PsStrategy, ReplicaDeviceSetter, Reuse, RmsProp, Saver, Sgd,
    SyncReplicas, TensorArray, Variable, VariableOptions, WhileOptions, init, keys, layers, losses,
    metrics, schedule, summary,
};
