//! Runs a node under test a second time, on a simulated GPU, and compares with the CPU's answer.

use crate::check::{assert_close, execute};
use crate::standalone_step;
use ferroflow_core::{
    DType, DeviceInfo, Gpu, NodeInfo, Resources, Result, StoredVariable, Tensor, Value,
};
use ferroflow_graph::{
    Attrs, FunctionInstantiator, GpuPorts, KernelInit, NoFunctions, Node, OpDef, PortType,
};
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use std::sync::{Arc, OnceLock};

/// A node with its inputs in the memory that its GPU kernel takes them from.
pub(crate) struct DeviceRun {
    node: Node,
    device: Arc<DeviceInfo>,
    inputs: Vec<Value>,
}

fn gpu() -> &'static Arc<SimulatedGpu> {
    static GPU: OnceLock<Arc<SimulatedGpu>> = OnceLock::new();
    GPU.get_or_init(|| SimulatedGpu::new(0, SimulatedGpuOptions::default()))
}

impl DeviceRun {
    /// Copies the inputs of a node, if its op has a GPU kernel for it. `None` for other ops, and
    /// for those that take resources, which would be in the CPU's memory.
    pub(crate) fn new(
        op: &Arc<OpDef>,
        attrs: &Attrs,
        types: (&[PortType], &[PortType]),
        inputs: &[Value],
    ) -> Option<DeviceRun> {
        let takes_resources = types.0.iter().any(|port| port.dtype == DType::Resource);
        // A new kernel of a random op with a seed begins the same stream.
        let is_seeded = attrs.int("seed").is_ok_and(|seed| seed != 0);
        if !op.runs_on_gpu(attrs) || takes_resources || (op.is_stateful && !is_seeded) {
            return None;
        }
        let node = Node {
            name: "node_under_test".into(),
            op: op.clone(),
            attrs: Arc::new(attrs.clone()),
            inputs: Vec::new(),
            controls: Vec::new(),
            input_types: types.0.to_vec(),
            output_types: types.1.to_vec(),
            device: String::new(),
            original_names: Vec::new(),
        };
        let on_device = GpuPorts::of(&node).inputs;
        let gpu: Arc<dyn Gpu> = gpu().clone();
        let copied = inputs.iter().zip(on_device).map(|(value, on_device)| match value {
            Value::Tensor(t) if on_device => t.to_device(&gpu).map(Value::Tensor),
            Value::Tensor(t) => t.deep_copy().map(Value::Tensor),
            Value::Ref(variable) => copy_of(variable, on_device, &gpu).map(Value::Ref),
            other => Ok(other.clone()),
        });
        let inputs = copied.collect::<Result<Vec<Value>>>().expect("inputs fit on the device");
        let device = Arc::new(DeviceInfo::gpu("localhost", 0, 0, 1, gpu));
        Some(DeviceRun { node, device, inputs })
    }

    /// Panics unless the GPU kernel gives `want`, and leaves `variables` as the CPU kernel did.
    #[track_caller]
    pub(crate) fn compare(self, want: &[Value], variables: &[Value]) {
        let DeviceRun { node, device, inputs } = self;
        let info = Arc::new(NodeInfo {
            name: node.name.clone(),
            op: node.op.name.clone(),
            device,
            default_container: "localhost".into(),
            outputs: node.output_types.len(),
        });
        let functions: Arc<dyn FunctionInstantiator> = Arc::new(NoFunctions);
        let kernel = node.op.kernel(&KernelInit {
            node: &info,
            attrs: &node.attrs,
            inputs: &node.input_types,
            outputs: &node.output_types,
            functions: &functions,
            is_fallback: false,
        });
        let run = |kernel| {
            let step = standalone_step(Arc::new(Resources::new()));
            execute(kernel, inputs.clone(), step, &info)
        };
        let name = &node.op.name;
        let got = kernel.and_then(run).unwrap_or_else(|e| panic!("{name} on a GPU: {e}"));
        let on_device = GpuPorts::of(&node).outputs;
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let (Value::Tensor(got), Value::Tensor(want)) = (got, want) else { continue };
            let is_plain = got.dtype().is_plain();
            assert!(
                got.gpu().is_some() == (on_device[i] && is_plain),
                "{name} on a GPU: output {i} is not in the memory that the op declares"
            );
            same(got, want);
        }
        for (got, want) in inputs.iter().zip(variables) {
            if let (Value::Ref(got), Value::Ref(want)) = (got, want)
                && let (Some(got), Some(want)) = (got.snapshot(), want.snapshot())
            {
                same(&got, &want);
            }
        }
    }
}

fn copy_of(
    variable: &StoredVariable,
    on_device: bool,
    gpu: &Arc<dyn Gpu>,
) -> Result<Arc<StoredVariable>> {
    let declared = variable.declared_shape().clone();
    let copy = StoredVariable::new(variable.name(), variable.dtype(), declared);
    if let Some(value) = variable.snapshot() {
        copy.assign(if on_device { value.to_device(gpu)? } else { value.deep_copy()? });
    }
    Ok(Arc::new(copy))
}

/// The rounding of one type differs between the processor's functions and those of a GPU.
#[track_caller]
fn same(got: &Tensor, want: &Tensor) {
    let got = got.to_host_blocking().expect("a copy to the host");
    let (rtol, atol) = match want.dtype() {
        DType::Double => (1e-9, 1e-12),
        DType::Half => (4e-3, 1e-3),
        DType::BFloat16 => (2e-2, 1e-2),
        _ => (2e-5, 2e-6),
    };
    assert_close(&got, want, rtol, atol);
}
