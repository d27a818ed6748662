//! Kernels on GPUs. An op gives its formula in CUDA C++; the generators here make the kernel's text
//! and launch it. Nothing here depends on CUDA: a [`Gpu`] compiles and runs the text.

pub mod copy;
pub mod elementwise;
mod formulas;
pub mod reduce;
mod row_program;
pub mod rows;
pub mod walk;

use crate::prelude::*;
use ferroflow_core::{Gpu, GpuFunction, Launch, LaunchArg};
use parking_lot::RwLock;
use std::sync::OnceLock;

pub use ferroflow_graph::GpuTypes;

/// `T` is a floating-point type.
pub const FLOAT: GpuTypes = &[("T", FLOATS)];
/// Floating-point types.
pub const FLOATS: &[DType] = &[DType::Half, DType::BFloat16, DType::Float, DType::Double];
/// `T` is a real number, but not `int32`, which stays in host memory.
pub const REAL: GpuTypes = &[("T", REALS)];
/// [`REAL`] for ops that call the attribute `dtype`.
pub const REAL_DTYPE: GpuTypes = &[("dtype", REALS)];
/// Real numbers, but not `int32`.
pub const REALS: &[DType] = &[
    DType::Half,
    DType::BFloat16,
    DType::Float,
    DType::Double,
    DType::Int8,
    DType::Int16,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
];
/// `T` is a real number or `bool`, but not `int32`.
pub const REAL_OR_BOOL: GpuTypes = &[("T", NUMBERS_OR_BOOL)];
/// Real numbers and `bool`, but not `int32`.
pub const NUMBERS_OR_BOOL: &[DType] = &[
    DType::Half,
    DType::BFloat16,
    DType::Float,
    DType::Double,
    DType::Int8,
    DType::Int16,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Bool,
];
/// `T` is an integer, but not `int32`.
pub const INTEGER: GpuTypes = &[(
    "T",
    &[
        DType::Int8,
        DType::Int16,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
    ],
)];
/// All plain types but `int32`, for kernels that move elements.
pub const MOVED: &[DType] = &[
    DType::Half,
    DType::BFloat16,
    DType::Float,
    DType::Double,
    DType::Int8,
    DType::Int16,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Bool,
    DType::Complex64,
    DType::Complex128,
];
/// The types of indices.
pub const INDEX: &[DType] = &[DType::Int32, DType::Int64];
/// All types that kernels compute with.
pub const COMPUTED: &[DType] = &[
    DType::Half,
    DType::BFloat16,
    DType::Float,
    DType::Double,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Bool,
];

/// The name of a dtype in kernels.
pub fn c_type(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::Half => "f16",
        DType::BFloat16 => "bf16",
        DType::Float => "f32",
        DType::Double => "f64",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::UInt8 => "u8",
        DType::UInt16 => "u16",
        DType::UInt32 => "u32",
        DType::UInt64 => "u64",
        DType::Bool => "bool",
        other => bail!(Unimplemented, "GPU kernels do not compute with {other}"),
    })
}

/// The ends of a type's finite range, in kernels whose type is `T`.
pub fn finite_range(dtype: DType) -> [&'static str; 2] {
    match dtype {
        DType::Half => ["-65504.0f", "65504.0f"],
        DType::BFloat16 => ["from_bits(0xff7f0000u)", "from_bits(0x7f7f0000u)"],
        DType::Float => ["from_bits(0xff7fffffu)", "from_bits(0x7f7fffffu)"],
        DType::Double => ["-1.7976931348623157e308", "1.7976931348623157e308"],
        _ => ["lowest<T>()", "highest<T>()"],
    }
}

/// A type of the same width, for kernels that only move elements.
pub fn c_width(dtype: DType) -> Result<&'static str> {
    Ok(match dtype.size() {
        Some(1) => "u8",
        Some(2) => "u16",
        Some(4) => "u32",
        Some(8) => "u64",
        Some(16) => "Pair",
        _ => bail!(Unimplemented, "a {dtype} tensor cannot be in the memory of a GPU"),
    })
}

/// Threads of a block in one-dimensional launches.
const BLOCK: usize = 256;
/// The most blocks of a one-dimensional launch; kernels loop over the rest.
const MAX_BLOCKS: usize = 1 << 20;

