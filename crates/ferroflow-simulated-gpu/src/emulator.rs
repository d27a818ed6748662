//! Compiles kernels for the processor with g++, over `emulator.h`. Results are kept on disk by the
//! hash of their text, for the next process. The header is compiled once, which halves the time of
//! a kernel.

use ferroflow_core::{GPU_PRELUDE, HashMap, LaunchArg, Result, err};
use libloading::Library;
use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const HEADER: &str = include_str!("emulator.h");

/// The compiled form of one kernel.
#[derive(Clone)]
pub struct EmulatedKernel {
    run: RunFn,
    /// Keeps the code loaded.
    _library: Arc<Library>,
}

type RunFn = unsafe extern "C" fn(*const *const u8, *const u32, *const u32, u64);

impl EmulatedKernel {
    /// Runs the kernel on this thread.
    ///
    /// # Safety
    /// The arguments must be those that the kernel takes, and its addresses must be valid for what
    /// it reads and writes.
    pub unsafe fn run(&self, grid: [u32; 3], block: [u32; 3], args: &[LaunchArg], seed: u64) {
        let pointers: Vec<*const u8> = args.iter().map(LaunchArg::as_ptr).collect();
        // SAFETY: the caller vouches for the arguments. `pointers`, `grid` and `block` outlive the
        // call.
        unsafe { (self.run)(pointers.as_ptr(), grid.as_ptr(), block.as_ptr(), seed) }
    }
}

/// Compiles kernels and keeps them.
#[derive(Default)]
pub struct Emulator {
    libraries: Mutex<HashMap<u64, Arc<Library>>>,
}

impl Emulator {
    /// The kernel `name` of `text`.
    pub fn load(&self, text: &str, name: &str) -> Result<EmulatedKernel> {
        let library = self.library(text)?;
        let symbol = format!("run_{name}\0");
        // SAFETY: `EMULATED_KERNEL` defines the symbol as a function of this type.
        let found = unsafe { library.get::<RunFn>(symbol.as_bytes()) };
        let run = *found.map_err(|e| err!(NotFound, "kernel '{name}' is not in its text: {e}"))?;
        Ok(EmulatedKernel { run, _library: library })
    }

    fn library(&self, text: &str) -> Result<Arc<Library>> {
        let source = source_of(text);
        let hash = hash_of(&(HEADER, GPU_PRELUDE, &source));
        if let Some(known) = self.libraries.lock().get(&hash) {
            return Ok(known.clone());
        }
        let path = compiled(&source, hash)?;
        // SAFETY: the library was made from `source`. It has no initializers.
        let library = unsafe { Library::new(&path) };
        let library = Arc::new(library.map_err(|e| err!(Internal, "{}: {e}", path.display()))?);
        self.libraries.lock().insert(hash, library.clone());
        Ok(library)
    }
}

fn source_of(text: &str) -> String {
    let mut source = format!("{text}\n");
    let barriers = text.contains("__syncthreads") || text.contains("exchanged(");
    for name in kernel_names(text) {
        source.push_str(&format!("EMULATED_KERNEL({name}, {barriers})\n"));
    }
    source
}

/// The names of the kernels in a text.
pub fn kernel_names(text: &str) -> Vec<&str> {
    let parts = text.split("__global__ void ").skip(1);
    parts.filter_map(|rest| rest.split('(').next()).map(str::trim).collect()
}

fn hash_of(text: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The shared library of `source`, made now unless it is there.
fn compiled(source: &str, hash: u64) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join("ferroflow-emulated-kernels");
    let path = folder.join(format!("{hash:016x}.so"));
    if path.exists() {
        return Ok(path);
    }
    let made = |e| err!(Internal, "cannot make a folder for kernels: {e}");
    std::fs::create_dir_all(&folder).map_err(made)?;
    let header = header(&folder)?;
    let source = format!("#include \"{}\"\n{source}", header.display());
    keep(&path, |new| compile(&["-shared", "-x", "c++"], Path::new("-"), &source, new))?;
    Ok(path)
}

/// The header of all kernels, with its compiled form beside it, which g++ uses if it fits.
fn header(folder: &Path) -> Result<PathBuf> {
    let text = format!("{HEADER}\n{GPU_PRELUDE}\n");
    let path = folder.join(format!("{:016x}.h", hash_of(&text)));
    let compiled = path.with_extension("h.gch");
    if !compiled.exists() {
        let write = |new: &Path| {
            std::fs::write(new, &text).map_err(|e| err!(Internal, "{}: {e}", new.display()))
        };
        keep(&path, write)?;
        // g++ does not compile a header from standard input.
        keep(&compiled, |new| compile(&["-x", "c++-header"], &path, "", new))?;
    }
    Ok(path)
}

/// Makes a file under another name first: other threads and processes may make the same one at the
/// same time.
fn keep(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".{}.{}.new", unique.0, unique.1));
    let new = PathBuf::from(name);
    make(&new)?;
    std::fs::rename(&new, path).map_err(|e| err!(Internal, "cannot keep a kernel: {e}"))
}

/// Compiles the file `from`, or `source` if that is `-`.
fn compile(kind: &[&str], from: &Path, source: &str, to: &Path) -> Result<()> {
    let mut child = Command::new("g++")
        .args(["-std=c++17", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-w"])
        .args(["-fvisibility=hidden", "-fPIC"])
        .args(kind)
        .arg(from)
        .arg("-o")
        .arg(to)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| err!(Unavailable, "the simulated GPU needs g++: {e}"))?;
    let sent = child.stdin.take().map(|mut to| to.write_all(source.as_bytes()));
    let output = child.wait_with_output().map_err(|e| err!(Internal, "g++: {e}"))?;
    if !output.status.success() || !matches!(sent, Some(Ok(()))) {
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(err!(Internal, "g++ cannot compile a kernel:\n{log}\n{source}"));
    }
    Ok(())
}
