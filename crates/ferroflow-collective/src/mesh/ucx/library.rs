//! The part of `libucp` that is used, loaded when it is needed. All calls of one worker are made by
//! one thread at a time.

use ferroflow_core::{Result, bail, err};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;

/// Names of the library; the first that loads is used.
const LIBRARIES: [&str; 2] = ["libucp.so.0", "libucp.so"];

/// The version of the interface that the structures below are from. Later 1.x versions keep it.
const API: (u32, u32) = (1, 10);

const OK: i32 = 0;
const IN_PROGRESS: i32 = 1;
const BUSY: i32 = -15;
/// Pointers from here on are errors.
const LAST_ERROR: isize = -100;

const FEATURES: u64 = 1 << 0;
const FEATURE_TAG: u64 = 1 << 0;
const FEATURE_WAKEUP: u64 = 1 << 4;
const THREAD_MODE: u64 = 1 << 0;
/// Several threads may use a worker, one at a time.
const SERIALIZED: c_int = 1;
const REMOTE_ADDRESS: u64 = 1 << 0;
const ERROR_MODE: u64 = 1 << 1;
/// Requests to a peer that is gone fail.
const PEER_ERRORS: c_int = 1;

/// The fields of `ucp_params_t` that are set. The mask tells the library which ones are.
#[repr(C)]
struct ContextParameters {
    mask: u64,
    features: u64,
    rest: [u64; 16],
}

/// `ucp_worker_params_t`, as above.
#[repr(C)]
struct WorkerParameters {
    mask: u64,
    thread_mode: c_int,
    rest: [u64; 32],
}

/// `ucp_ep_params_t`, as above.
#[repr(C)]
struct EndpointParameters {
    mask: u64,
    address: *const c_void,
    error_mode: c_int,
    rest: [u64; 16],
}

/// `ucp_request_param_t`, as above.
#[repr(C)]
#[derive(Default)]
struct RequestParameters {
    mask: u32,
    flags: u32,
    rest: [u64; 12],
}

/// `ucp_tag_recv_info_t`.
#[repr(C)]
#[derive(Default)]
struct Received {
    tag: u64,
    length: usize,
}

type Pointer = *mut c_void;

/// Functions of the library, under their names there.
struct Functions {
    ucp_init_version:
        unsafe extern "C" fn(u32, u32, *const ContextParameters, Pointer, *mut Pointer) -> i32,
    ucp_cleanup: unsafe extern "C" fn(Pointer),
    ucp_worker_create: unsafe extern "C" fn(Pointer, *const WorkerParameters, *mut Pointer) -> i32,
    ucp_worker_destroy: unsafe extern "C" fn(Pointer),
    ucp_worker_get_address: unsafe extern "C" fn(Pointer, *mut Pointer, *mut usize) -> i32,
    ucp_worker_release_address: unsafe extern "C" fn(Pointer, Pointer),
    ucp_worker_progress: unsafe extern "C" fn(Pointer) -> u32,
    ucp_worker_get_efd: unsafe extern "C" fn(Pointer, *mut c_int) -> i32,
    ucp_worker_arm: unsafe extern "C" fn(Pointer) -> i32,
    ucp_ep_create: unsafe extern "C" fn(Pointer, *const EndpointParameters, *mut Pointer) -> i32,
    ucp_ep_close_nbx: unsafe extern "C" fn(Pointer, *const RequestParameters) -> Pointer,
    ucp_tag_send_nbx: unsafe extern "C" fn(
        Pointer,
        *const c_void,
        usize,
        u64,
        *const RequestParameters,
    ) -> Pointer,
    ucp_tag_probe_nb: unsafe extern "C" fn(Pointer, u64, u64, c_int, *mut Received) -> Pointer,
    ucp_tag_msg_recv_nbx:
        unsafe extern "C" fn(Pointer, Pointer, usize, Pointer, *const RequestParameters) -> Pointer,
    ucp_request_check_status: unsafe extern "C" fn(Pointer) -> i32,
    ucp_request_free: unsafe extern "C" fn(Pointer),
    ucs_status_string: unsafe extern "C" fn(i32) -> *const c_char,
    _library: Library,
}

