//! Layers: functions of a tensor with variables of their own. A layer's variables are made by
//! `get_variable` in a variable scope of its name, so a scope that reuses shares them; their names are
//! those of TensorFlow's `tf.layers`.

mod attention;
mod dense;
mod embedding;
mod norm;
mod recurrent;

pub use attention::{attention, multi_head_attention};
pub use dense::{Conv2d, Dense};
pub use embedding::{PartitionStrategy, embedding, embedding_lookup};
pub use norm::{BatchNorm, layer_norm};
pub use recurrent::{Gru, Lstm, RnnCell, rnn};
