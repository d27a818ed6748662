//! NCCL, for ranks with GPUs of their own. It is optional and loaded on first use: the bindings of
//! the other libraries do not look for the name under which it is installed.

use crate::gpu::Context;
use cudarc::driver::sys::CUstream;
use ferroflow_core::{DType, Error, GpuCommunicator, GpuReduction, Result, bail, err};
use libloading::Library;
use parking_lot::Mutex;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The names under which NCCL is installed.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];
/// Names the file of another library with NCCL's functions.
const FILE_VARIABLE: &str = "FERROFLOW_NCCL";
/// The oldest version with means and non-blocking groups: 2.14.
const OLDEST: c_int = 21_400;
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;
/// How long joining a group may take in seconds, and the variable that sets it.
const JOIN_SECONDS: u64 = 60;
const JOIN_VARIABLE: &str = "FERROFLOW_NCCL_JOIN_SECONDS";
const POLL: Duration = Duration::from_millis(1);
const GROUP_BYTES: usize = 128;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; GROUP_BYTES]);

/// `ncclConfig_t` of version 2.14. Later versions read its size and version first.
#[repr(C)]
struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

/// `ncclComm_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
struct Comm(*mut c_void);

// SAFETY: NCCL's communicators may be used from all threads, one call at a time. `Group` locks.
unsafe impl Send for Comm {}

type Status = c_int;

/// NCCL's functions.
struct Nccl {
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> Status,
    init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int, *const Config) -> Status,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Comm,
        CUstream,
    ) -> Status,
    broadcast: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Comm,
        CUstream,
    ) -> Status,
    async_error: unsafe extern "C" fn(Comm, *mut Status) -> Status,
    abort: unsafe extern "C" fn(Comm) -> Status,
    destroy: unsafe extern "C" fn(Comm) -> Status,
    error_text: unsafe extern "C" fn(Status) -> *const c_char,
    /// Keeps the code loaded.
    _library: Library,
}

impl Nccl {
    fn load() -> Result<Nccl, String> {
        let named = std::env::var(FILE_VARIABLE).ok().filter(|name| !name.is_empty());
        let names: Vec<&str> = named.as_deref().map_or(NAMES.to_vec(), |name| vec![name]);
        // SAFETY: loading NCCL runs its initializers, which are meant to be run.
        let open = |name: &&str| unsafe { Library::new(*name) }.ok();
        let library = names.iter().find_map(open);
        let library = library.ok_or_else(|| format!("{} was not found", names.join(" or ")))?;
        /// Looks a function up; its field says its type.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field has the type that NCCL declares.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }
                    .map_err(|_| format!("NCCL is too old: it has no function {}", $name))?
            };
        }
        let version: unsafe extern "C" fn(*mut c_int) -> Status = function!("ncclGetVersion");
        let mut number = 0;
        // SAFETY: NCCL writes one integer.
        let status = unsafe { version(&mut number) };
        if status != SUCCESS || number < OLDEST {
            let (major, minor) = (number / 10_000, number % 10_000 / 100);
            return Err(format!("NCCL is version {major}.{minor}; at least 2.14 is needed"));
        }
        Ok(Nccl {
            get_unique_id: function!("ncclGetUniqueId"),
            init_rank: function!("ncclCommInitRankConfig"),
            all_reduce: function!("ncclAllReduce"),
            broadcast: function!("ncclBroadcast"),
            async_error: function!("ncclCommGetAsyncError"),
            abort: function!("ncclCommAbort"),
            destroy: function!("ncclCommDestroy"),
            error_text: function!("ncclGetErrorString"),
            _library: library,
        })
    }

    fn error(&self, status: Status, what: &str) -> Error {
        // SAFETY: NCCL returns a constant text.
        let text = unsafe { (self.error_text)(status) };
        let text = match text.is_null() {
            true => "unknown error".into(),
            // SAFETY: the text ends with a zero byte.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
        };
        err!(Unavailable, "NCCL: {what}: {text}")
    }
}

/// NCCL, or why it cannot be used.
fn nccl() -> Result<&'static Nccl> {
    static LOADED: OnceLock<Result<Nccl, String>> = OnceLock::new();
    LOADED.get_or_init(Nccl::load).as_ref().map_err(|why| err!(Unimplemented, "{why}"))
}

/// Whether NCCL can be used.
pub(crate) fn is_there() -> bool {
    nccl().is_ok()
}

/// A new name for a group of ranks.
pub(crate) fn new_group() -> Result<Vec<u8>> {
    let nccl = nccl()?;
    let mut id = UniqueId([0; GROUP_BYTES]);
    // SAFETY: NCCL writes the name.
    match unsafe { (nccl.get_unique_id)(&mut id) } {
        SUCCESS => Ok(id.0.to_vec()),
        status => Err(nccl.error(status, "a group's name")),
    }
}

fn join_limit() -> Duration {
    let given = std::env::var(JOIN_VARIABLE).ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(JOIN_SECONDS))
}

