//! `Check` builds one node of an op, runs its kernel and checks the outputs, also against the shape
//! function.

use crate::on_device::DeviceRun;
use crate::standalone_step;
use ferroflow_core::{
    AsyncCtx, Completion, Ctx, DType, DeviceInfo, Done, InlineScope, KernelBox, MemoryOwner,
    NodeInfo, Outputs, PartialShape, Resources, Result, StepCtx, StoredVariable, Tensor, Value,
    err,
};
use ferroflow_graph::{AttrValue, Attrs, Catalog, KernelInit, NoFunctions, OpDef, ShapeCtx};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// One op under test.
pub struct Check<'c> {
    pub(crate) catalog: &'c Catalog,
    pub(crate) op: &'c Arc<OpDef>,
    pub(crate) attrs: Attrs,
    pub(crate) inputs: Vec<Value>,
    resources: Arc<Resources>,
    step_resources: Option<Arc<Resources>>,
    session: Option<Arc<MemoryOwner>>,
}

impl<'c> Check<'c> {
    /// A check of `op` in `catalog`.
    pub fn new(catalog: &'c Catalog, op: &str) -> Check<'c> {
        let op = catalog.get(op).unwrap_or_else(|| panic!("op {op} is not in the catalog"));
        let resources = Arc::new(Resources::new());
        Check {
            catalog,
            op,
            attrs: Attrs::new(),
            inputs: Vec::new(),
            resources,
            step_resources: None,
            session: None,
        }
    }

    /// Sets an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.set(name, value);
        self
    }

    /// Adds the next input. Inputs determine type attributes and list lengths, unless these are
    /// set.
    pub fn input(mut self, value: Tensor) -> Self {
        self.inputs.push(value.into());
        self
    }

    /// Adds the next input, a reference to a variable.
    pub fn ref_input(mut self, variable: Arc<StoredVariable>) -> Self {
        self.inputs.push(Value::Ref(variable));
        self
    }

    /// Shares resources with other checks.
    pub fn resources(mut self, resources: &Arc<Resources>) -> Self {
        self.resources = resources.clone();
        self
    }

    /// Shares the step's resources with other checks.
    pub fn step_resources(mut self, resources: &Arc<Resources>) -> Self {
        self.step_resources = Some(resources.clone());
        self
    }

    /// Runs in this session, which owns the memory that the kernel allocates.
    pub fn session(mut self, session: &Arc<MemoryOwner>) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Runs the kernel and returns its outputs in order. Panics if an output contradicts the shape
    /// function, has another dtype than the signature, or differs from that of the GPU kernel.
    pub fn run(self) -> Result<Vec<Tensor>> {
        self.run_values()?.into_iter().map(Value::into_tensor).collect()
    }

    /// Like [`Check::run`], but does not read references.
    pub fn run_values(mut self) -> Result<Vec<Value>> {
        self.infer_attrs();
        let op = self.op.clone();
        let attrs = op.complete_attrs(std::mem::take(&mut self.attrs))?;
        let (inputs, outputs) = (op.input_types(&attrs)?, op.output_types(&attrs)?);
        assert_eq!(inputs.len(), self.inputs.len(), "{} takes {} inputs", op.name, inputs.len());
        let node = Arc::new(NodeInfo {
            name: "node_under_test".into(),
            op: op.name.clone(),
            device: Arc::new(DeviceInfo::cpu("localhost", 0, 0, 1)),
            default_container: "localhost".into(),
            outputs: outputs.len(),
        });
        let functions: Arc<dyn ferroflow_graph::FunctionInstantiator> = Arc::new(NoFunctions);
        let init = KernelInit {
            node: &node,
            attrs: &attrs,
            inputs: &inputs,
            outputs: &outputs,
            functions: &functions,
            is_fallback: false,
        };
        let kernel = op.kernel(&init)?;
        let promised = self.promised_shapes(&attrs, outputs.len());
        let on_device = DeviceRun::new(&op, &attrs, (&inputs, &outputs), &self.inputs);
        let is_ref = |v: &Value| if matches!(v, Value::Ref(_)) { v.clone() } else { Value::Empty };
        let variables: Vec<Value> = self.inputs.iter().map(is_ref).collect();
        let values = self.execute(kernel, &node)?;
        if let Some(on_device) = on_device {
            on_device.compare(&values, &variables);
        }
        for (i, value) in values.iter().enumerate() {
            let Value::Tensor(t) = value else { continue };
            assert_eq!(t.dtype(), outputs[i].dtype, "{} output {i}", op.name);
            if let Some(shapes) = &promised {
                let shape = &shapes[i];
                let is = t.shape();
                assert!(
                    shape.admits(is),
                    "{} output {i}: the shape function gives {shape}, the output has {is}",
                    op.name
                );
            }
        }
        Ok(values.into_vec())
    }

    /// Runs and expects this output. Floats are compared with a small tolerance; see
    /// [`assert_close`].
    #[track_caller]
    pub fn gives(self, want: Tensor) {
        let name = self.op.name.clone();
        let got = self.run().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_close(&got[0], &want, 1e-5, 1e-6);
    }

    /// Runs and expects an error with this code whose message contains `text`.
    #[track_caller]
    pub fn fails(self, code: ferroflow_core::Code, text: &str) {
        let name = self.op.name.clone();
        match self.run_values() {
            Ok(_) => panic!("{name} succeeded, expected {code:?} {text:?}"),
            Err(e) => {
                assert_eq!(e.code(), code, "{name}: {e}");
                assert!(e.message().contains(text), "{name}: {e} does not mention {text:?}");
            }
        }
    }

