//! Drivers and libraries of GPUs that are old, incomplete or broken. The tests make small libraries
//! of these names with gcc. Each command reports why there is no GPU, and continues without it.

use crate::common::PROGRAM;
use ferroflow_testing::needs::Need;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A C compiler.
pub const GCC: Need = Need { missing: no_gcc };

fn no_gcc() -> Option<String> {
    let found = Command::new("gcc").arg("--version").stdout(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "gcc is not installed".into())
}

fn temporary(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ferroflow-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The driver functions that Ferroflow looks up. Each does nothing and succeeds.
const DRIVER: &[&str] = &[
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

/// Builds a driver of this version without the functions `missing`. Its start returns `status`.
fn driver(folder: &Path, version: i32, status: i32, missing: &[&str]) {
    let mut text = format!(
        "int cuInit(unsigned flags) {{ return {status}; }}\n\
         int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n"
    );
    for name in DRIVER.iter().filter(|name| !missing.contains(name)) {
        text.push_str(&format!("int {name}(void) {{ return 0; }}\n"));
    }
    compile(folder, "libcuda.so.1", &text);
}

fn compile(folder: &Path, name: &str, text: &str) {
    let source = folder.join("fake.c");
    std::fs::write(&source, text).unwrap();
    let made = Command::new("gcc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.join(name))
        .arg(&source)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn ferroflow(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .output()
        .unwrap()
}

/// The output of `ferroflow devices` with the libraries of a folder.
fn devices(folder: &Path) -> String {
    let output = ferroflow(folder, &["devices"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("/device:CPU:0"), "{text}");
    text
}

pub fn an_old_driver_is_named_with_its_version() {
    let folder = temporary("old-driver");
    driver(&folder, 11_040, 0, &[]);
    let text = devices(&folder);
    let why = "no GPU, because the NVIDIA driver supports CUDA 11.4; at least CUDA 12.0 is needed";
    assert!(text.contains(why), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

pub fn a_missing_function_of_the_driver_is_named() {
    let folder = temporary("missing-function");
    driver(&folder, 13_000, 0, &["cuMemHostAlloc"]);
    let text = devices(&folder);
    assert!(text.contains("libcuda is too old: it has no function cuMemHostAlloc"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

pub fn a_driver_that_does_not_start_is_reported_by_training() {
    let folder = temporary("broken-driver");
    driver(&folder, 13_000, 999, &[]);
    let output = ferroflow(&folder, &["train", "mlp", "--device", "gpu"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("no GPU, because the NVIDIA driver does not start"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

pub fn a_machine_whose_gpus_are_hidden_says_so() {
    let folder = temporary("hidden-gpus");
    // CUDA_ERROR_NO_DEVICE
    driver(&folder, 13_000, 100, &[]);
    let output = Command::new(PROGRAM)
        .arg("devices")
        .env("LD_LIBRARY_PATH", &folder)
        .env("CUDA_VISIBLE_DEVICES", "-1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no GPU, because CUDA_VISIBLE_DEVICES=-1 hides all GPUs"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

pub fn a_driver_without_its_compiler_names_what_is_missing() {
    let folder = temporary("no-compiler");
    driver(&folder, 13_000, 0, &[]);
    let text = devices(&folder);
    // With the toolkit installed, the command gets as far as the driver, which lists no GPU.
    let is_said = text.contains("libnvrtc.so was not found") || text.contains("lists no GPU");
    assert!(is_said, "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}
