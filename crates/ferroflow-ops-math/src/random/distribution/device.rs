//! Random numbers in the memory of a GPU: the same bits as on the CPU.

use super::Shaped;
use crate::prelude::*;
use ferroflow_core::{Gpu, LaunchArg};
use ferroflow_op_kit::gpu::{self, GpuKernel, address, c_type, length};
use ferroflow_op_kit::philox::Philox;

const PHILOX: &str = include_str!("philox.cu");
const FLOATS: &str = include_str!("floats.cu");
const INTEGERS: &str = include_str!("integers.cu");

/// Fills `out` from the start of `stream`.
pub(crate) fn fill_on_device(which: Shaped, stream: Philox, out: &Tensor) -> Result<()> {
    match which {
        Shaped::Uniform => run("uniform", stream, &[], out),
        Shaped::Normal => run("normal", stream, &[], out),
        Shaped::Truncated => run("truncated", stream, &[], out),
        Shaped::FullInt => run("integers", stream, &[0, 0], out),
    }
}

/// Fills `out`, of int32 or int64, with integers in `low..high`.
pub(crate) fn fill_range_on_device(
    stream: Philox,
    low: i64,
    high: i64,
    out: &Tensor,
) -> Result<()> {
    let range = match out.dtype() {
        DType::Int32 => i64::from(Ord::max((high as u32).wrapping_sub(low as u32), 1)),
        _ => Ord::max((high as u64).wrapping_sub(low as u64), 1) as i64,
    };
    run("integers", stream, &[low, range], out)
}

/// Begins to compile the kernel that [`fill_on_device`] runs, if the node is on a GPU.
pub(crate) fn prepare(init: &KernelInit<'_>, which: Shaped, dtype: DType) -> Result<()> {
    match init.node.device.gpu {
        Some(_) => gpu::prepare(init, &text(matches!(which, Shaped::FullInt), dtype)?),
        None => Ok(()),
    }
}

/// The text of the kernels for integers, or of those for floats.
fn text(is_integer: bool, dtype: DType) -> Result<String> {
    let kernels = if is_integer { INTEGERS } else { FLOATS };
    Ok(format!("typedef {} T;\n{PHILOX}{kernels}", c_type(dtype)?))
}

fn run(name: &'static str, stream: Philox, more: &[i64], out: &Tensor) -> Result<()> {
    let (n, dtype) = (out.elements(), out.dtype());
    let text = text(name == "integers", dtype)?;
    let group = if dtype.size() == Some(8) { 2 } else { 4 };
    let [low, high] = stream.counter_words().map(|w| LaunchArg::I64(w as i64));
    let [k0, k1] = stream.key.map(|w| LaunchArg::I32(w as i32));
    let mut args = vec![length(n), low, high, k0, k1];
    args.extend(more.iter().map(|&x| LaunchArg::I64(x)));
    args.push(address(out)?);
    GpuKernel::new(text, name).over(gpu_of(out)?.as_ref(), n.div_ceil(group), &args)
}

fn gpu_of(t: &Tensor) -> Result<&Arc<dyn Gpu>> {
    t.gpu().ok_or_else(|| err!(Internal, "random numbers on a GPU in host memory"))
}
