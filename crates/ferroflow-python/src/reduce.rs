//! `ferroflow._ferroflow.reduce`: the collectives for Python programs of any framework.
//!
//! `world` has the ranks of a job and collectives on named tensors, as in Horovod. `group` has the
//! ordered collectives and messages of a torch process group. Both work in the memory of the
//! caller's arrays, and release the GIL while they wait.

mod completions;
mod exception;
mod group;
mod handle;
mod jax;
mod tensorflow;
mod world;

pub(crate) use world::ClientStep;

use pyo3::prelude::*;

/// Adds the submodule `reduce`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "reduce")?;
    module.add_class::<handle::ReduceHandle>()?;
    module.add_class::<handle::ReducedValues>()?;
    module.add_class::<group::GroupListener>()?;
    module.add_class::<group::OrderedGroup>()?;
    module.add_class::<group::GroupWork>()?;
    module.add_function(wrap_pyfunction!(jax::jax_handler, &module)?)?;
    module.add_function(wrap_pyfunction!(tensorflow::tensorflow_functions, &module)?)?;
    module.add_function(wrap_pyfunction!(tensorflow::register_tensorflow_ops, &module)?)?;
    world::register(&module)?;
    parent.add_submodule(&module)
}
