//! Errors of the driver and the libraries as [`Error`].

use cudarc::cublaslt::sys::cublasStatus_t;
use cudarc::driver::sys::{self, CUresult};
use ferroflow_core::{Error, Result, err};
use std::ffi::CStr;

/// The result of a driver call that does `what`.
pub(crate) fn driver(status: CUresult, what: &str) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(driver_error(other, what)),
    }
}

fn driver_error(status: CUresult, what: &str) -> Error {
    let text = |find: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver sets `text` to a static string, or leaves it null.
        let found = unsafe { find(status, &mut text) };
        if found != CUresult::CUDA_SUCCESS || text.is_null() {
            return format!("{status:?}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    let (name, message) = (text(sys::cuGetErrorName), text(sys::cuGetErrorString));
    match status {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => err!(ResourceExhausted, "OOM: {what}: {message}"),
        _ => err!(Internal, "{what}: {name}: {message}"),
    }
}

/// The result of a call of cuBLASLt that does `what`.
pub(crate) fn blas(status: cublasStatus_t, what: &str) -> Result<()> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        other => Err(err!(Internal, "{what}: {other:?}")),
    }
}
