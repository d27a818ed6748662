//! Converts tensors from and to numpy's arrays. A result without other owners becomes an array over
//! the same memory.

use crate::attr::dtype_from_python;
use crate::error::{status, wrong_type};
use crate::hooks::hooks;
use crate::wire;
use bytes::Bytes;
use ferroflow_core::{DType, Shape, Tensor};
use numpy::npyffi::{self, NPY_ARRAY_WRITEABLE, npy_intp};
use numpy::{
    PY_ARRAY_API, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::ffi::c_void;

/// An array whose memory a tensor uses.
struct ArrayMemory {
    _array: Py<PyAny>,
    data: *const u8,
    len: usize,
}

// SAFETY: the memory is only read, and the array is dropped with the GIL by Py.
unsafe impl Send for ArrayMemory {}
// SAFETY: as above.
unsafe impl Sync for ArrayMemory {}

impl AsRef<[u8]> for ArrayMemory {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the array is contiguous, has `len` bytes, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Smaller arrays are copied, which costs less than keeping them.
const SHARE_FROM: usize = 1 << 16;

/// A tensor over the memory of an array where that is possible, else with a copy of its contents.
/// The caller must drop the tensor before Python code may write to the array again.
pub fn share_numpy(array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Tensor> {
    if let (Ok(plain), Some(size)) = (array.downcast::<PyUntypedArray>(), dtype.size())
        && dtype != DType::Bool
        && plain.is_c_contiguous()
        && plain.dtype().itemsize() == size
        && plain.len() * size >= SHARE_FROM
    {
        let len = plain.len() * size;
        // SAFETY: the array exists.
        let data = unsafe { (*plain.as_array_ptr()).data.cast::<u8>().cast_const() };
        let memory = ArrayMemory { _array: array.clone().unbind(), data, len };
        let bytes = Bytes::from_owner(memory);
        let shape = Shape::from(plain.shape());
        return Tensor::from_bytes(dtype, shape, bytes).map_err(|e| status(&e));
    }
    from_numpy(array, dtype)
}

/// A tensor of this dtype with the contents of an array. The array must have the matching numpy
/// dtype, or hold strings.
pub fn from_numpy(array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Tensor> {
    let py = array.py();
    let Ok(plain) = array.downcast::<PyUntypedArray>() else {
        let kind = array.get_type().name()?;
        return Err(wrong_type(format!("expected a numpy array, got {kind}")));
    };
    let shape = Shape::from(plain.shape());
    if dtype == DType::String {
        let items = array.call_method0("ravel")?.call_method0("tolist")?;
        let values: Vec<Bytes> =
            items.try_iter()?.map(|item| string(&item?)).collect::<PyResult<_>>()?;
        return Tensor::from_strings(shape, values).map_err(|e| status(&e));
    }
    let size = dtype
        .size()
        .ok_or_else(|| wrong_type(format!("a {dtype} tensor cannot be made from a numpy array")))?;
    let itemsize = plain.dtype().itemsize();
    if itemsize != size {
        return Err(wrong_type(format!(
            "an array of {} bytes an element cannot be a {dtype} tensor",
            itemsize
        )));
    }
    let contiguous = match plain.is_c_contiguous() {
        true => plain.clone(),
        false => {
            let copy = py.import("numpy")?.call_method1("ascontiguousarray", (array,))?;
            copy.downcast_into::<PyUntypedArray>()?
        }
    };
    let len = shape.elements() * size;
    let mut tensor = Tensor::alloc(dtype, shape).map_err(|e| status(&e))?;
    // SAFETY: the array is contiguous and has as many elements of this size. This thread holds the
    // GIL, so Python code cannot free the array.
    let from = unsafe {
        let data = (*contiguous.as_array_ptr()).data;
        if len == 0 { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), len) }
    };
    if dtype == DType::Bool {
        // Only 0 and 1 are valid.
        let to = tensor.as_mut_slice::<bool>().map_err(|e| status(&e))?;
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from != 0;
        }
    } else {
        tensor.bytes_mut().map_err(|e| status(&e))?.copy_from_slice(from);
    }
    Ok(tensor)
}

fn string(item: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = item.downcast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(bytes.as_bytes()));
    }
    match item.downcast::<PyString>() {
        Ok(text) => Ok(Bytes::copy_from_slice(text.to_cow()?.as_bytes())),
        Err(_) => {
            let kind = item.get_type().name()?;
            Err(wrong_type(format!("Expected binary or unicode string, got a {kind}")))
        }
    }
}

