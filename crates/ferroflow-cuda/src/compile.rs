//! Compiles kernels with NVRTC. Binaries are kept on disk, by their text, the architecture and the
//! compiler's version.

use crate::libraries;
use cudarc::nvrtc::sys::{self, nvrtcResult};
use ferroflow_core::{GPU_PRELUDE, Result, bail, err};
use std::ffi::{CString, c_char};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Options of every kernel. Denormal floats are flushed to zero, as on the CPU and by TensorFlow.
/// Products and sums are rounded separately, as on the CPU, so that formulas have the same bits
/// alone and fused with others.
const OPTIONS: [&str; 3] = ["--std=c++17", "--ftz=true", "--fmad=false"];

/// The compiler. It works without a GPU.
pub struct Compiler {
    version: (i32, i32),
    cache: Option<PathBuf>,
}

impl Compiler {
    /// Loads NVRTC, or returns why that failed.
    pub fn new() -> Result<Compiler> {
        libraries::check_compiler().map_err(|why| err!(Unavailable, "{why}"))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: `check_compiler` found the function; it writes two integers.
        check(unsafe { sys::nvrtcVersion(&mut major, &mut minor) }, "the version of NVRTC")?;
        Ok(Compiler { version: (major, minor), cache: cache_folder() })
    }

    /// The same, without the cache on disk.
    pub fn without_cache() -> Result<Compiler> {
        Ok(Compiler { cache: None, ..Compiler::new()? })
    }

    /// The compiler's version.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// The binary of `text` after the prelude, for an architecture such as `sm_90`.
    pub fn binary(&self, text: &str, architecture: &str) -> Result<Vec<u8>> {
        let path = self.cache.as_ref().map(|folder| {
            let key = (GPU_PRELUDE, text, architecture, self.version, OPTIONS);
            let hash = |salt: u8| {
                let mut hasher = DefaultHasher::new();
                (salt, key).hash(&mut hasher);
                hasher.finish()
            };
            folder.join(format!("{:016x}{:016x}.cubin", hash(0), hash(1)))
        });
        if let Some(known) = path.as_ref().and_then(|path| std::fs::read(path).ok()) {
            return Ok(known);
        }
        let (binary, _) = self.compile(text, architecture, &[])?;
        if let Some(path) = path {
            keep(&path, &binary);
        }
        Ok(binary)
    }

    /// Compiles, and returns the binary and the compiler's log.
    pub fn compile(
        &self,
        text: &str,
        architecture: &str,
        options: &[&str],
    ) -> Result<(Vec<u8>, String)> {
        let source = c_string(&format!("{GPU_PRELUDE}\n{text}"))?;
        let mut program = std::ptr::null_mut();
        // SAFETY: `source` outlives the call; there are no headers.
        let status = unsafe {
            sys::nvrtcCreateProgram(
                &mut program,
                source.as_ptr(),
                c"kernel.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        check(status, "NVRTC cannot make a program")?;
        let program = Program(program);
        let architecture = format!("--gpu-architecture={architecture}");
        let all = [architecture.as_str()].into_iter().chain(OPTIONS).chain(options.iter().copied());
        let all = all.map(c_string).collect::<Result<Vec<CString>>>()?;
        let pointers: Vec<*const c_char> = all.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: `program` was made above, and the options outlive the call.
        let status = unsafe {
            sys::nvrtcCompileProgram(program.0, pointers.len() as i32, pointers.as_ptr())
        };
        let log = program.log()?;
        if status != nvrtcResult::NVRTC_SUCCESS {
            bail!(Internal, "NVRTC cannot compile a kernel: {status:?}\n{log}\n{text}");
        }
        Ok((program.binary()?, log))
    }
}

/// A program of NVRTC.
struct Program(sys::nvrtcProgram);

impl Program {
    fn log(&self) -> Result<String> {
        let mut size = 0;
        // SAFETY: the program is valid.
        check(unsafe { sys::nvrtcGetProgramLogSize(self.0, &mut size) }, "the log's size")?;
        let mut log = vec![0u8; size];
        // SAFETY: the log has room for `size` bytes.
        check(unsafe { sys::nvrtcGetProgramLog(self.0, log.as_mut_ptr().cast()) }, "the log")?;
        Ok(String::from_utf8_lossy(&log).trim_end_matches('\0').to_string())
    }

    fn binary(&self) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the program is valid and compiled.
        check(unsafe { sys::nvrtcGetCUBINSize(self.0, &mut size) }, "the binary's size")?;
        let mut binary = vec![0u8; size];
        // SAFETY: the binary has room for `size` bytes.
        check(unsafe { sys::nvrtcGetCUBIN(self.0, binary.as_mut_ptr().cast()) }, "the binary")?;
        Ok(binary)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is valid and not used any more.
        let _ = unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

fn check(status: nvrtcResult, what: &str) -> Result<()> {
    match status {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        other => Err(err!(Internal, "{what}: {other:?}")),
    }
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| err!(Internal, "a kernel's text has a zero byte"))
}

/// `$XDG_CACHE_HOME/ferroflow/kernels`, or the same under `~/.cache`.
fn cache_folder() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|p| !p.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    Some(named.or_else(home)?.join("ferroflow").join("kernels"))
}

/// Writes a binary to the cache. The cache is a convenience, so errors are ignored.
fn keep(path: &std::path::Path, binary: &[u8]) {
    let Some(folder) = path.parent() else { return };
    // Other threads and processes may keep the same binary at the same time.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let new = path.with_extension(format!("{}.{}.new", unique.0, unique.1));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&new, binary));
    let _ = written.and_then(|()| std::fs::rename(&new, path));
}
