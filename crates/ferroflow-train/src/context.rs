//! The contexts of v1 control flow: which branch or loop a node is in, and how tensors enter it.

use crate::graph::GraphState;
use crate::names::join;
use crate::node::NewNode;
use ferroflow_core::{Result, bail, err};
use ferroflow_graph::{Attrs, ControlFlow, Endpoint, NodeId};
use std::collections::HashMap;
use std::panic::Location;

/// Index into the contexts of a graph.
pub(crate) type ContextId = usize;

/// Outside all branches and loops.
pub(crate) const ROOT: ContextId = 0;

pub(crate) struct Context {
    pub parent: ContextId,
    pub kind: ContextKind,
    /// The name scope of the nodes that bring tensors in.
    pub scope: String,
    /// Outside tensors, and the tensors that stand for them inside.
    pub brought: HashMap<Endpoint, Endpoint>,
}

pub(crate) enum ContextKind {
    Root,
    /// One branch of a conditional. Nodes without inputs depend on the pivot.
    Branch {
        predicate: Endpoint,
        side: bool,
        pivot: Option<NodeId>,
    },
    Loop {
        frame: String,
        parallel_iterations: i64,
        pivot: Option<NodeId>,
    },
}

impl Context {
    pub fn root() -> Context {
        Context {
            parent: ROOT,
            kind: ContextKind::Root,
            scope: String::new(),
            brought: HashMap::new(),
        }
    }
}

impl GraphState {
    /// Whether `inner` is `outer` or within it.
    pub fn is_within(&self, mut inner: ContextId, outer: ContextId) -> bool {
        while inner != outer {
            if inner == ROOT {
                return false;
            }
            inner = self.contexts[inner].parent;
        }
        true
    }

    /// The innermost loop a context is in.
    fn loop_of(&self, mut context: ContextId) -> ContextId {
        while context != ROOT && !matches!(self.contexts[context].kind, ContextKind::Loop { .. }) {
            context = self.contexts[context].parent;
        }
        context
    }

    /// The tensor for `e` in context `to`. Adds the nodes that bring it in.
    pub fn bring(
        &mut self,
        e: Endpoint,
        to: ContextId,
        at: &'static Location<'static>,
    ) -> Result<Endpoint> {
        let from = self.places[e.node.index()];
        if from == to {
            return Ok(e);
        }
        if !self.is_within(to, from) {
            bail!(
                InvalidArgument,
                "'{}' is inside a branch or a loop and cannot be used outside of it; return it from \
                 the closure",
                self.ir.node(e.node).name
            );
        }
        if let Some(&found) = self.contexts[to].brought.get(&e) {
            return Ok(found);
        }
        let outer = self.bring(e, self.contexts[to].parent, at)?;
        let found = match &self.contexts[to].kind {
            ContextKind::Root => outer,
            ContextKind::Branch { predicate, side, .. } => {
                let (predicate, slot) = (*predicate, usize::from(*side));
                let node =
                    self.primitive("Switch", to, vec![outer, predicate], Attrs::new(), at)?;
                Endpoint::new(node, slot)
            }
            ContextKind::Loop { frame, parallel_iterations, .. } => {
                let attrs = Attrs::new()
                    .with("frame_name", frame.as_str())
                    .with("is_constant", true)
                    .with("parallel_iterations", *parallel_iterations);
                Endpoint::new(self.primitive("Enter", to, vec![outer], attrs, at)?, 0)
            }
        };
        self.contexts[to].brought.insert(e, found);
        Ok(found)
    }

    /// Adds a control flow node to a context. Its outputs get the shape of its first input.
    pub fn primitive(
        &mut self,
        op: &str,
        place: ContextId,
        inputs: Vec<Endpoint>,
        attrs: Attrs,
        at: &'static Location<'static>,
    ) -> Result<NodeId> {
        let first = inputs.first().copied();
        let is_ref = first.is_some_and(|e| self.ir.type_of(e).is_ref);
        let base = if is_ref { format!("Ref{op}") } else { op.to_string() };
        let found = self.catalog.get(&base).cloned();
        let def = found.ok_or_else(|| err!(Unimplemented, "the catalog lacks {base}"))?;
        let mut attrs = attrs;
        if let Some(first) = first {
            attrs.set("T", self.ir.type_of(first).dtype);
        }
        if def.attr("N").is_some() {
            attrs.set("N", inputs.len() as i64);
        }
        let name = self.names.unique(&join(&self.contexts[place].scope, op));
        let device = first.map(|e| self.ir.node(e.node).device.clone()).unwrap_or_default();
        let spec = NewNode { name, op: def, attrs, inputs, controls: Vec::new(), at };
        let id = self.add_plain(spec, place)?;
        self.ir.node_mut(id).device = device;
        if let Some(first) = first {
            // `Merge` is an exception: its caller sets the common shape of all inputs.
            let shape = self.shape(first);
            let is_merge = self.ir.node(id).op.control_flow == Some(ControlFlow::Merge);
            let passed = if is_merge { 0 } else { self.shapes[id.index()].len() };
            self.shapes[id.index()][..passed].fill(shape);
        }
        Ok(id)
    }

    /// Ties a node to its branch or loop. A node without inputs from inside depends on the pivot,
    /// and no node inside a loop depends on nodes outside.
    pub fn add_pivot(&mut self, spec: &mut NewNode, context: ContextId) -> Result<()> {
        let pivot = match &self.contexts[context].kind {
            ContextKind::Root => None,
            ContextKind::Branch { pivot, .. } | ContextKind::Loop { pivot, .. } => *pivot,
        };
        let here = self.loop_of(context);
        for c in &spec.controls {
            let from = self.places[c.index()];
            if !self.is_within(context, from) {
                bail!(
                    InvalidArgument,
                    "'{}' depends on '{}', which is inside a branch or a loop",
                    spec.name,
                    self.ir.node(*c).name
                );
            }
        }
        let places = std::mem::take(&mut self.places);
        spec.controls.retain(|c| self.loop_of(places[c.index()]) == here);
        self.places = places;
        let is_tied = !spec.inputs.is_empty()
            || spec.controls.iter().any(|c| self.places[c.index()] == context);
        if let (Some(pivot), false) = (pivot, is_tied) {
            spec.controls.push(pivot);
        }
        Ok(())
    }
}