impl Functions {
    fn load() -> Result<Functions> {
        let mut why = Vec::new();
        let mut found = None;
        for name in LIBRARIES {
            // SAFETY: the initializers of this library are meant to be run by any program.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    found = Some(library);
                    break;
                }
                Err(e) => why.push(e.to_string()),
            }
        }
        let Some(library) = found else {
            let why = why.join("; ");
            bail!(FailedPrecondition, "{why}: install UCX (libucx0 on Debian)");
        };
        macro_rules! functions {
            ($($name:ident),* $(,)?) => {
                // SAFETY: each field has the type of the function of its name.
                unsafe {
                    Ok(Functions {
                        $($name: *library.get(stringify!($name)).map_err(|e| {
                            err!(FailedPrecondition, "this UCX library is too old: {e}")
                        })?,)*
                        _library: library,
                    })
                }
            };
        }
        functions!(
            ucp_init_version,
            ucp_cleanup,
            ucp_worker_create,
            ucp_worker_destroy,
            ucp_worker_get_address,
            ucp_worker_release_address,
            ucp_worker_progress,
            ucp_worker_get_efd,
            ucp_worker_arm,
            ucp_ep_create,
            ucp_ep_close_nbx,
            ucp_tag_send_nbx,
            ucp_tag_probe_nb,
            ucp_tag_msg_recv_nbx,
            ucp_request_check_status,
            ucp_request_free,
            ucs_status_string,
        )
    }

    fn check(&self, what: &str, status: i32) -> Result<()> {
        if status == OK {
            return Ok(());
        }
        // SAFETY: the function returns a constant text for any number.
        let text = unsafe { CStr::from_ptr((self.ucs_status_string)(status)) };
        bail!(Unavailable, "{what} of UCX failed: {}", text.to_string_lossy())
    }
}

/// A worker of UCX with its context: it sends and receives all messages of one rank or task.
pub(crate) struct Worker {
    functions: Arc<Functions>,
    context: Pointer,
    worker: Pointer,
}

// SAFETY: the worker is made in the mode in which threads take turns, and `&mut self` of its
// methods makes them do so.
unsafe impl Send for Worker {}

/// The way to another worker. It belongs to the worker that has opened it.
pub(crate) struct Endpoint(Pointer);

// SAFETY: it is only used together with its worker.
unsafe impl Send for Endpoint {}

/// A send, receive or close that is under way, and the bytes that the library uses meanwhile.
pub(crate) struct Request {
    functions: Arc<Functions>,
    request: Pointer,
    bytes: Vec<u8>,
}

// SAFETY: it is only used by the thread that uses its worker at that time.
unsafe impl Send for Request {}

impl Worker {
    pub(crate) fn open() -> Result<Worker> {
        let functions = Arc::new(Functions::load()?);
        let f = &*functions;
        let features = FEATURE_TAG | FEATURE_WAKEUP;
        let parameters = ContextParameters { mask: FEATURES, features, rest: [0; 16] };
        let mut context = null_mut();
        // SAFETY: the structure begins as the library expects, and the mask names the field that is
        // set; without a configuration the library reads the environment.
        let status =
            unsafe { (f.ucp_init_version)(API.0, API.1, &parameters, null_mut(), &mut context) };
        f.check("the start", status)?;
        let mut opened = Worker { functions: functions.clone(), context, worker: null_mut() };
        let parameters =
            WorkerParameters { mask: THREAD_MODE, thread_mode: SERIALIZED, rest: [0; 32] };
        // SAFETY: as above, with the context that was just made.
        let status = unsafe { (f.ucp_worker_create)(context, &parameters, &mut opened.worker) };
        f.check("the start", status)?;
        Ok(opened)
    }

