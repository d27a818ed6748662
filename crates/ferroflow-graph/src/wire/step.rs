//! The calls that carry tensors.
