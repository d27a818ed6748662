//! Sparse gradients of tables, where a step used only some rows, and sums of gradients.

use super::tape::{Flow, Tape};
use super::term::Term;
use crate::attr::Attrs;
use crate::graph::Endpoint;
use ferroflow_core::{DType, Result};

/// A sparse tensor: each row is the sum of the `values[i]` whose `indices[i]` is that row. Other
/// rows are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointSlices {
    /// The rows.
    pub values: Endpoint,
    /// The index of each row.
    pub indices: Endpoint,
    /// The shape of the whole tensor, as a vector.
    pub shape: Endpoint,
}

impl Tape {
    /// The dense tensor.
    pub(super) fn dense(&self, s: EndpointSlices) -> Result<Endpoint> {
        let [values, indices, shape] = [s.values, s.indices, s.shape].map(|e| self.term(e));
        let rows = shape.element(0);
        self.op("UnsortedSegmentSum", &[values, indices, rows], Attrs::new())
    }

    /// The sum of several gradients of one tensor.
    pub(super) fn sum(&self, flows: &[Flow]) -> Result<Flow> {
        let present: Vec<Flow> = flows.iter().copied().filter(|f| *f != Flow::None).collect();
        match present.as_slice() {
            [] => return Ok(Flow::None),
            [one] => return Ok(*one),
            _ => {}
        }
        let slices: Vec<EndpointSlices> = present
            .iter()
            .filter_map(|f| if let Flow::Slices(s) = f { Some(*s) } else { None })
            .collect();
        if slices.len() == present.len() {
            return self.joined(&slices).map(Flow::Slices);
        }
        let terms: Vec<Term<'_>> = present.iter().map(|&f| self.flow(f)).collect();
        Ok(Flow::Tensor(self.op("AddN", &terms, Attrs::new())?))
    }

    /// The rows of all slices together.
    fn joined(&self, all: &[EndpointSlices]) -> Result<EndpointSlices> {
        let wide = all.iter().any(|s| self.type_of(s.indices) == DType::Int64);
        let index_type = if wide { DType::Int64 } else { DType::Int32 };
        let values = all.iter().map(|s| self.term(s.values)).collect();
        let indices = all.iter().map(|s| self.term(s.indices).cast(index_type)).collect();
        Ok(EndpointSlices {
            values: self.join(values)?,
            indices: self.join(indices)?,
            shape: all[0].shape,
        })
    }

    fn join<'g>(&'g self, mut parts: Vec<Term<'g>>) -> Result<Endpoint> {
        parts.push(self.term(self.number(0.0, DType::Int32)?));
        self.op("ConcatV2", &parts, Attrs::new())
    }
}