    /// What another worker needs to open an endpoint to this one.
    pub(crate) fn address(&mut self) -> Result<Vec<u8>> {
        let f = &*self.functions;
        let (mut address, mut length) = (null_mut(), 0);
        // SAFETY: the library stores a pointer and a length.
        let status = unsafe { (f.ucp_worker_get_address)(self.worker, &mut address, &mut length) };
        f.check("the address", status)?;
        // SAFETY: the library has made so many bytes, which exist until they are released.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) }.to_vec();
        // SAFETY: this worker has just made it, and does not use it again.
        unsafe { (f.ucp_worker_release_address)(self.worker, address) };
        Ok(bytes)
    }

    /// Opens a way to the worker with this address.
    pub(crate) fn connect(&mut self, address: &[u8]) -> Result<Endpoint> {
        self.connect_with(address, REMOTE_ADDRESS)
    }

    /// [`Worker::connect`] to a worker that may go away while this one stays.
    pub(crate) fn connect_to_peer(&mut self, address: &[u8]) -> Result<Endpoint> {
        self.connect_with(address, REMOTE_ADDRESS | ERROR_MODE)
    }

    fn connect_with(&mut self, address: &[u8], mask: u64) -> Result<Endpoint> {
        let f = &*self.functions;
        let address = address.as_ptr().cast();
        let parameters =
            EndpointParameters { mask, address, error_mode: PEER_ERRORS, rest: [0; 16] };
        let mut endpoint = null_mut();
        // SAFETY: the structure begins as the library expects. The library reads the address during
        // the call. It checks the address, whose bytes come from a peer that has proved who it is.
        let status = unsafe { (f.ucp_ep_create)(self.worker, &parameters, &mut endpoint) };
        f.check("a connection", status)?;
        Ok(Endpoint(endpoint))
    }

    /// Sends a message. `None` if it is already on its way.
    pub(crate) fn send(
        &mut self,
        to: &Endpoint,
        tag: u64,
        bytes: Vec<u8>,
    ) -> Result<Option<Request>> {
        let (data, length) = (bytes.as_ptr().cast(), bytes.len());
        let parameters = RequestParameters::default();
        // SAFETY: the bytes stay where they are until the request is complete: it owns them.
        let request =
            unsafe { (self.functions.ucp_tag_send_nbx)(to.0, data, length, tag, &parameters) };
        self.begun("a send", request, bytes).map(Result::err)
    }

    /// The next message with this tag, or the request that receives it. `None` if none has arrived.
    pub(crate) fn receive(&mut self, tag: u64) -> Result<Option<Result<Vec<u8>, Request>>> {
        let found = self.receive_matching(tag, u64::MAX, usize::MAX)?;
        Ok(found.map(|(_, message)| message))
    }

    /// The next message with any tag, and its tag. Fails if it is longer than `longest`; it is then
    /// never received, nor is any message after it.
    pub(crate) fn receive_any(
        &mut self,
        longest: usize,
    ) -> Result<Option<(u64, Result<Vec<u8>, Request>)>> {
        self.receive_matching(0, 0, longest)
    }

    fn receive_matching(
        &mut self,
        tag: u64,
        mask: u64,
        longest: usize,
    ) -> Result<Option<(u64, Result<Vec<u8>, Request>)>> {
        let f = &*self.functions;
        let mut about = Received::default();
        // SAFETY: the library stores the description of a message, if it returns one.
        let probe = |remove, about: &mut Received| unsafe {
            (f.ucp_tag_probe_nb)(self.worker, tag, mask, remove, about)
        };
        if longest < usize::MAX {
            let is_there = !probe(0, &mut about).is_null();
            if is_there && about.length > longest {
                bail!(ResourceExhausted, "a message over UCX has {} bytes", about.length);
            }
        }
        let message = probe(1, &mut about);
        if message.is_null() {
            return Ok(None);
        }
        let mut bytes = vec![0; about.length];
        let parameters = RequestParameters::default();
        // SAFETY: the message was taken out for this call; the bytes are as long as the message and
        // stay where they are until the request is complete, because it owns them.
        let request = unsafe {
            let into = bytes.as_mut_ptr().cast();
            (f.ucp_tag_msg_recv_nbx)(self.worker, into, about.length, message, &parameters)
        };
        let begun = self.begun("a receive", request, bytes)?;
        Ok(Some((about.tag, begun)))
    }

