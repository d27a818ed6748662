//! The interface of gradient functions: the node to differentiate, and ways to add nodes.

use super::backprop::{Reached, sweep};
use super::context::ROOT;
use super::slices::EndpointSlices;
use super::tape::{Flow, Tape};
use super::term::Term;
use crate::attr::Attrs;
use crate::graph::{Endpoint, NodeId};
use crate::op_def::AttrKind;
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure};
use std::sync::Arc;

/// A node whose gradient is added.
pub struct GradientScope<'g> {
    pub(super) tape: &'g Tape,
    pub(super) node: NodeId,
    attrs: Arc<Attrs>,
    inputs: Vec<Endpoint>,
    outputs: usize,
}

impl<'g> GradientScope<'g> {
    pub(super) fn new(tape: &'g Tape, node: NodeId) -> GradientScope<'g> {
        let graph = tape.graph();
        let of = graph.node(node);
        let (attrs, inputs) = (of.attrs.clone(), of.inputs.clone());
        let outputs = of.output_types.len();
        GradientScope { tape, node, attrs, inputs, outputs }
    }

    /// The node's name.
    pub fn name(&self) -> String {
        self.tape.graph().node(self.node).name.clone()
    }

    /// The node's attributes.
    pub fn attrs(&self) -> &Attrs {
        &self.attrs
    }

    /// Input `i` of the node.
    pub fn input(&self, i: usize) -> Term<'g> {
        match self.inputs.get(i) {
            Some(&e) => self.tape.term(e),
            None => self.none(),
        }
    }