/// Joins a group. Blocks until all ranks have joined, for a limited time.
pub(crate) fn join(
    context: Context,
    group: &[u8],
    rank: usize,
    size: usize,
) -> Result<Arc<dyn GpuCommunicator>> {
    let nccl = nccl()?;
    let Ok(name) = group.try_into() else { bail!(InvalidArgument, "not the name of a group") };
    context.make_current()?;
    let config = Config {
        size: std::mem::size_of::<Config>(),
        magic: 0xcafe_beef,
        version: OLDEST as u32,
        blocking: 0,
    };
    let mut comm = Comm(std::ptr::null_mut());
    let (n, me) = (size as c_int, rank as c_int);
    // SAFETY: NCCL sets the communicator, and copies the configuration.
    let status = unsafe { (nccl.init_rank)(&mut comm, n, UniqueId(name), me, &config) };
    if !matches!(status, SUCCESS | IN_PROGRESS) {
        return Err(nccl.error(status, "joining a group"));
    }
    let made = Group { nccl, context, state: Mutex::new(State { comm, failed: None }) };
    let (began, limit) = (Instant::now(), join_limit());
    while let Some(status) = made.pending("joining a group")? {
        debug_assert_eq!(status, IN_PROGRESS);
        if began.elapsed() > limit {
            let cause = err!(
                DeadlineExceeded,
                "not all of the {size} ranks joined NCCL's group within {} s; \
                 {JOIN_VARIABLE} sets the limit",
                limit.as_secs()
            );
            made.abort(cause.clone());
            return Err(cause);
        }
        std::thread::sleep(POLL);
    }
    Ok(Arc::new(made))
}

/// A group that this rank has joined.
struct Group {
    nccl: &'static Nccl,
    context: Context,
    state: Mutex<State>,
}

struct State {
    comm: Comm,
    /// The error for which it is not used any more.
    failed: Option<Error>,
}

impl Group {
    /// `IN_PROGRESS` while a call has not taken effect yet. Aborts the group if a call failed.
    fn pending(&self, what: &str) -> Result<Option<Status>> {
        let mut state = self.state.lock();
        if let Some(e) = &state.failed {
            return Err(e.clone());
        }
        let mut found = SUCCESS;
        // SAFETY: the communicator is valid until it failed.
        let status = unsafe { (self.nccl.async_error)(state.comm, &mut found) };
        match (status, found) {
            (SUCCESS, SUCCESS) => Ok(None),
            (SUCCESS, IN_PROGRESS) => Ok(Some(IN_PROGRESS)),
            (SUCCESS, other) | (other, _) => {
                let cause = self.nccl.error(other, what);
                self.end(&mut state, cause.clone());
                Err(cause)
            }
        }
    }

    fn end(&self, state: &mut State, cause: Error) {
        if state.failed.is_none() {
            state.failed = Some(cause);
            // SAFETY: this is the last use of the communicator.
            let _ = unsafe { (self.nccl.abort)(state.comm) };
        }
    }

    /// Enqueues one call, and waits until NCCL has taken it.
    fn enqueue(&self, what: &str, call: impl FnOnce(Comm, CUstream) -> Status) -> Result<()> {
        self.context.make_current()?;
        {
            let mut state = self.state.lock();
            if let Some(e) = &state.failed {
                return Err(e.clone());
            }
            let status = call(state.comm, self.context.stream());
            if !matches!(status, SUCCESS | IN_PROGRESS) {
                let cause = self.nccl.error(status, what);
                self.end(&mut state, cause.clone());
                return Err(cause);
            }
        }
        // The first call of a kind connects the ranks. Later calls return at once.
        while self.pending(what)?.is_some() {
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl GpuCommunicator for Group {
    fn all_reduce(
        &self,
        from: u64,
        to: u64,
        count: usize,
        dtype: DType,
        by: GpuReduction,
    ) -> Result<()> {
        let (dtype, by) = (number_of(dtype)?, reduction(by));
        self.enqueue("an all-reduce", |comm, stream| {
            let (from, to) = (from as *const c_void, to as *mut c_void);
            // SAFETY: both ranges belong to tensors that are alive until the work is done.
            unsafe { (self.nccl.all_reduce)(from, to, count, dtype, by, comm, stream) }
        })
    }

    fn broadcast(&self, from: u64, to: u64, count: usize, dtype: DType, root: usize) -> Result<()> {
        let (dtype, root) = (number_of(dtype)?, root as c_int);
        self.enqueue("a broadcast", |comm, stream| {
            let (from, to) = (from as *const c_void, to as *mut c_void);
            // SAFETY: as above.
            unsafe { (self.nccl.broadcast)(from, to, count, dtype, root, comm, stream) }
        })
    }

    fn failure(&self) -> Option<Error> {
        self.pending("work of a collective").err()
    }

    fn abort(&self, cause: Error) {
        self.end(&mut self.state.lock(), cause);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.failed.is_none() && self.context.make_current().is_ok() {
            // SAFETY: this is the last use of the communicator.
            let _ = unsafe { (self.nccl.destroy)(state.comm) };
        }
    }
}

/// NCCL's number of a dtype.
fn number_of(dtype: DType) -> Result<c_int> {
    Ok(match dtype {
        DType::Int8 => 0,
        DType::UInt8 | DType::Bool => 1,
        DType::Int32 => 2,
        DType::UInt32 => 3,
        DType::Int64 => 4,
        DType::UInt64 => 5,
        DType::Half => 6,
        DType::Float => 7,
        DType::Double => 8,
        DType::BFloat16 => 9,
        other => bail!(Unimplemented, "NCCL does not know {other}"),
    })
}

fn reduction(by: GpuReduction) -> c_int {
    match by {
        GpuReduction::Sum => 0,
        GpuReduction::Product => 1,
        GpuReduction::Max => 2,
        GpuReduction::Min => 3,
        GpuReduction::Mean => 4,
    }
}
