//! Tensors of a loop, used in its backward loop. A tensor that does not change enters the backward
//! loop. Of any other tensor each iteration pushes its value on a stack, and the backward loop pops
//! it.

use super::context::{BranchGuard, LoopContextId, LoopContextKind, LoopCounter};
use super::frames;
use super::tape::TapeState;
use crate::attr::Attrs;
use crate::graph::{Endpoint, NodeId};
use crate::op_def::ControlFlow;
use ferroflow_core::{DType, Result, Tensor, bail, err};

impl TapeState {
    /// The tensor in context `to`.
    pub fn bring(&mut self, e: Endpoint, to: LoopContextId) -> Result<Endpoint> {
        let from = self.places[e.node.index()];
        if from == to {
            return Ok(e);
        }
        let (parent, LoopContextKind::Backward(backward)) =
            (self.contexts[to].parent, &self.contexts[to].kind)
        else {
            let node = self.graph.node(e.node);
            bail!(
                InvalidArgument,
                "Cannot use '{}' of a while loop outside of it: gradients by or of tensors inside a \
                 while loop are not defined",
                node.name
            );
        };
        if backward.of == from {
            if let Some(&found) = backward.recalled.get(&e) {
                return Ok(found);
            }
            let found = self.recall(e, to)?;
            let shape = self.shape(e);
            self.refine(found, &shape);
            self.backward(to).recalled.insert(e, found);
            return Ok(found);
        }
        if let Some(&found) = backward.entered.get(&e) {
            return Ok(found);
        }
        let outside = self.bring(e, parent)?;
        let found = self.enter(outside, to, true)?;
        self.backward(to).entered.insert(e, found);
        Ok(found)
    }

    pub fn backward(&mut self, id: LoopContextId) -> &mut super::context::BackwardLoop {
        match &mut self.contexts[id].kind {
            LoopContextKind::Backward(b) => b,
            _ => unreachable!("only contexts made by `while_loop` are asked for"),
        }
    }

    /// Adds an `Enter` into the backward loop.
    pub fn enter(&mut self, e: Endpoint, to: LoopContextId, constant: bool) -> Result<Endpoint> {
        let LoopContextKind::Backward(b) = &self.contexts[to].kind else {
            bail!(Internal, "only backward loops can be entered");
        };
        let attrs = frame_attrs(&b.frame, b.parallel_iterations, constant);
        let node = self.insert("Enter", vec![e], attrs, vec![], to)?;
        let found = Endpoint { node, slot: 0 };
        if constant {
            let shape = self.shape(e);
            self.refine(found, &shape);
        }
        Ok(found)
    }

    /// The value that `e`, a tensor of the forward loop, had in the iteration that the backward
    /// loop is in.
    fn recall(&mut self, e: Endpoint, to: LoopContextId) -> Result<Endpoint> {
        if let Some(value) = self.value(e) {
            let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
            let node = self.insert("Const", vec![], attrs, vec![], to)?;
            return Ok(Endpoint { node, slot: 0 });
        }
        let node = self.graph.node(e.node);
        let is_constant = node.attrs.bool("is_constant").unwrap_or(false);
        if node.op.control_flow == Some(ControlFlow::Enter) && is_constant {
            let (source, parent) = (node.inputs[0], self.contexts[to].parent);
            let outside = self.bring(source, parent)?;
            return self.enter(outside, to, true);
        }
        let LoopContextKind::Backward(b) = &self.contexts[to].kind else {
            bail!(Internal, "only backward loops pop values");
        };
        let (of, pivot, sync) = (b.of, b.pivot, b.sync);
        let stack = self.remember(e, of)?;
        let handle = self.bring(stack, to)?;
        let mut controls = vec![pivot];
        for guard in frames::on_edge(&self.graph, &self.guards, e) {
            controls.push(self.alive_on(guard, to)?);
        }
        let attrs = Attrs::new().with("elem_type", self.graph.type_of(e).dtype);
        let pop = self.insert("StackPopV2", vec![handle], attrs, controls, to)?;
        self.graph.node_mut(sync).controls.push(pop);
        Ok(Endpoint { node: pop, slot: 0 })
    }

    /// Pushes the value of `e` on a stack in each iteration of its loop. Returns the stack's
    /// handle, which is outside the loop.
    fn remember(&mut self, e: Endpoint, of: LoopContextId) -> Result<Endpoint> {
        let counter = self.counter(of)?;
        let outside = self.contexts[of].parent;
        let value = Tensor::scalar(-1i32);
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
        let size = self.insert_first("Const", vec![], attrs, vec![counter.anchor], outside)?;
        let dtype = self.graph.type_of(e).dtype;
        let attrs = Attrs::new().with("elem_type", dtype);
        let stack = self.insert_first("StackV2", vec![size], attrs, vec![], outside)?;
        let (frame, parallel) = self.frame_of(of)?;
        let attrs = frame_attrs(&frame, parallel, true);
        let handle = self.insert_first("Enter", vec![stack], attrs, vec![], of)?;
        let push =
            self.insert("StackPushV2", vec![handle, e], Attrs::new(), vec![counter.pivot], of)?;
        self.graph.node_mut(counter.sync).controls.push(push);
        Ok(stack)
    }

