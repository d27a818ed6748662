//! What travels along the edges of a running graph.

use crate::{Result, Tensor, Variable, bail};
use std::sync::Arc;

/// A value on an edge.
#[derive(Clone, Default)]
pub enum Value {
    /// Nothing there (yet, or any more).
    #[default]
    Empty,
    Tensor(Tensor),
    /// A reference to a variable, as `VariableV2` outputs. A consumer whose argument is not a
    /// reference is handed a snapshot instead.
    Ref(Arc<Variable>),
    /// The output of the branch not taken.
    Dead,
}

impl Value {
    pub fn is_dead(&self) -> bool {
        matches!(self, Value::Dead)
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Value::Empty)
    }

    /// The tensor, or a snapshot of the variable referred to.
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
