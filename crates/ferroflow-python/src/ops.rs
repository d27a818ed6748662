//! The ops of graphs, for the code that generates op functions.

use crate::error::of_graph;
use crate::py_func;
use crate::wire;
use ferroflow_graph::{Catalog, OpDef};
use ferroflow_train::default_catalog;
use ferroflow_train::hvd::World;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, LazyLock};

/// The all-reduce job of this process, connected or not. Its catalog has all ops of graphs.
pub fn world() -> &'static World {
    static WORLD: LazyLock<World> = LazyLock::new(|| {
        let mut catalog = Catalog::new();
        py_func::register(&mut catalog);
        catalog.add_signatures(default_catalog().iter().map(|op| (**op).clone()));
        World::unconnected(&catalog)
    });
    &WORLD
}

/// All ops with their signatures. The ops that Ferroflow runs also have shape functions and
/// kernels.
pub fn catalog() -> &'static Arc<Catalog> {
    world().catalog()
}

pub fn find(name: &str) -> Option<&'static Arc<OpDef>> {
    catalog().get(name)
}

/// The names of all ops.
#[pyfunction]
pub fn op_names() -> Vec<String> {
    catalog().iter().map(|op| op.name.clone()).collect()
}

/// The serialized `OpDef` of an op, or None.
#[pyfunction]
pub fn op_def<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(op) = find(name) else { return Ok(None) };
    let bytes = wire::encode_op(op).map_err(|e| of_graph(&e))?;
    Ok(Some(PyBytes::new(py, &bytes)))
}

/// Whether Ferroflow can run an op.
#[pyfunction]
pub fn has_kernel(name: &str) -> bool {
    find(name).is_some_and(|op| op.cpu.is_some())
}
