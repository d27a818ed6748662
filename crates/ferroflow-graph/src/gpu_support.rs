//! How an op runs on GPUs.

use crate::attr::Attrs;
use crate::graph::Node;
use crate::op_def::{ArgDef, KernelFn, PortType};
use ferroflow_core::DType;

/// Type attributes and the dtypes for which there is a GPU kernel.
pub type GpuTypes = &'static [(&'static str, &'static [DType])];

/// How an op runs on GPUs: with a kernel of its own, or with its CPU kernel, which then works in
/// either memory.
#[derive(Clone, Default)]
pub struct GpuSupport {
    /// The dtypes it is for. Attributes that are not named may have any.
    pub types: GpuTypes,
    /// What else the attributes must be.
    pub condition: Option<fn(&Attrs) -> bool>,
    /// Makes its GPU kernel; `None` means the CPU kernel.
    pub make: Option<KernelFn>,
    /// Inputs in host memory, by name.
    pub host_inputs: Vec<&'static str>,
    /// Outputs in host memory, by name.
    pub host_outputs: Vec<&'static str>,
}

impl GpuSupport {
    /// Whether it is for nodes with these attributes.
    pub fn takes(&self, attrs: &Attrs) -> bool {
        let has = |(attr, dtypes): &(&str, &[DType])| {
            attrs.dtype(attr).is_ok_and(|dtype| dtypes.contains(&dtype))
        };
        self.types.iter().all(has) && self.condition.is_none_or(|holds| holds(attrs))
    }

    /// Whether a tensor of this type is in host memory even so. Shapes and axes are `int32` and
    /// stay there, unless a kernel takes or makes them.
    fn stays_on_host(&self, port: PortType) -> bool {
        !port.dtype.is_plain() || (self.make.is_none() && port.dtype == DType::Int32)
    }
}

/// Which inputs and outputs of a node on a GPU are in the GPU's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuPorts {
    /// For each input.
    pub inputs: Vec<bool>,
    /// For each output.
    pub outputs: Vec<bool>,
}

impl GpuPorts {
    /// The ports of `node`, which is placed on a GPU. A node without a GPU kernel runs on the host.
    pub fn of(node: &Node) -> GpuPorts {
        let Some(gpu) = node.op.gpu.as_ref().filter(|gpu| gpu.takes(&node.attrs)) else {
            let (inputs, outputs) = (node.input_types.len(), node.output_types.len());
            return GpuPorts { inputs: vec![false; inputs], outputs: vec![false; outputs] };
        };
        let side = |args: &[ArgDef], on_host: &[&str], types: &[PortType]| {
            let named = args.iter().flat_map(|arg| {
                let n = arg.port_types(&node.attrs).map_or(0, |ports| ports.len());
                std::iter::repeat_n(on_host.contains(&arg.name.as_str()), n)
            });
            let ports = types.iter().zip(named);
            ports.map(|(port, is_host)| !is_host && !gpu.stays_on_host(*port)).collect()
        };
        GpuPorts {
            inputs: side(&node.op.inputs, &gpu.host_inputs, &node.input_types),
            outputs: side(&node.op.outputs, &gpu.host_outputs, &node.output_types),
        }
    }
}