/// The value of a tensor attribute: an object with `dtype` and `array`, or a `TensorProto`.
pub fn from_attr(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if value.hasattr("SerializeToString")? {
        let bytes: Vec<u8> = value.call_method0("SerializeToString")?.extract()?;
        return wire::decode_tensor(bytes.into()).map_err(|e| crate::error::of_graph(&e));
    }
    let array = value.getattr("array")?;
    let dtype = dtype_from_python(py, &value.getattr("dtype")?)?;
    let tensor = from_numpy(&array, dtype)?;
    let shape: Option<Vec<usize>> = value.getattr("shape")?.extract()?;
    let Some(shape) = shape else { return Ok(tensor) };
    spread(tensor, &shape).map_err(|e| status(&e))
}

/// A tensor of this shape: the given values, with the last one repeated.
fn spread(tensor: Tensor, shape: &[usize]) -> ferroflow_core::Result<Tensor> {
    let shape = Shape::from(shape);
    if shape.elements() == tensor.elements() {
        return tensor.into_shape(shape);
    }
    wire::spread(&tensor, shape)
}

/// A tensor as an array, or as numpy's scalar if it has no dimensions and `scalars` is true.
pub fn to_numpy<'py>(
    py: Python<'py>,
    mut tensor: Tensor,
    scalars: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<usize> = tensor.shape().to_vec();
    let number = tensor.dtype().number() as usize;
    if tensor.dtype() == DType::String {
        let values = tensor.strings().map_err(|e| status(&e))?;
        if shape.is_empty() && scalars {
            return Ok(PyBytes::new(py, &values[0]).into_any());
        }
        let list = PyList::new(py, values.iter().map(|s| PyBytes::new(py, s)))?;
        return hooks(py)?.object_array.bind(py).call1((list, shape));
    }
    let Some(descr) = hooks(py)?.array_dtype(py, number)? else {
        let text = format!("a {} tensor cannot become a numpy array", tensor.dtype());
        return Err(wrong_type(text));
    };
    let descr = descr.downcast_into::<PyArrayDescr>()?;
    if !tensor.is_unique() {
        tensor = tensor.deep_copy().map_err(|e| status(&e))?;
    }
    let mut dims: Vec<npy_intp> = shape.iter().map(|&d| d as npy_intp).collect();
    let data = tensor.bytes_mut().map_err(|e| status(&e))?.as_mut_ptr();
    let owner = Bound::new(py, TensorMemory { _tensor: tensor })?;
    // SAFETY: `data` is the memory of the tensor. `owner` keeps it alive, and it has no other
    // readers or writers. It holds as many elements of the descriptor's size as `dims` states.
    // NewFromDescr takes the reference to the descriptor, SetBaseObject that to the owner.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            PY_ARRAY_API.get_type_object(py, npyffi::NpyTypes::PyArray_Type),
            descr.into_ptr().cast(),
            dims.len() as i32,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data.cast::<c_void>(),
            NPY_ARRAY_WRITEABLE,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let based = PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr());
        if based < 0 {
            return Err(PyErr::fetch(py));
        }
        if shape.is_empty() && scalars {
            let scalar = PY_ARRAY_API.PyArray_Return(py, array.into_ptr().cast());
            return Bound::from_owned_ptr_or_err(py, scalar);
        }
        Ok(array)
    }
}

/// Keeps the memory of an array alive.
#[pyclass(frozen, module = "ferroflow._ferroflow")]
struct TensorMemory {
    _tensor: Tensor,
}

/// The serialized `TensorProto` of an array of this dtype, in the form that TensorFlow's Python
/// writes. `shape` is that of the tensor, if the array has only its first values.
#[pyfunction]
#[pyo3(signature = (array, dtype, shape=None))]
pub fn encode_tensor<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    shape: Option<Vec<usize>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let tensor = from_numpy(array, dtype_from_python(py, dtype)?)?;
    let given = tensor.elements();
    let (tensor, form) = match shape {
        Some(shape) => {
            let tensor = spread(tensor, &shape).map_err(|e| status(&e))?;
            let form = (tensor.elements() != given).then_some(given);
            (tensor, form)
        }
        None => (tensor, None),
    };
    let bytes = wire::encode_tensor(&tensor, form).map_err(|e| status(&e))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The array in a serialized `TensorProto`.
#[pyfunction]
pub fn decode_tensor<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let tensor = wire::decode_tensor(Bytes::copy_from_slice(bytes)).map_err(|e| status(&e))?;
    to_numpy(py, tensor, false)
}
