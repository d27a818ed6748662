//! Errors as Python exceptions.

use ferroflow_core::{Code, Error};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    ferroflow._ferroflow,
    StatusError,
    PyException,
    "A failed call of the runtime: its arguments are the code and the message."
);

/// The error of a step or a server. `errors.py` turns it into one of `tf.errors`.
pub fn status(e: &Error) -> PyErr {
    StatusError::new_err((e.code() as u8, e.message().to_string()))
}

/// The error of a change to a graph. TensorFlow's front end raises `ValueError` for all of these.
pub fn of_graph(e: &Error) -> PyErr {
    match e.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::OutOfRange => {
            PyValueError::new_err(e.message().to_string())
        }
        _ => status(e),
    }
}

pub fn wrong_type(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

pub fn wrong_value(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}
