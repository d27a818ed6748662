//! Layers: functions of a tensor with variables of their own. `get_variable` makes a layer's
//! variables in a variable scope of its name, so a scope that reuses shares them. The names are
//! those of TensorFlow's `tf.layers`.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::{Output, Padding, layers};
//! let x = g.placeholder::<f32>("x", [None, Some(8), Some(8), Some(1)]);
//! let h = layers::Conv2d::new("conv", 4, 3).activation(Output::relu).apply(&x);
//! let h = h.max_pool(2, 2, Padding::Same).flatten();
//! let logits = layers::Dense::new("logits", 10).apply(&h);
//! assert_eq!(logits.shape().to_string(), "[?,10]");
//! ```

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