/// One kernel of a text. A node has its own, which is loaded on first use.
pub struct GpuKernel {
    text: Arc<str>,
    name: &'static str,
    function: OnceLock<GpuFunction>,
}

impl GpuKernel {
    /// The kernel `name` of `text`.
    pub fn new(text: impl Into<Arc<str>>, name: &'static str) -> GpuKernel {
        GpuKernel { text: text.into(), name, function: OnceLock::new() }
    }

    /// Begins to compile it, so that the first step waits less.
    pub fn prepared(self, init: &KernelInit<'_>) -> Result<GpuKernel> {
        prepare(init, &self.text)?;
        Ok(self)
    }

    fn function(&self, gpu: &dyn Gpu) -> Result<GpuFunction> {
        if let Some(&function) = self.function.get() {
            return Ok(function);
        }
        let made = gpu.load(&self.text, self.name)?;
        Ok(*self.function.get_or_init(|| made))
    }

    /// Launches about one thread for each of `n` elements. Does nothing if there are none.
    pub fn over(&self, gpu: &dyn Gpu, n: usize, args: &[LaunchArg]) -> Result<()> {
        let (grid, block) = one_dimensional(n);
        self.blocks(gpu, grid, block, args)
    }

    /// Launches a grid of blocks. Does nothing if there are none.
    pub fn blocks(
        &self,
        gpu: &dyn Gpu,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[LaunchArg],
    ) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        gpu.launch(&Launch { function: self.function(gpu)?, grid, block, args })
    }
}

/// A text with several kernels, for a node that uses some of them. They are loaded on first use.
pub struct GpuProgram {
    text: Arc<str>,
    known: RwLock<Vec<(&'static str, GpuFunction)>>,
}

impl GpuProgram {
    /// The kernels of `text`.
    pub fn new(text: impl Into<Arc<str>>) -> GpuProgram {
        GpuProgram { text: text.into(), known: RwLock::default() }
    }

    /// Begins to compile them, so that the first step waits less.
    pub fn prepared(self, init: &KernelInit<'_>) -> Result<GpuProgram> {
        prepare(init, &self.text)?;
        Ok(self)
    }

    /// Launches about one thread of kernel `name` for each of `n` elements.
    pub fn over(
        &self,
        gpu: &dyn Gpu,
        name: &'static str,
        n: usize,
        args: &[LaunchArg],
    ) -> Result<()> {
        let (grid, block) = one_dimensional(n);
        self.blocks(gpu, name, grid, block, args)
    }

    /// Launches a grid of blocks of kernel `name`. Does nothing if there are none.
    pub fn blocks(
        &self,
        gpu: &dyn Gpu,
        name: &'static str,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[LaunchArg],
    ) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let known = self.known.read().iter().find(|(known, _)| *known == name).map(|found| found.1);
        let function = match known {
            Some(function) => function,
            None => {
                let function = gpu.load(&self.text, name)?;
                self.known.write().push((name, function));
                function
            }
        };
        gpu.launch(&Launch { function, grid, block, args })
    }
}

/// The grid and the block of a launch with about one thread for each of `n` elements.
pub fn one_dimensional(n: usize) -> ([u32; 3], [u32; 3]) {
    ([n.div_ceil(BLOCK).min(MAX_BLOCKS) as u32, 1, 1], [BLOCK as u32, 1, 1])
}

/// Begins to compile a text that the node's kernel will use.
pub fn prepare(init: &KernelInit<'_>, text: &str) -> Result<()> {
    if !init.is_fallback {
        gpu_of(init)?.prepare(text);
    }
    Ok(())
}

/// The GPU of a node whose kernel is made.
pub fn gpu_of<'a>(init: &KernelInit<'a>) -> Result<&'a Arc<dyn Gpu>> {
    let gpu = init.node.device.gpu.as_ref();
    gpu.ok_or_else(|| err!(Internal, "a GPU kernel for {}", init.node.device.text))
}

/// The address of a tensor as an argument.
pub fn address(t: &Tensor) -> Result<LaunchArg> {
    Ok(LaunchArg::Address(t.device_address()?))
}

/// A length as an argument.
pub fn length(n: usize) -> LaunchArg {
    LaunchArg::I64(n as i64)
}
