//! The Python functions that Rust calls: conversions that programs can extend, and the classes of
//! dtypes and shapes. `python/framework/ops.py` installs them when it is imported.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

pub struct Hooks {
    /// `convert(value, dtype, name, as_ref, preferred_dtype) -> Tensor`.
    pub convert: Py<PyAny>,
    /// `as_dtype(value) -> DType`.
    pub as_dtype: Py<PyAny>,
    /// `as_shape(value) -> TensorShape`.
    pub as_shape: Py<PyAny>,
    /// `object_array(values, shape) -> numpy.ndarray`.
    pub object_array: Py<PyAny>,
    /// `py_func(token, arrays, dtype_numbers) -> list of arrays`.
    pub py_func: Py<PyAny>,
    /// The package's folder. Frames of files in it are not the user's.
    pub package: String,
    /// `DType` by number; reference types are numbered 100 above.
    dtypes: Vec<Option<Py<PyAny>>>,
    /// `numpy.dtype` by number.
    arrays: Vec<Option<Py<PyAny>>>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Installs the conversions. `dtypes` and `arrays` are keyed by TensorFlow's number of the dtype.
#[pyfunction]
#[pyo3(signature = (*, convert, as_dtype, as_shape, object_array, py_func, package, dtypes, arrays))]
pub fn install(
    py: Python<'_>,
    convert: Py<PyAny>,
    as_dtype: Py<PyAny>,
    as_shape: Py<PyAny>,
    object_array: Py<PyAny>,
    py_func: Py<PyAny>,
    package: String,
    dtypes: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let hooks = Hooks {
        convert,
        as_dtype,
        as_shape,
        object_array,
        py_func,
        package,
        dtypes: by_number(dtypes)?,
        arrays: by_number(arrays)?,
    };
    let _ = HOOKS.set(py, hooks);
    Ok(())
}

fn by_number(items: &Bound<'_, PyDict>) -> PyResult<Vec<Option<Py<PyAny>>>> {
    let mut list = Vec::new();
    for (number, item) in items {
        let number: usize = number.extract()?;
        if list.len() <= number {
            list.resize_with(number + 1, || None);
        }
        list[number] = Some(item.unbind());
    }
    Ok(list)
}

pub fn hooks(py: Python<'_>) -> PyResult<&Hooks> {
    HOOKS
        .get(py)
        .ok_or_else(|| PyRuntimeError::new_err("import ferroflow before ferroflow._ferroflow"))
}

impl Hooks {
    /// The `DType` with this number.
    pub fn dtype<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        match self.dtypes.get(number) {
            Some(Some(dtype)) => Ok(dtype.bind(py).clone()),
            _ => self.as_dtype.bind(py).call1((number,)),
        }
    }

    /// The `numpy.dtype` with this number. Calls Python for those that numpy does not have.
    pub fn array_dtype<'py>(
        &self,
        py: Python<'py>,
        number: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(Some(dtype)) = self.arrays.get(number) {
            return Ok(Some(dtype.bind(py).clone()));
        }
        let kind = self.dtype(py, number)?.getattr("as_numpy_dtype")?;
        let dtype = py.import("numpy")?.call_method1("dtype", (kind,))?;
        Ok(Some(dtype)
            .filter(|d| !d.getattr("hasobject").is_ok_and(|o| o.is_truthy().unwrap_or(true))))
    }
}