    /// Expects that one vector maps to another.
    #[track_caller]
    pub fn maps<T: ferroflow_core::Element, const N: usize, const M: usize>(
        self,
        from: [T; N],
        to: [T; M],
    ) {
        self.input(Tensor::vector(&from)).gives(Tensor::vector(&to));
    }

    fn promised_shapes(&self, attrs: &Attrs, outputs: usize) -> Option<Vec<PartialShape>> {
        let infer = self.op.shape.as_ref()?;
        let tensors: Vec<Option<Tensor>> =
            self.inputs.iter().map(|v| v.clone().into_tensor().ok()).collect();
        let shapes: Vec<PartialShape> = tensors
            .iter()
            .map(|t| t.as_ref().map_or(PartialShape::unknown(), |t| t.shape().into()))
            .collect();
        let ctx = ShapeCtx { attrs, inputs: &shapes, constants: &tensors, outputs };
        // The shape function may refuse inputs that the kernel refuses. The kernel's result
        // decides.
        let shapes = infer(&ctx).ok()?;
        assert_eq!(shapes.len(), outputs, "shape function of {}", self.op.name);
        Some(shapes)
    }

    fn execute(self, kernel: KernelBox, node: &Arc<NodeInfo>) -> Result<Outputs> {
        let mut step = standalone_step(self.resources);
        if let (Some(step), Some(resources)) = (Arc::get_mut(&mut step), self.step_resources) {
            step.step_resources = resources;
        }
        let Some(session) = self.session else { return execute(kernel, self.inputs, step, node) };
        if let Some(step) = Arc::get_mut(&mut step) {
            step.memory = session.clone();
        }
        session.run(|| execute(kernel, self.inputs, step, node))
    }

    /// Sets the attributes that the inputs determine.
    fn infer_attrs(&mut self) {
        let dtype = |v: &Value| match v {
            Value::Ref(v) => v.dtype(),
            Value::Tensor(t) => t.dtype(),
            _ => panic!("an input has no value"),
        };
        let types: Vec<DType> = self.inputs.iter().map(dtype).collect();
        self.op.attrs_from_inputs(&types, &mut self.attrs);
    }
}

/// Runs one kernel.
pub(crate) fn execute(
    kernel: KernelBox,
    mut inputs: Vec<Value>,
    step: Arc<StepCtx>,
    node: &Arc<NodeInfo>,
) -> Result<Outputs> {
    match kernel {
        KernelBox::Sync(kernel) => {
            let mut outputs = Outputs::new();
            let scope = InlineScope::unknown();
            let mut ctx = Ctx::new(&mut inputs, &mut outputs, &step, node, (0, 0), &scope);
            kernel.compute(&mut ctx)?;
            Ok(outputs)
        }
        KernelBox::Async(kernel) => {
            let waiter = Arc::new(Waiter::default());
            let ctx =
                AsyncCtx { inputs: inputs.into(), step, node: node.clone(), frame_iter: (0, 0) };
            kernel.start(ctx, Done::new(waiter.clone(), 0), &InlineScope::unknown());
            waiter.wait()
        }
    }
}

#[derive(Default)]
struct Waiter {
    result: Mutex<Option<Result<Outputs>>>,
    changed: Condvar,
}

impl Waiter {
    fn wait(&self) -> Result<Outputs> {
        let mut result = self.result.lock();
        self.changed.wait_while_for(&mut result, |r| r.is_none(), Duration::from_secs(10));
        result.take().unwrap_or_else(|| Err(err!(DeadlineExceeded, "the kernel did not finish")))
    }
}

impl Completion for Waiter {
    fn complete(self: Arc<Self>, _: u64, result: Result<Outputs>, _: &InlineScope) {
        *self.result.lock() = Some(result);
        self.changed.notify_all();
    }
}

/// Asserts that dtype, shape and elements are equal. Floats are compared with a tolerance, and NaN
/// equals NaN.
#[track_caller]
pub fn assert_close(got: &Tensor, want: &Tensor, rtol: f64, atol: f64) {
    assert_eq!(got.dtype(), want.dtype(), "dtype: {got:?} vs {want:?}");
    assert_eq!(got.shape(), want.shape(), "shape: {got:?} vs {want:?}");
    let (Some(a), Some(b)) = (floats(got), floats(want)) else {
        assert_eq!(got, want);
        return;
    };
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= atol + rtol * y.abs();
        assert!(same, "element {i} is {x}, expected {y}\n got {got:?}\nwant {want:?}");
    }
}

pub(crate) fn floats(t: &Tensor) -> Option<Vec<f64>> {
    use ferroflow_core::{Complex32, Complex64, bf16, f16};
    Some(match t.dtype() {
        DType::Float => t.as_slice::<f32>().ok()?.iter().map(|&x| x as f64).collect(),
        DType::Double => t.as_slice::<f64>().ok()?.to_vec(),
        DType::Half => t.as_slice::<f16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        DType::BFloat16 => t.as_slice::<bf16>().ok()?.iter().map(|x| x.to_f64()).collect(),
        DType::Complex64 => {
            let pairs = t.as_slice::<Complex32>().ok()?.iter();
            pairs.flat_map(|z| [z.re as f64, z.im as f64]).collect()
        }
        DType::Complex128 => {
            t.as_slice::<Complex64>().ok()?.iter().flat_map(|z| [z.re, z.im]).collect()
        }
        _ => return None,
    })
}
