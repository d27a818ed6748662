//! Loads the driver and NVIDIA's libraries, and checks that they have every function that this
//! crate uses: the bindings panic when they call a missing one.

use cudarc::{cublaslt, cudnn, driver, nvrtc};
use libloading::Library;
use std::ffi::c_void;
use std::path::{Path, PathBuf};

/// Names a folder with NVIDIA's libraries, if the system's loader does not know it.
const FOLDER_VARIABLE: &str = "FERROFLOW_CUDA_PATH";
/// Where the toolkit puts its libraries.
const TOOLKIT: &str = "/usr/local/cuda/lib64";
/// The oldest driver: CUDA 12.0.
const OLDEST_DRIVER: i32 = 12_000;

const DRIVER: &[&str] = &[
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemGetAddressRange_v2",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
    "cuGetErrorName",
    "cuGetErrorString",
];
/// Functions for graphs. Without them, the pieces of a step's work are enqueued one by one.
const GRAPHS: &[&str] = &[
    "cuStreamDestroy_v2",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];
const NVRTC: &[&str] = &[
    "nvrtcVersion",
    "nvrtcCreateProgram",
    "nvrtcCompileProgram",
    "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN",
    "nvrtcGetProgramLogSize",
    "nvrtcGetProgramLog",
    "nvrtcDestroyProgram",
];
const CUBLASLT: &[&str] = &[
    "cublasLtCreate",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
];

const CUDNN: &[&str] = &[
    "cudnnCreate",
    "cudnnSetStream",
    "cudnnCreateTensorDescriptor",
    "cudnnSetTensor4dDescriptor",
    "cudnnCreateFilterDescriptor",
    "cudnnSetFilter4dDescriptor",
    "cudnnCreateConvolutionDescriptor",
    "cudnnSetConvolution2dDescriptor",
    "cudnnSetConvolutionGroupCount",
    "cudnnSetConvolutionMathType",
    "cudnnGetConvolutionForwardAlgorithm_v7",
    "cudnnGetConvolutionBackwardDataAlgorithm_v7",
    "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
    "cudnnConvolutionForward",
    "cudnnConvolutionBackwardData",
    "cudnnConvolutionBackwardFilter",
];

/// Whether the driver makes graphs.
pub(crate) fn has_graphs() -> bool {
    // SAFETY: the driver is loaded, or there would be no GPU.
    has_all("libcuda", unsafe { driver::sys::culib() }, GRAPHS).is_ok()
}

/// Whether cuDNN is there. It is optional: without it convolutions are matrix products.
pub(crate) fn has_dnn() -> bool {
    let found = find("libcudnn.so", || {
        // SAFETY: as for the driver.
        unsafe { cudnn::sys::is_culib_present() }
    });
    // SAFETY: the library is present.
    found.is_ok() && has_all("libcudnn", unsafe { cudnn::sys::culib() }, CUDNN).is_ok()
}

/// Checks everything once, cheapest first. The error is the reason why there is no GPU.
pub(crate) fn check() -> Result<(), String> {
    // On machines without a driver, this one look-up fails.
    // SAFETY: loading the driver's library runs its initializers, which are meant to be run.
    if unsafe { Library::new("libcuda.so.1") }.is_err() {
        return Err("the NVIDIA driver is not installed (libcuda.so.1 was not found)".into());
    }
    // SAFETY: the library is present.
    has_all("libcuda", unsafe { driver::sys::culib() }, DRIVER)?;
    // SAFETY: the function exists and takes no pointers.
    let status = unsafe { driver::sys::cuInit(0) };
    if status == driver::sys::CUresult::CUDA_ERROR_NO_DEVICE {
        return Err(crate::none_listed());
    }
    crate::status::driver(status, "the NVIDIA driver does not start")
        .map_err(|e| e.message().to_string())?;
    check_version()?;
    check_compiler()?;
    find("libcublasLt.so", || {
        // SAFETY: as for the driver.
        unsafe { cublaslt::sys::is_culib_present() }
    })?;
    // SAFETY: the library is present.
    has_all("libcublasLt", unsafe { cublaslt::sys::culib() }, CUBLASLT)
}

/// Checks NVRTC alone, which works without a driver.
pub(crate) fn check_compiler() -> Result<(), String> {
    find("libnvrtc.so", || {
        // SAFETY: as for the driver.
        unsafe { nvrtc::sys::is_culib_present() }
    })?;
    // SAFETY: the library is present.
    has_all("libnvrtc", unsafe { nvrtc::sys::culib() }, NVRTC)
}

fn check_version() -> Result<(), String> {
    let mut version = 0;
    // SAFETY: the function exists and writes one integer.
    let status = unsafe { driver::sys::cuDriverGetVersion(&mut version) };
    crate::status::driver(status, "the driver's version").map_err(|e| e.message().to_string())?;
    if version < OLDEST_DRIVER {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(format!(
            "the NVIDIA driver supports CUDA {major}.{minor}; at least CUDA 12.0 is needed"
        ));
    }
    Ok(())
}

fn has_all(name: &str, library: &Library, symbols: &[&str]) -> Result<(), String> {
    let is_missing = |symbol: &&&str| {
        // SAFETY: the symbol is looked up and not used.
        unsafe { library.get::<*const c_void>(symbol.as_bytes()) }.is_err()
    };
    match symbols.iter().find(is_missing) {
        Some(symbol) => Err(format!("{name} is too old: it has no function {symbol}")),
        None => Ok(()),
    }
}

/// Makes a library present: where the loader finds it, or from a known folder.
fn find(name: &str, is_present: impl Fn() -> bool) -> Result<(), String> {
    if is_present() {
        return Ok(());
    }
    let folders = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    for folder in folders.iter().map(PathBuf::as_path).chain([Path::new(TOOLKIT)]) {
        for path in versions_of(folder, name) {
            // SAFETY: as for the driver. The library stays loaded, so the loader finds it by its
            // name from here on.
            if let Ok(library) = unsafe { Library::new(&path) } {
                std::mem::forget(library);
            }
        }
        if is_present() {
            return Ok(());
        }
    }
    Err(format!("{name} was not found; set {FOLDER_VARIABLE} to the folder that has it"))
}

/// The files of a folder whose names begin with `name`.
fn versions_of(folder: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    entries.filter_map(|e| Some(e.ok()?.path())).filter(is_it).collect()
}
