//! What a training program writes with: `use ferroflow::prelude::*;`

pub use crate::{AsyncSession, graph, local_session, remote_session};
pub use crate::{Code, DType, Error, PartialShape, Result, Shape, Tensor};
pub use ferroflow_train::{
    AccumulateGradients, Adagrad, Adam, BackgroundSaver, BestSaver, Callable, Dataset, EventWriter,
    Example, ExponentialMovingAverage, Fetch, Ftrl, Function, Gradient, Graph, GraphSession,
    IntoOutput, IntoTensor, Momentum, MonitoredSession, MonitoredTraining, NodeSpec, Operation,
    Optimizer, Output, Padding, PsStrategy, RecordWriter, ReplicaDeviceSetter, Reuse, RmsProp,
    SavedModelBuilder, Saver, Scalar, Sgd, Signature, StepOptions, Supervisor, SyncReplicas,
    TensorArray, Variable, VariableOptions, WhileOptions, average_gradients, estimator,
    feature_column, fetch_struct, hooks, init, keys, layers, losses, metrics, schedule, summary,
};
