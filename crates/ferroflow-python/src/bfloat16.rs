//! The numpy dtype `bfloat16`, for machines without the package ml_dtypes. Its arrays can be made,
//! converted, compared after a conversion, and pickled.

use half::{bf16, f16};
use numpy::PY_ARRAY_API;
use numpy::npyffi::{
    NPY_SCALARKIND, NPY_TYPES, NpyTypes, PyArray_ArrFuncs, PyArray_Descr, PyArray_DescrProto,
    npy_intp,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

/// Flags of a dtype whose elements Python code reads and writes.
const NEEDS_PYTHON: c_char = 0x10 | 0x40;

/// A subclass of `generic`, which is `numpy.generic`: the base of the type of elements. Its objects
/// have room for one element after their head.
#[pyfunction]
pub fn bfloat16_base<'py>(
    py: Python<'py>,
    generic: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut slots = [ffi::PyType_Slot { slot: 0, pfunc: std::ptr::null_mut() }];
    let head = size_of::<ffi::PyObject>();
    let mut spec = ffi::PyType_Spec {
        name: c"ferroflow._ferroflow.Bfloat16Base".as_ptr(),
        basicsize: (head + size_of::<usize>()) as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: Python copies `spec` and `slots`, and the name outlives the process. The objects
    // consist of a `generic` and a number, which needs no code of its own.
    unsafe {
        let bases = PyTuple::new(py, [generic])?;
        let made = ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Registers the dtype with `scalar`, a subclass of `numpy.generic`, as the type of its elements.
#[pyfunction]
pub fn register_bfloat16(py: Python<'_>, scalar: &Bound<'_, PyType>) -> PyResult<()> {
    // SAFETY: numpy keeps both structures for as long as the process runs; they are never freed.
    // All function pointers have the signatures that numpy declares. A zeroed structure is valid:
    // its fields are numbers and pointers, and numpy fills in the functions.
    unsafe {
        let functions: &mut PyArray_ArrFuncs = Box::leak(Box::new(std::mem::zeroed()));
        PY_ARRAY_API.PyArray_InitArrFuncs(py, functions);
        functions.getitem = Some(get_item);
        functions.setitem = Some(set_item);
        functions.copyswap = Some(copy_swap);
        functions.copyswapn = Some(copy_swap_n);
        functions.nonzero = Some(is_nonzero);
        functions.compare = Some(compare);
        let proto: &mut PyArray_DescrProto = Box::leak(Box::new(std::mem::zeroed()));
        let object = std::ptr::from_mut(proto).cast::<usize>();
        // The head of an object: its references and its type.
        object.write(1);
        object.add(1).write(PY_ARRAY_API.get_type_object(py, NpyTypes::PyArrayDescr_Type) as usize);
        proto.typeobj = scalar.clone().into_ptr().cast();
        proto.kind = b'V' as _;
        proto.type_ = b'E' as _;
        proto.byteorder = b'=' as _;
        proto.flags = NEEDS_PYTHON;
        proto.elsize = 2;
        proto.alignment = 2;
        proto.f = functions;
        proto.hash = -1;
        let number = PY_ARRAY_API.PyArray_RegisterDataType(py, proto);
        if number < 0 {
            return Err(PyErr::fetch(py));
        }
        register_casts(py, number)
    }
}

/// A cast between `bfloat16` and another type: numpy's number, to it, from it.
type Casts = (
    NPY_TYPES,
    unsafe extern "C" fn(*mut c_void, *mut c_void, npy_intp, *mut c_void, *mut c_void),
    unsafe extern "C" fn(*mut c_void, *mut c_void, npy_intp, *mut c_void, *mut c_void),
);

macro_rules! casts {
    ($($number:ident $t:ty, $to:expr, $from:expr;)*) => {
        [$((NPY_TYPES::$number, {
            unsafe extern "C" fn cast(
                from: *mut c_void, to: *mut c_void, n: npy_intp, _: *mut c_void, _: *mut c_void,
            ) {
                let convert: fn(f32) -> $t = $to;
                for i in 0..n as usize {
                    // SAFETY: numpy passes aligned memory of `n` elements of both types.
                    unsafe {
                        let x = bf16::from_bits(*from.cast::<u16>().add(i));
                        *to.cast::<$t>().add(i) = convert(x.to_f32());
                    }
                }
            }
            cast
        }, {
            unsafe extern "C" fn cast(
                from: *mut c_void, to: *mut c_void, n: npy_intp, _: *mut c_void, _: *mut c_void,
            ) {
                let convert: fn($t) -> bf16 = $from;
                for i in 0..n as usize {
                    // SAFETY: as above.
                    unsafe {
                        *to.cast::<u16>().add(i) = convert(*from.cast::<$t>().add(i)).to_bits();
                    }
                }
            }
            cast
        })),*]
    };
}

fn narrow(x: f64) -> bf16 {
    bf16::from_f32(x as f32)
}

const CASTS: [Casts; 16] = casts! {
    NPY_BOOL u8, |x| u8::from(x != 0.0), |x| narrow(f64::from(x));
    NPY_BYTE i8, |x| x as i8, |x| narrow(f64::from(x));
    NPY_UBYTE u8, |x| x as u8, |x| narrow(f64::from(x));
    NPY_SHORT i16, |x| x as i16, |x| narrow(f64::from(x));
    NPY_USHORT u16, |x| x as u16, |x| narrow(f64::from(x));
    NPY_INT i32, |x| x as i32, |x| narrow(f64::from(x));
    NPY_UINT u32, |x| x as u32, |x| narrow(f64::from(x));
    NPY_LONG i64, |x| x as i64, |x| narrow(x as f64);
    NPY_ULONG u64, |x| x as u64, |x| narrow(x as f64);
    NPY_LONGLONG i64, |x| x as i64, |x| narrow(x as f64);
    NPY_ULONGLONG u64, |x| x as u64, |x| narrow(x as f64);
    NPY_FLOAT f32, |x| x, bf16::from_f32;
    NPY_DOUBLE f64, f64::from, |x| bf16::from_f32(x as f32);
    NPY_HALF u16, |x| f16::from_f32(x).to_bits(), |x| bf16::from_f32(f16::from_bits(x).to_f32());
    NPY_CFLOAT [f32; 2], |x| [x, 0.0], |x| bf16::from_f32(x[0]);
    NPY_CDOUBLE [f64; 2], |x| [f64::from(x), 0.0], |x| narrow(x[0]);
};

/// The types that hold all values of `bfloat16`.
const WIDER: [NPY_TYPES; 4] =
    [NPY_TYPES::NPY_FLOAT, NPY_TYPES::NPY_DOUBLE, NPY_TYPES::NPY_CFLOAT, NPY_TYPES::NPY_CDOUBLE];

fn refused(py: Python<'_>) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("numpy refused a cast of bfloat16"))
}

/// # Safety
/// `number` is that of the registered dtype.
unsafe fn register_casts(py: Python<'_>, number: c_int) -> PyResult<()> {
    // SAFETY: the descriptors are numpy's own; it keeps the references that we take.
    unsafe {
        let own: *mut PyArray_Descr = PY_ARRAY_API.PyArray_DescrFromType(py, number);
        for (other, to, from) in CASTS {
            let other = other as c_int;
            let descr = PY_ARRAY_API.PyArray_DescrFromType(py, other);
            if PY_ARRAY_API.PyArray_RegisterCastFunc(py, own, other, Some(to)) < 0
                || PY_ARRAY_API.PyArray_RegisterCastFunc(py, descr, number, Some(from)) < 0
            {
                return Err(refused(py));
            }
        }
        // Lets numpy's functions work on wider copies.
        for wider in WIDER {
            let kind = NPY_SCALARKIND::NPY_NOSCALAR;
            if PY_ARRAY_API.PyArray_RegisterCanCast(py, own, wider as c_int, kind) < 0 {
                return Err(refused(py));
            }
        }
    }
    Ok(())
}

unsafe extern "C" fn get_item(data: *mut c_void, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: numpy passes an element, which may not be aligned, and holds the GIL.
    unsafe {
        let x = bf16::from_bits(data.cast::<u16>().read_unaligned());
        ffi::PyFloat_FromDouble(f64::from(x.to_f32()))
    }
}

unsafe extern "C" fn set_item(
    value: *mut ffi::PyObject,
    data: *mut c_void,
    _: *mut c_void,
) -> c_int {
    // SAFETY: as in `get_item`.
    unsafe {
        let x = ffi::PyFloat_AsDouble(value);
        if x == -1.0 && !ffi::PyErr_Occurred().is_null() {
            return -1;
        }
        data.cast::<u16>().write_unaligned(bf16::from_f32(x as f32).to_bits());
    }
    0
}

unsafe extern "C" fn copy_swap(to: *mut c_void, from: *mut c_void, swap: c_int, _: *mut c_void) {
    // SAFETY: numpy passes elements; `from` may be null, then `to` is changed in place.
    unsafe {
        let source = if from.is_null() { to } else { from };
        let x = source.cast::<u16>().read_unaligned();
        to.cast::<u16>().write_unaligned(if swap != 0 { x.swap_bytes() } else { x });
    }
}

unsafe extern "C" fn copy_swap_n(
    to: *mut c_void,
    to_stride: npy_intp,
    from: *mut c_void,
    from_stride: npy_intp,
    n: npy_intp,
    swap: c_int,
    array: *mut c_void,
) {
    for i in 0..n {
        // SAFETY: numpy passes `n` elements at these distances.
        unsafe {
            let source = match from.is_null() {
                true => from,
                false => from.cast::<u8>().offset(i * from_stride).cast(),
            };
            copy_swap(to.cast::<u8>().offset(i * to_stride).cast(), source, swap, array);
        }
    }
}

unsafe extern "C" fn is_nonzero(data: *mut c_void, _: *mut c_void) -> c_uchar {
    // SAFETY: numpy passes an element.
    let x = unsafe { bf16::from_bits(data.cast::<u16>().read_unaligned()) };
    c_uchar::from(x.to_f32() != 0.0)
}

unsafe extern "C" fn compare(a: *const c_void, b: *const c_void, _: *mut c_void) -> c_int {
    // SAFETY: numpy passes two elements.
    let [a, b] = unsafe { [a, b].map(|x| bf16::from_bits(x.cast::<u16>().read_unaligned())) };
    match a.partial_cmp(&b) {
        Some(order) => order as c_int,
        // NaNs come last.
        None => c_int::from(a.is_nan()) - c_int::from(b.is_nan()),
    }
}
