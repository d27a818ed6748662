//! The names a training program uses: `use ferroflow::prelude::*;`

pub use crate::{
    AsyncSession, Graph, LocalOptions, Operation, Output, Session, StepOptions, Variable,
};
pub use crate::{Code, DType, Error, PartialShape, Result, Shape, Tensor};
pub use ferroflow_train::{
    AccumulateGradients, Adagrad, Adam, BackgroundSaver, BestSaver, Callable, Dataset, EventWriter,
    Example, ExponentialMovingAverage, Fetch, Ftrl, Function, Gradient, IntoOutput, IntoTensor,
    LossScale, Momentum, MonitoredSession, MonitoredTraining, NodeSpec, Optimizer, Padding,
    PsStrategy, RecordWriter, ReplicaDeviceSetter, Reuse, RmsProp, SavedModelBuilder, Saver,
    Scalar, Sgd, Signature, Supervisor, SyncReplicas, TensorArray, VariableOptions, WhileOptions,
    average_gradients, estimator, feature_column, fetch_struct, hooks, init, keys, layers, losses,
    metrics, schedule, summary,
};
