//! The run of a step that is recorded: node by node, all on one thread.

use super::{Place, RecordedResult, RecordedRun, Recordings, Results};
use crate::executor::{Propagator, guarded, snapshot_refs};
use crate::flat::FlatState;
use crate::plan::{NodeKind, Plan};
use ferroflow_core::{
    Ctx, DType, FlushDenormals, InlineScope, KernelBox, Outputs, RecordableStep, RecordedStep,
    Resources, Result, StepCtx, StepMemory, Storage, StoredVariable, Tensor, ThreadKind, Value,
    ensure, err,
};
use std::sync::{Arc, Weak};

pub(super) struct RecordingRun<'a> {
    plan: &'a Plan,
    of: &'a Recordings,
    step: &'a Arc<StepCtx>,
    args: Vec<Tensor>,
    to: &'a Arc<Results>,
    removals: u64,
    feeds: Vec<Option<u64>>,
    /// Results, in the memory in which they were computed.
    results: Vec<Option<Tensor>>,
    variables: Vec<(Arc<StoredVariable>, Option<Place>)>,
    /// A node used a resource that is no variable.
    has_others: bool,
    has_run: bool,
}

impl<'a> RecordingRun<'a> {
    pub fn new(
        plan: &'a Plan,
        of: &'a Recordings,
        step: &'a Arc<StepCtx>,
        args: Vec<Tensor>,
        to: &'a Arc<Results>,
    ) -> RecordingRun<'a> {
        RecordingRun {
            plan,
            of,
            step,
            feeds: vec![None; args.len()],
            args,
            to,
            removals: step.resources.removals(),
            results: vec![None; plan.ret_names.len()],
            variables: Vec::new(),
            has_others: false,
            has_run: false,
        }
    }

    /// The recording of the step; `None` if it cannot be replayed.
    pub fn recorded(self, step: Arc<dyn RecordedStep>) -> Option<RecordedRun> {
        let mut variables = Vec::with_capacity(self.variables.len());
        for (variable, before) in self.variables {
            let after = variable.snapshot().as_ref().and_then(Place::of);
            variables.push((variable, before.filter(|before| Some(before) == after.as_ref())?));
        }
        variables.sort_by_key(|(variable, _)| Arc::as_ptr(variable));
        let results = self.results.into_iter().map(|result| {
            let result = result?;
            Some(match Place::of(&result) {
                Some(Place { address, dtype, shape }) => {
                    RecordedResult::OnDevice { address, dtype, shape }
                }
                None => RecordedResult::OnHost(result),
            })
        });
        let results = results.collect::<Option<Vec<_>>>()?;
        let resources: Weak<Resources> = Arc::downgrade(&self.step.resources);
        let (variables, places) = variables.into_iter().unzip();
        (!self.has_others).then_some(RecordedRun {
            step,
            feeds: self.feeds,
            results,
            variables,
            places,
            resources: (resources, self.removals),
        })
    }

    fn run_all(&mut self) -> Result<()> {
        let plan = self.plan;
        let values = FlatState::new(plan);
        let mut queue = plan.roots.clone();
        for (i, arg) in std::mem::take(&mut self.args).into_iter().enumerate() {
            // Copies of arguments come first, so that no other value uses their memory before.
            let mut copies = Vec::new();
            values.complete(plan, plan.args[i], Some(&mut [Value::Tensor(arg)]), &mut copies);
            for copy in copies {
                let mut outputs = self.run_node(&values, copy)?;
                if let Some(Value::Tensor(copied)) = outputs.first() {
                    self.feeds[i] = Some(copied.device_address()?);
                }
                values.complete(plan, copy, Some(&mut outputs[..]), &mut queue);
            }
        }
        // A variable is written after all nodes that read it have run, so that its memory stays the
        // same.
        let mut late = Vec::new();
        while let Some(node) = self.next(&mut queue).or_else(|| late.pop()) {
            if self.of.to_host.contains(&node) {
                self.keep_result(&values, node)?;
                continue;
            }
            if self.of.writers.contains(&node) && !queue.is_empty() {
                late.push(node);
                continue;
            }
            let mut outputs = self.run_node(&values, node)?;
            values.complete(plan, node, Some(&mut outputs[..]), &mut queue);
        }
        ensure!(
            self.results.iter().all(Option::is_some),
            Internal,
            "a recorded step has no value for {:?}",
            plan.ret_names
        );
        Ok(())
    }

    /// The next node. Those that results need come first, so that results are complete early.
    fn next(&self, queue: &mut Vec<u32>) -> Option<u32> {
        let first = queue.iter().rposition(|node| self.of.for_results.contains(node));
        first.map(|i| queue.remove(i)).or_else(|| queue.pop())
    }

    /// Keeps a value that is copied to the host.
    fn keep_result(&mut self, values: &FlatState, node: u32) -> Result<()> {
        let mut ready = node;
        let value = values.inputs(self.plan, &mut ready).first_mut().map(std::mem::take);
        let value = value.ok_or_else(|| err!(Internal, "a copy without a value"))?.into_tensor()?;
        for edge in self.plan.edges_of(&self.plan.nodes[node as usize]) {
            if let NodeKind::Ret(i) = self.plan.nodes[edge.to as usize].kind {
                self.results[i as usize] = Some(value.clone());
            }
        }
        if let Ok(address) = value.device_address() {
            self.of.gpu.note_result(address);
        }
        Ok(())
    }

    fn run_node(&mut self, values: &FlatState, node: u32) -> Result<Outputs> {
        let mut ready = node;
        let node = &self.plan.nodes[node as usize];
        let inputs = values.inputs(self.plan, &mut ready);
        let passed_on = match inputs.first() {
            Some(Value::Ref(variable)) if node.passes_ref => Some(variable.clone()),
            _ => None,
        };
        if node.derefs {
            snapshot_refs(node, inputs).map_err(|e| e.at_node(&node.info.name))?;
        }
        let mut outputs = Outputs::new();
        if let NodeKind::Ret(i) = node.kind {
            let value = inputs.first_mut().map(std::mem::take).unwrap_or_default();
            self.results[i as usize] = Some(value.into_tensor()?);
            return Ok(outputs);
        }
        let kernel = match &node.kernel {
            Some(KernelBox::Sync(kernel)) => kernel,
            // It passes its input on.
            Some(KernelBox::Async(_)) if inputs.len() == 1 => {
                outputs.extend(inputs.first_mut().map(std::mem::take));
                return Ok(outputs);
            }
            _ => return Err(err!(Internal, "{} waits in a recorded step", node.info.name)),
        };
        let scope = InlineScope::new(ThreadKind::Compute);
        let mut ctx = Ctx::new(inputs, &mut outputs, self.step, &node.info, (0, 0), &scope);
        guarded(|| kernel.compute(&mut ctx)).map_err(|e| e.at_node(&node.info.name))?;
        inputs.iter_mut().for_each(|v| *v = Value::Empty);
        if let (Some(variable), Some(output)) = (passed_on, outputs.first_mut()) {
            *output = Value::Ref(variable);
        }
        for output in &outputs {
            self.note_variables(output)?;
        }
        Ok(outputs)
    }

    /// Notes the variables that a value refers to, and where they are before the step changes them.
    fn note_variables(&mut self, value: &Value) -> Result<()> {
        let mut note = |variable: Arc<StoredVariable>| {
            if !self.variables.iter().any(|(known, _)| Arc::ptr_eq(known, &variable)) {
                let place = variable.snapshot().as_ref().and_then(Place::of);
                self.variables.push((variable, place));
            }
        };
        match value {
            Value::Ref(variable) => note(variable.clone()),
            Value::Tensor(t) if t.dtype() == DType::Resource => {
                for handle in t.handles()? {
                    match self.step.resources.find(&handle.container, &handle.name) {
                        Some(variable) => note(variable),
                        None => self.has_others = true,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl RecordableStep for RecordingRun<'_> {
    fn run(&mut self) -> Result<StepMemory> {
        let _denormals = FlushDenormals::begin();
        self.run_all()?;
        self.has_run = true;
        let block = |t: &Tensor| match t.storage() {
            Storage::Device(buffer) => Some(buffer.address()),
            _ => None,
        };
        Ok(StepMemory {
            feeds: self.feeds.iter().copied().flatten().collect(),
            fetches: self.results.iter().flatten().filter_map(block).collect(),
        })
    }

    fn finish(&mut self) {
        if !self.has_run {
            return;
        }
        for (i, result) in self.results.iter().enumerate() {
            let Some(value) = result else { continue };
            let to = self.to.clone();
            let scope = InlineScope::unknown;
            value.to_host(Box::new(move |copied| to.put(i, copied, &scope())));
        }
    }
}