    /// Closes an endpoint after what was sent to it has been delivered.
    pub(crate) fn close(&mut self, endpoint: Endpoint) -> Result<Option<Request>> {
        let parameters = RequestParameters::default();
        // SAFETY: the endpoint is open, and is not used any more. Without flags, the library first
        // delivers what was sent.
        let request = unsafe { (self.functions.ucp_ep_close_nbx)(endpoint.0, &parameters) };
        self.begun("a close", request, Vec::new()).map(Result::err)
    }

    /// What a pointer that the library returned means: done, under way, or an error.
    fn begun(
        &self,
        what: &str,
        request: Pointer,
        bytes: Vec<u8>,
    ) -> Result<Result<Vec<u8>, Request>> {
        let number = request as isize;
        if number == 0 {
            return Ok(Ok(bytes));
        }
        if (LAST_ERROR..0).contains(&number) {
            self.functions.check(what, number as i32)?;
        }
        Ok(Err(Request { functions: self.functions.clone(), request, bytes }))
    }

    /// Lets messages proceed. Returns whether any did.
    pub(crate) fn progress(&mut self) -> bool {
        // SAFETY: the worker exists.
        unsafe { (self.functions.ucp_worker_progress)(self.worker) > 0 }
    }

    /// A descriptor that becomes readable after [`Worker::arm`] when a message can proceed.
    pub(crate) fn descriptor(&mut self) -> Result<OwnedFd> {
        let mut descriptor = -1;
        // SAFETY: the library stores a number.
        let status = unsafe { (self.functions.ucp_worker_get_efd)(self.worker, &mut descriptor) };
        self.functions.check("waiting", status)?;
        // SAFETY: the library has opened it, and keeps it open as long as the worker exists.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let copy = descriptor.try_clone_to_owned();
        copy.map_err(|e| err!(Unavailable, "cannot copy a descriptor of UCX: {e}"))
    }

    /// Makes the descriptor unreadable until a message can proceed. False if one can now.
    pub(crate) fn arm(&mut self) -> Result<bool> {
        // SAFETY: the worker exists.
        match unsafe { (self.functions.ucp_worker_arm)(self.worker) } {
            BUSY => Ok(false),
            status => self.functions.check("waiting", status).map(|()| true),
        }
    }
}

impl Request {
    /// Whether it is complete, after the worker has made progress.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        // SAFETY: the request is not freed before `self` is dropped.
        match unsafe { (self.functions.ucp_request_check_status)(self.request) } {
            IN_PROGRESS => Ok(false),
            status => self.functions.check("a message", status).map(|()| true),
        }
    }

    /// The bytes of a complete request.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The number of bytes under way.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if matches!(self.is_complete(), Ok(false)) {
            // The library still uses the bytes.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
        // SAFETY: freed once. A request that is not complete is released by the library later.
        unsafe { (self.functions.ucp_request_free)(self.request) };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let f = &*self.functions;
        // SAFETY: made by `open`, destroyed once, the worker before its context.
        unsafe {
            if !self.worker.is_null() {
                (f.ucp_worker_destroy)(self.worker);
            }
            (f.ucp_cleanup)(self.context);
        }
    }
}

/// Whether this host has a device for remote direct memory access.
pub fn has_device() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut devices| devices.next().is_some())
}
