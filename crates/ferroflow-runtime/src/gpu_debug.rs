//! Waits for the work of each node on a GPU, so that the error of a faulty kernel names its node.
//! Without this, the error appears at the next node that waits for the GPU, such as a copy to the
//! host.

use ferroflow_core::{Ctx, KernelBox, NodeInfo};
use std::sync::OnceLock;

/// The variable that turns this on for the process, if it is `1`.
const VARIABLE: &str = "FERROFLOW_GPU_DEBUG";

/// Whether each node waits for its GPU.
pub(crate) fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| std::env::var(VARIABLE).is_ok_and(|value| value == "1"))
}

/// Wraps the `kernel` of a node so that it waits until its GPU has completed the work.
pub(crate) fn waiting(kernel: KernelBox, info: &NodeInfo) -> KernelBox {
    match (kernel, &info.device.gpu) {
        (KernelBox::Sync(kernel), Some(gpu)) => {
            let gpu = gpu.clone();
            KernelBox::new(move |ctx: &mut Ctx<'_>| {
                kernel.compute(ctx)?;
                gpu.synchronize()
            })
        }
        (kernel, _) => kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{
        DeviceInfo, Gpu, InlineScope, Launch, LaunchArg, Outputs, Resources, Value,
    };
    use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
    use std::sync::Arc;

    const TEXT: &str = r#"extern "C" __global__ void nothing(i64 n) {}"#;

    /// A node whose kernel faults when it runs on the GPU.
    fn faulty() -> (KernelBox, Arc<NodeInfo>) {
        let options = SimulatedGpuOptions { fault_at_launch: Some(1), ..Default::default() };
        let gpu: Arc<dyn Gpu> = SimulatedGpu::new(0, options);
        let kernel = KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let function = ctx.gpu()?.load(TEXT, "nothing")?;
            let args = [LaunchArg::I64(0)];
            ctx.gpu()?.launch(&Launch { function, grid: [1; 3], block: [1; 3], args: &args })
        });
        let info = NodeInfo {
            name: "faulty".into(),
            op: "Faulty".into(),
            device: Arc::new(DeviceInfo::gpu("localhost", 0, 0, 1, gpu)),
            default_container: "localhost".into(),
            outputs: 0,
        };
        (kernel, Arc::new(info))
    }

    fn run(kernel: &KernelBox, info: &Arc<NodeInfo>) -> ferroflow_core::Result<()> {
        let KernelBox::Sync(kernel) = kernel else { panic!("an async kernel") };
        let step = ferroflow_testing::standalone_step(Arc::new(Resources::new()));
        let (mut inputs, mut outputs): (Vec<Value>, _) = (Vec::new(), Outputs::new());
        let scope = InlineScope::unknown();
        kernel.compute(&mut Ctx::new(&mut inputs, &mut outputs, &step, info, (0, 0), &scope))
    }

    #[test]
    fn a_fault_shows_at_its_own_node_only_if_the_node_waits() {
        let (kernel, info) = faulty();
        assert!(run(&kernel, &info).is_ok());
        let (kernel, info) = faulty();
        let e = run(&waiting(kernel, &info), &info).unwrap_err();
        assert!(e.message().contains("illegal address"), "{e}");
    }
}
