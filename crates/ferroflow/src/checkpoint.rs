//! Checkpoints and SavedModels: write them, restore them, look into them.

pub use ferroflow_ops::CheckpointFile;
pub use ferroflow_train::{
    BackgroundSaver, BestSaver, DEFAULT_SIGNATURE, SERVE, SavedGraph, SavedModel,
    SavedModelBuilder, Saver, Signature, TensorInfo, latest_checkpoint, saved_graphs,
};
