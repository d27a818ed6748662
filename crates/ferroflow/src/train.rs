//! Training: optimizers, layers, losses, sessions that restore and save, and training on a cluster.

pub use ferroflow_train::{
    AccumulateGradients, Adagrad, Adam, Differentiate, Event, EventKind, EventWriter,
    ExponentialMovingAverage, Ftrl, GradAndVar, Gradient, IndexedSlices, LossScale, Momentum,
    MonitoredSession, MonitoredTraining, OpenSession, Optimizer, Rate, RmsProp, Sgd, SummaryValue,
    Supervised, Supervisor, SyncReplicas, SyncTraining, Update, average_gradients,
    clip_by_global_norm, clip_by_norm, clip_gradients, estimator, feature_column, global_norm,
    hooks, init, layers, losses, metrics, read_events, schedule, summary,
};
