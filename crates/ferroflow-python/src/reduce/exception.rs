//! Errors of collectives as Python exceptions.

use ferroflow_core::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The exception for an error of a collective. `ferroflow/_hvd/errors.py` chooses its class.
pub(super) fn raised(py: Python<'_>, e: &Error) -> PyErr {
    let made = py
        .import("ferroflow._hvd.errors")
        .and_then(|errors| errors.call_method1("of_code", (e.code() as i32, e.message())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(e.message().to_string()),
    }
}
