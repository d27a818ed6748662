//! Loops that span tasks.

use super::nothing;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::graph::{Endpoint, GraphIr, NodeId};
use crate::op_def::{ControlFlow, OpDef};
use crate::passes::topological_order;
use ferroflow_core::{DType, Result, err};
use std::collections::HashMap;
use std::sync::Arc;

/// Outside all loops.
const ROOT: u32 = 0;

/// The loops of a graph.
pub(in crate::passes) struct Loops {
    frames: Vec<LoopFrame>,
    /// For each node, the loop that its outputs are in.
    leads_to: Vec<u32>,
    /// By loop and task, a node that runs in each iteration there.
    pivots: HashMap<(u32, u32), NodeId>,
}

struct LoopFrame {
    name: String,
    parent: u32,
    parallel_iterations: i64,
    /// The loop condition.
    condition: Option<NodeId>,
}

impl Loops {
    /// Finds the loops of a graph. Enter leads into a loop, Exit out of it.
    pub fn find(graph: &GraphIr) -> Result<Loops> {
        let root = LoopFrame {
            name: String::new(),
            parent: ROOT,
            parallel_iterations: 1,
            condition: None,
        };
        let mut loops =
            Loops { frames: vec![root], leads_to: vec![ROOT; graph.len()], pivots: HashMap::new() };
        let is_enter = |id: &NodeId| graph.node(*id).op.control_flow == Some(ControlFlow::Enter);
        if !graph.ids().any(|id| is_enter(&id)) {
            return Ok(loops);
        }
        let mut by_name: HashMap<String, u32> = HashMap::new();
        let mut seen = vec![false; graph.len()];
        for id in topological_order(graph) {
            let node = graph.node(id);
            let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
            let from = sources.into_iter().find(|s| seen[s.index()]);
            let frame = from.map_or(ROOT, |s| loops.leads_to[s.index()]);
            seen[id.index()] = true;
            loops.leads_to[id.index()] = match node.op.control_flow {
                Some(ControlFlow::Enter) => {
                    let name = node.attrs.string("frame_name")?;
                    let parallel_iterations = node.attrs.int("parallel_iterations")?;
                    *by_name.entry(name.clone()).or_insert_with(|| {
                        let parent = frame;
                        loops.frames.push(LoopFrame {
                            name,
                            parent,
                            parallel_iterations,
                            condition: None,
                        });
                        loops.frames.len() as u32 - 1
                    })
                }
                Some(ControlFlow::Exit) => loops.frames[frame as usize].parent,
                Some(ControlFlow::LoopCond) => {
                    loops.frames[frame as usize].condition.get_or_insert(id);
                    frame
                }
                _ => frame,
            };
        }
        Ok(loops)
    }

    /// The loop that a node's outputs are in, if any.
    pub fn leads_to(&self, id: NodeId) -> Option<u32> {
        self.leads_to.get(id.index()).copied().filter(|frame| *frame != ROOT)
    }

    /// Adds the nodes that make each task follow the loops in which it receives values. Also adds
    /// the tasks of those nodes.
    pub fn follow(
        &mut self,
        graph: &mut GraphIr,
        task_of: &mut Vec<u32>,
        catalog: &Catalog,
    ) -> Result<()> {
        if self.frames.len() == 1 {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for (id, node) in graph.iter() {
            let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
            for source in sources {
                let frame = self.leads_to[source.index()];
                if frame != ROOT && task_of[source.index()] != task_of[id.index()] {
                    wanted.push((frame, id));
                }
            }
        }
        let ops = Primitives::of(catalog)?;
        for (frame, by) in wanted {
            self.follow_one(graph, task_of, frame, by, &ops)?;
        }
        Ok(())
    }

    /// Adds a loop for `frame` and the frames around it on the task of `by`, unless they exist. Its
    /// variable is an empty tensor, and it has as many iterations as the real loop.
    fn follow_one(
        &mut self,
        graph: &mut GraphIr,
        task_of: &mut Vec<u32>,
        frame: u32,
        by: NodeId,
        ops: &Primitives,
    ) -> Result<Option<NodeId>> {
        let task = task_of[by.index()];
        if frame == ROOT {
            return Ok(None);
        }
        if let Some(pivot) = self.pivots.get(&(frame, task)) {
            return Ok(Some(*pivot));
        }
        let parent = self.frames[frame as usize].parent;
        let outer = self.follow_one(graph, task_of, parent, by, ops)?;
        let LoopFrame { name, parallel_iterations, condition, .. } = &self.frames[frame as usize];
        let condition = condition.ok_or_else(|| {
            err!(InvalidArgument, "A cross-device loop must have a pivot predicate: {name}")
        })?;
        let device = graph.node(by).device.clone();
        let prefix = format!("_cloop{}", graph.node(by).name);
        let mut add =
            |op: &Arc<OpDef>, base: &str, attrs, inputs, leads_to: u32| -> Result<NodeId> {
                let mut n = 0;
                let name = loop {
                    let name = format!("{base}_S{n}");
                    if graph.find(&name).is_none() {
                        break name;
                    }
                    n += 1;
                };
                let id = graph.add(name, op.clone(), attrs, inputs, vec![])?;
                graph.node_mut(id).device = device.clone();
                self.leads_to.push(leads_to);
                task_of.push(task);
                Ok(id)
            };
        let start = match outer {
            Some(pivot) => pivot,
            None => add(&ops.constant, &prefix, nothing()?, vec![], ROOT)?,
        };
        let of = |id: NodeId| Endpoint { node: id, slot: 0 };
        let float = || Attrs::new().with("T", DType::Float);
        let entering = float()
            .with("frame_name", name.as_str())
            .with("is_constant", false)
            .with("parallel_iterations", *parallel_iterations);
        let enter = add(&ops.enter, &prefix, entering, vec![of(start)], frame)?;
        let both = vec![of(enter), of(enter)];
        let merge = add(&ops.merge, &prefix, float().with("N", 2i64), both, frame)?;
        let switch = add(&ops.switch, &prefix, float(), vec![of(merge), of(condition)], frame)?;
        let goes_on = vec![Endpoint { node: switch, slot: 1 }];
        let next = add(&ops.next_iteration, &prefix, float(), goes_on, frame)?;
        graph.node_mut(merge).inputs[1] = of(next);
        self.pivots.insert((frame, task), merge);
        Ok(Some(merge))
    }

    /// The control input that makes a receive of `source` on `task` run once in each iteration.
    pub fn pivot(&self, source: NodeId, task: u32) -> Option<NodeId> {
        self.pivots.get(&(self.leads_to[source.index()], task)).copied()
    }
}

/// The ops of loops.
struct Primitives {
    constant: Arc<OpDef>,
    enter: Arc<OpDef>,
    merge: Arc<OpDef>,
    switch: Arc<OpDef>,
    next_iteration: Arc<OpDef>,
}

impl Primitives {
    fn of(catalog: &Catalog) -> Result<Primitives> {
        let op = |name: &str| {
            let op = catalog.get(name).cloned();
            op.ok_or_else(|| err!(Internal, "the catalog lacks {name}, which loops need"))
        };
        Ok(Primitives {
            constant: op("Const")?,
            enter: op("Enter")?,
            merge: op("Merge")?,
            switch: op("Switch")?,
            next_iteration: op("NextIteration")?,
        })
    }
}