    /// All inputs of the node.
    pub fn inputs(&self) -> Vec<Term<'g>> {
        self.inputs.iter().map(|&e| self.tape.term(e)).collect()
    }

    /// The number of inputs of the node.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs of the node.
    pub fn num_outputs(&self) -> usize {
        self.outputs
    }

    /// Output `i` of the node.
    pub fn output(&self, i: usize) -> Term<'g> {
        if i >= self.outputs {
            return self.none();
        }
        self.tape.term(Endpoint::new(self.node, i))
    }

    /// No gradient.
    pub fn none(&self) -> Term<'g> {
        self.tape.flow(Flow::None)
    }

    /// The first gradient, and none for the other inputs.
    pub fn only(&self, first: Term<'g>) -> Vec<Term<'g>> {
        self.at(0, first)
    }

    /// The gradient of input `i`, and none for the others.
    pub fn at(&self, i: usize, gradient: Term<'g>) -> Vec<Term<'g>> {
        let mut all = vec![self.none(); self.inputs.len()];
        if let Some(slot) = all.get_mut(i) {
            *slot = gradient;
        }
        all
    }

    /// Adds a node and returns its first output. Attributes that follow from the inputs are filled
    /// in.
    pub fn call(&self, op: &str, inputs: &[Term<'g>]) -> Term<'g> {
        self.call_with(op, inputs, Attrs::new())
    }

    /// [`GradientScope::call`] with attributes.
    pub fn call_with(&self, op: &str, inputs: &[Term<'g>], attrs: Attrs) -> Term<'g> {
        self.none().made(self.tape.op(op, inputs, attrs))
    }

    /// Adds a node and returns all its outputs.
    pub fn calls(&self, op: &str, inputs: &[Term<'g>]) -> Vec<Term<'g>> {
        self.calls_with(op, inputs, Attrs::new())
    }

    /// [`GradientScope::calls`] with attributes. On an error it returns the same number of empty
    /// terms.
    pub fn calls_with(&self, op: &str, inputs: &[Term<'g>], attrs: Attrs) -> Vec<Term<'g>> {
        match self.tape.ops(op, inputs, attrs) {
            Ok(node) => {
                let outputs = self.tape.graph().node(node).output_types.len();
                (0..outputs).map(|i| self.tape.term(Endpoint::new(node, i))).collect()
            }
            Err(e) => {
                self.tape.fail(e);
                vec![self.none(); 64]
            }
        }
    }

    /// Adds a node that copies the attributes of this one, and returns its first output. Only those
    /// are copied that the new op has and that do not follow from its inputs. For backward ops that
    /// are configured like their forward ops.
    pub fn call_like(&self, op: &str, inputs: &[Term<'g>]) -> Term<'g> {
        self.call_with(op, inputs, self.attrs_like(op))
    }

    /// [`GradientScope::call_like`] for all outputs.
    pub fn calls_like(&self, op: &str, inputs: &[Term<'g>]) -> Vec<Term<'g>> {
        self.calls_with(op, inputs, self.attrs_like(op))
    }

    fn attrs_like(&self, op: &str) -> Attrs {
        let state = self.tape.state.borrow();
        let def = state.catalog.get(op);
        let shared = self.attrs.iter().filter(|(name, _)| {
            let attr = def.and_then(|def| def.attr(name));
            attr.is_some_and(|a| a.kind != AttrKind::Type)
        });
        shared.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The attributes of the node without annotations, for a backward op with the same attributes.
    pub fn same_attrs(&self, names: &[&str]) -> Attrs {
        let kept = self.attrs.iter().filter(|(name, _)| names.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// A constant.
    pub fn constant(&self, value: Tensor) -> Term<'g> {
        self.none().made(self.tape.constant(value))
    }

    /// An int32 scalar.
    pub fn int(&self, value: i64) -> Term<'g> {
        self.number(value as f64, DType::Int32)
    }

    /// An int32 vector.
    pub fn ints(&self, values: &[i64]) -> Term<'g> {
        self.integers(values, DType::Int32)
    }

    /// A vector of int32 or int64.
    pub fn integers(&self, values: &[i64], dtype: DType) -> Term<'g> {
        self.none().made(self.tape.integers(values, dtype))
    }

    /// A scalar constant of a dtype.
    pub fn number(&self, x: f64, dtype: DType) -> Term<'g> {
        self.none().made(self.tape.number(x, dtype))
    }

    /// Zeros whose shape is the vector `shape`.
    pub fn zeros(&self, shape: Term<'g>, dtype: DType) -> Term<'g> {
        self.call("Fill", &[shape, self.number(0.0, dtype)])
    }

    /// `0, 1, …, n - 1` for an int32 scalar `n`.
    pub fn range(&self, n: Term<'g>) -> Term<'g> {
        self.call("Range", &[self.int(0), n, self.int(1)])
    }

    /// Tensors joined along an axis.
    pub fn concat(&self, parts: &[Term<'g>], axis: i64) -> Term<'g> {
        let mut inputs = parts.to_vec();
        inputs.push(self.int(axis));
        self.call("ConcatV2", &inputs)
    }

    /// `a` where `condition` holds, else `b`; all of one shape, or broadcast to one.
    pub fn select(&self, condition: Term<'g>, a: Term<'g>, b: Term<'g>) -> Term<'g> {
        self.call("SelectV2", &[condition, a, b])
    }

    /// A matrix product; each operand can be transposed.
    pub fn matmul(&self, a: Term<'g>, b: Term<'g>, transpose: (bool, bool)) -> Term<'g> {
        let attrs = Attrs::new().with("transpose_a", transpose.0).with("transpose_b", transpose.1);
        self.call_with("MatMul", &[a, b], attrs)
    }

    /// A batched matrix product; each operand can be conjugated and transposed.
    pub fn batch_matmul(&self, a: Term<'g>, b: Term<'g>, adjoint: (bool, bool)) -> Term<'g> {
        let attrs = Attrs::new().with("adj_x", adjoint.0).with("adj_y", adjoint.1);
        self.call_with("BatchMatMulV2", &[a, b], attrs)
    }

    /// The conjugate transpose of the last two dimensions.
    pub fn adjoint(&self, x: Term<'g>) -> Term<'g> {
        self.matrix_transpose(x).conj()
    }

    /// The transpose of the last two dimensions.
    pub fn matrix_transpose(&self, x: Term<'g>) -> Term<'g> {
        let perm = match x.rank() {
            Some(rank) if rank >= 2 => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                perm.swap(rank - 1, rank - 2);
                self.ints(&perm)
            }
            _ => {
                let rank = x.rank_term();
                let (last, before) = (rank - 1.0, rank - 2.0);
                let front = self.range(before);
                self.concat(&[front, last.expand_dims(0), before.expand_dims(0)], 0)
            }
        };
        self.call("Transpose", &[x, perm])
    }

    /// A sparse gradient: some rows, the others zero.
    pub fn slices(&self, values: Term<'g>, indices: Term<'g>, shape: Term<'g>) -> Term<'g> {
        let made = || -> Result<EndpointSlices> {
            Ok(EndpointSlices {
                values: values.endpoint()?,
                indices: indices.endpoint()?,
                shape: shape.endpoint()?,
            })
        };
        match made() {
            Ok(s) => self.tape.flow(Flow::Slices(s)),
            Err(e) => {
                self.tape.fail(e);
                self.none()
            }
        }
    }

    /// The gradients of `ys` by `xs`, where this gradient function has just computed `ys` from
    /// `xs`. For backward ops whose own gradient is easiest to derive from a formula for them. `xs`
    /// must be nodes made for this purpose.
    pub fn differentiate(
        &self,
        ys: &[Term<'g>],
        dys: &[Term<'g>],
        xs: &[Term<'g>],
    ) -> Result<Vec<Term<'g>>> {
        ensure!(
            self.tape.state.borrow().current == ROOT,
            Unimplemented,
            "second derivatives of this op are not defined inside while loops"
        );
        let ends: Vec<Endpoint> = xs.iter().map(|x| x.endpoint()).collect::<Result<_>>()?;
        let mut start = Vec::with_capacity(ys.len());
        for (y, dy) in ys.iter().zip(dys) {
            start.push((y.endpoint()?, dy.flow));
        }
        let reached = Reached::from(&self.tape.graph(), &ends);
        let stops = ends.iter().map(|e| e.node).collect();
        let found = sweep(self.tape, ROOT, start, &ends, &stops, &reached)?;
        self.tape.state.borrow_mut().around = Some(self.node);
        Ok(found.into_iter().map(|flow| self.tape.flow(flow)).collect())
    }

    /// A name that is unique to this call of `gradients`. It keeps the accumulators of several
    /// calls apart.
    pub fn source(&self) -> String {
        self.tape.state.borrow().prefix().to_string()
    }

    /// The parts of slices, as terms.
    pub fn parts_of(&self, s: EndpointSlices) -> [Term<'g>; 3] {
        [s.values, s.indices, s.shape].map(|e| self.tape.term(e))
    }

    /// Adds knowledge about a term's shape.
    pub fn with_shape(&self, x: Term<'g>, shape: &PartialShape) -> Term<'g> {
        if let Flow::Tensor(e) = x.flow {
            self.tape.state.borrow_mut().refine(e, shape);
        }
        x
    }
}