    /// A node that is alive if the branch of `guard` was taken.
    fn alive_on(&mut self, guard: BranchGuard, to: LoopContextId) -> Result<NodeId> {
        if let Some(&found) = self.backward(to).branches.get(&guard) {
            return Ok(found);
        }
        let predicate = self.bring(guard.predicate, to)?;
        let switch = self.insert("Switch", vec![predicate, predicate], Attrs::new(), vec![], to)?;
        let taken = Endpoint::new(switch, usize::from(guard.branch));
        let node = self.insert("Identity", vec![taken], Attrs::new(), vec![], to)?;
        self.backward(to).branches.insert(guard, node);
        Ok(node)
    }

    /// The counter of a loop of the graph, added to it if it has none.
    pub fn counter(&mut self, of: LoopContextId) -> Result<LoopCounter> {
        let outside = self.contexts[of].parent;
        let LoopContextKind::Forward(forward) = &self.contexts[of].kind else {
            bail!(Internal, "only forward loops have a counter");
        };
        if let Some(counter) = forward.counter {
            return Ok(counter);
        }
        let (frame, parallel) = (forward.frame.clone(), forward.parallel_iterations);
        let condition = forward
            .condition
            .ok_or_else(|| err!(InvalidArgument, "while loop '{frame}' has no condition"))?;
        let first = forward.enters.first().copied();
        let first = first.ok_or_else(|| err!(InvalidArgument, "while loop '{frame}' is empty"))?;
        let source = self.graph.node(first).inputs[0];
        // Add a node instead of using the source: a control edge from a Switch does not name a
        // branch.
        let anchor = self.insert("Identity", vec![source], Attrs::new(), vec![], outside)?;
        let number = |x: i32| {
            let value = Tensor::scalar(x);
            Attrs::new().with("dtype", value.dtype()).with("value", value)
        };
        let zero = self.insert_first("Const", vec![], number(0), vec![anchor], outside)?;
        let enter = self.insert_first(
            "Enter",
            vec![zero],
            frame_attrs(&frame, parallel, false),
            vec![],
            of,
        )?;
        let merge = self.insert_first("Merge", vec![enter, enter], Attrs::new(), vec![], of)?;
        let condition = Endpoint { node: condition, slot: 0 };
        let switch = self.insert("Switch", vec![merge, condition], Attrs::new(), vec![], of)?;
        let goes_on = Endpoint { node: switch, slot: 1 };
        let pivot = self.insert("Identity", vec![goes_on], Attrs::new(), vec![], of)?;
        let sync = self.insert("ControlTrigger", vec![], Attrs::new(), vec![pivot], of)?;
        let one = self.insert_first("Const", vec![], number(1), vec![pivot], of)?;
        let here = Endpoint { node: pivot, slot: 0 };
        let count = self.insert("AddV2", vec![here, one], Attrs::new(), vec![sync], of)?;
        let count = Endpoint { node: count, slot: 0 };
        let next = self.insert_first("NextIteration", vec![count], Attrs::new(), vec![], of)?;
        self.graph.node_mut(merge.node).inputs[1] = next;
        let end = Endpoint { node: switch, slot: 0 };
        let total = self.insert_first("Exit", vec![end], Attrs::new(), vec![], outside)?;
        self.guards[total.node.index()] = self.guards[anchor.index()].clone();
        let counter = LoopCounter { anchor, pivot, sync, total };
        if let LoopContextKind::Forward(forward) = &mut self.contexts[of].kind {
            forward.counter = Some(counter);
        }
        Ok(counter)
    }

    fn frame_of(&self, of: LoopContextId) -> Result<(String, i64)> {
        match &self.contexts[of].kind {
            LoopContextKind::Forward(f) => Ok((f.frame.clone(), f.parallel_iterations)),
            _ => bail!(Internal, "only forward loops push values"),
        }
    }

    /// [`TapeState::insert`], for the first output.
    pub fn insert_first(
        &mut self,
        op: &str,
        inputs: Vec<Endpoint>,
        attrs: Attrs,
        controls: Vec<NodeId>,
        place: LoopContextId,
    ) -> Result<Endpoint> {
        let node = self.insert(op, inputs, attrs, controls, place)?;
        Ok(Endpoint { node, slot: 0 })
    }

    /// The shape of a tensor. For a tensor of the forward loop it is taken there.
    pub fn shape_of(&mut self, e: Endpoint, dtype: DType) -> Result<Endpoint> {
        let attrs = Attrs::new().with("out_type", dtype);
        let place = self.places[e.node.index()];
        match &self.contexts[self.current].kind {
            LoopContextKind::Backward(b) if b.of == place => {
                self.insert_first("Shape", vec![e], attrs, vec![], place)
            }
            _ => self.add("Shape", vec![e], attrs).map(|node| Endpoint { node, slot: 0 }),
        }
    }
}

pub(super) fn frame_attrs(frame: &str, parallel_iterations: i64, constant: bool) -> Attrs {
    Attrs::new()
        .with("frame_name", frame)
        .with("parallel_iterations", parallel_iterations)
        .with("is_constant", constant)
}
