//! `ferroflow._ferroflow`: the part of the Python package that is written in Rust. It owns graphs
//! and sessions; Python holds handles to their nodes. `reduce` has the collectives for all
//! frameworks.

mod apply;
mod array;
mod attr;
mod bfloat16;
mod body;
mod command;
mod constant;
mod error;
mod exit;
mod graph;
mod handles;
mod hooks;
mod import;
mod infer;
mod made_at;
mod names;
mod ops;
mod py_func;
mod reduce;
mod rewire;
mod server;
mod session;
mod unsupported;
mod wire;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: ferroflow_core::CountedHeap<ferroflow_core::Mimalloc> =
    ferroflow_core::CountedHeap(ferroflow_core::Mimalloc);

#[pymodule]
fn _ferroflow(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("StatusError", module.py().get_type::<error::StatusError>())?;
    module.add_class::<graph::GraphCore>()?;
    module.add_class::<handles::PyOperation>()?;
    module.add_class::<handles::PyTensor>()?;
    module.add_class::<session::SessionCore>()?;
    module.add_class::<server::ServerCore>()?;
    module.add_function(wrap_pyfunction!(hooks::install, module)?)?;
    module.add_function(wrap_pyfunction!(ops::op_names, module)?)?;
    module.add_function(wrap_pyfunction!(ops::op_def, module)?)?;
    module.add_function(wrap_pyfunction!(ops::has_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(array::encode_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(array::decode_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(session::reset, module)?)?;
    module.add_function(wrap_pyfunction!(session::gpu_descriptions, module)?)?;
    module.add_function(wrap_pyfunction!(bfloat16::bfloat16_base, module)?)?;
    module.add_function(wrap_pyfunction!(bfloat16::register_bfloat16, module)?)?;
    module.add_function(wrap_pyfunction!(command::main, module)?)?;
    exit::register(module)?;
    reduce::register(module)?;
    Ok(())
}
