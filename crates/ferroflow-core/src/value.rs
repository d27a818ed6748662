//! The values on the edges of a running graph.

use crate::{Result, StoredVariable, Tensor, bail};
use std::sync::Arc;

/// A value on an edge.
#[derive(Clone, Default)]
pub enum Value {
    /// No value yet, or the consumer has taken it.
    #[default]
    Empty,
    /// A tensor.
    Tensor(Tensor),
    /// A reference to a variable, as `VariableV2` outputs. A consumer whose argument is not a
    /// reference gets a snapshot instead.
    Ref(Arc<StoredVariable>),
    /// The output of a branch that was not taken.
    Dead,
}

impl Value {
    /// Whether it comes from a branch that was not taken.
    pub fn is_dead(&self) -> bool {
        matches!(self, Value::Dead)
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        matches!(self, Value::Empty)
    }

    /// The tensor, or a snapshot of the referenced variable.
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            Value::Tensor(t) => Ok(t),
            Value::Ref(v) => v.read(),
            Value::Empty => bail!(Internal, "an edge without a value was read"),
            Value::Dead => bail!(Internal, "a dead value was read"),
        }
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Value {
        Value::Tensor(t)
    }
}
