//! `tf.py_func`: nodes that call a function of the Python program in this process.

use crate::array::{from_numpy, to_numpy};
use crate::exit::attached;
use crate::hooks::hooks;
use ferroflow_core::{Code, Ctx, DType, Error, KernelBox, Result, Tensor, ensure, err};
use ferroflow_graph::{Catalog, shape};
use pyo3::exceptions::{
    PyMemoryError, PyNotImplementedError, PyStopIteration, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

/// Declares the ops. A server in another process knows only their signatures.
pub fn register(c: &mut Catalog) {
    for (name, is_stateful) in [("PyFunc", true), ("PyFuncStateless", false)] {
        let op = c
            .op(name)
            .doc("Calls a function of the Python program.")
            .input("input: Tin")
            .output("output: Tout")
            .attr("token: string")
            .attr("Tin: list(type) >= 0")
            .attr("Tout: list(type) >= 0")
            .shape(shape::unknown)
            .expensive()
            .cpu(|init| {
                let token = init.attrs.string("token")?;
                let types = init.attrs.dtypes("Tout")?;
                Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| compute(ctx, &token, &types)))
            });
        if is_stateful {
            op.stateful();
        }
    }
}

fn compute(ctx: &mut Ctx<'_>, token: &str, types: &[DType]) -> Result<()> {
    let mut inputs = Vec::with_capacity(ctx.num_inputs());
    for i in 0..ctx.num_inputs() {
        inputs.push(ctx.input(i)?.clone());
    }
    let outputs = attached(|py| call(py, token, types, inputs).map_err(|e| failure(py, &e)))?;
    ensure!(
        outputs.len() == types.len(),
        InvalidArgument,
        "{token} returns {} values, but expects to see {} values.",
        outputs.len(),
        types.len()
    );
    for (i, value) in outputs.into_iter().enumerate() {
        ctx.set(i, value)?;
    }
    Ok(())
}

fn call(
    py: Python<'_>,
    token: &str,
    types: &[DType],
    inputs: Vec<Tensor>,
) -> PyResult<Vec<Tensor>> {
    let arrays: Vec<_> =
        inputs.into_iter().map(|t| to_numpy(py, t, true)).collect::<PyResult<_>>()?;
    let numbers: Vec<i32> = types.iter().map(|t| t.number()).collect();
    let results = hooks(py)?.py_func.bind(py).call1((token, arrays, numbers))?;
    let results: Vec<Bound<'_, PyAny>> = results.extract()?;
    results.iter().zip(types).map(|(array, dtype)| from_numpy(array, *dtype)).collect()
}

/// The error of a step whose function raised an exception.
fn failure(py: Python<'_>, e: &PyErr) -> Error {
    let code = if e.is_instance_of::<PyTypeError>(py) || e.is_instance_of::<PyValueError>(py) {
        Code::InvalidArgument
    } else if e.is_instance_of::<PyStopIteration>(py) {
        Code::OutOfRange
    } else if e.is_instance_of::<PyMemoryError>(py) {
        Code::ResourceExhausted
    } else if e.is_instance_of::<PyNotImplementedError>(py) {
        Code::Unimplemented
    } else {
        Code::Unknown
    };
    let traceback = e.traceback(py).and_then(|t| t.format().ok()).unwrap_or_default();
    let text = err!(Unknown, "{e}\n{traceback}");
    Error::new(code, text.message())
}
