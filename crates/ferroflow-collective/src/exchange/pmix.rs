//! PMIx, through the launcher's own library, which is loaded when it is needed.

use super::store_error;
use crate::rendezvous::Deadline;
use ferroflow_core::{Result, bail, ensure, err};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Names of the library; the first that loads is used.
const LIBRARIES: [&str; 2] = ["libpmix.so.2", "libpmix.so"];
const KEY: &CStr = c"ferroflow";
/// Data of all ranks is collected in a fence.
const COLLECT: &CStr = c"pmix.collect";

const SUCCESS: c_int = 0;
const BOOL: u16 = 1;
const STRING: u16 = 3;
/// The value is for processes of this host and of others.
const GLOBAL: u8 = 3;

/// A process of a job: `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    namespace: [c_char; 256],
    rank: u32,
}

/// `pmix_value_t`. The union is at least as long as in all versions of the library, which reads and
/// writes only what `kind` says.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: u16,
    data: [u64; 7],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: Value,
}

type Init = unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const Info,
    usize,
    *mut *mut Value,
) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// Publishes the text of rank 0 and returns it on all ranks.
pub(super) fn exchange(published: Option<String>, until: &Deadline) -> Result<String> {
    let library = Pmix::load()?;
    let (tell, told) = channel();
    // The library's calls have no deadline.
    let work = move || drop(tell.send(library.share(published)));
    let thread = std::thread::Builder::new().name("ff-pmix".into()).spawn(work);
    thread.map_err(|e| store_error("cannot start a thread", e))?;
    loop {
        match told.recv_timeout(Duration::from_millis(20)) {
            Ok(text) => return text,
            Err(RecvTimeoutError::Timeout) => until.check()?,
            Err(RecvTimeoutError::Disconnected) => bail!(Internal, "the thread has ended"),
        }
        ensure!(
            !until.is_over(),
            DeadlineExceeded,
            "PMIx did not answer: perhaps not all processes of the job take part"
        );
    }
}

struct Pmix(Library);

impl Pmix {
    fn load() -> Result<Pmix> {
        let mut why = Vec::new();
        for name in LIBRARIES {
            // SAFETY: the initializers of this library are meant to be run by a client.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok(Pmix(library)),
                Err(e) => why.push(e.to_string()),
            }
        }
        let why = why.join("; ");
        Err(err!(
            FailedPrecondition,
            "the PMIx library is not there ({why}): install it (libpmix2 on Debian)"
        ))
    }

    fn share(&self, published: Option<String>) -> Result<String> {
        let mut own = Process { namespace: [0; 256], rank: 0 };
        self.check("PMIx_Init", |pmix| {
            // SAFETY: the name is that of a function of this type; `own` outlives the call.
            Ok(unsafe { pmix.function::<Init>("PMIx_Init")?(&mut own, std::ptr::null_mut(), 0) })
        })?;
        let text = self.put_and_get(&own, published);
        // Launchers take the end of a process without this for a failure.
        self.check("PMIx_Finalize", |pmix| {
            // SAFETY: as above; no information is given.
            Ok(unsafe { pmix.function::<Finalize>("PMIx_Finalize")?(std::ptr::null(), 0) })
        })?;
        text
    }

    fn put_and_get(&self, own: &Process, published: Option<String>) -> Result<String> {
        if let Some(text) = published {
            let text = CString::new(text).map_err(|e| store_error("cannot publish", e))?;
            let mut value = Value { kind: STRING, data: [0; 7] };
            value.data[0] = text.as_ptr() as usize as u64;
            self.check("PMIx_Put", |pmix| {
                // SAFETY: the library copies the text, which outlives the call.
                Ok(unsafe { pmix.function::<Put>("PMIx_Put")?(GLOBAL, KEY.as_ptr(), &mut value) })
            })?;
        }
        self.check("PMIx_Commit", |pmix| {
            // SAFETY: takes nothing.
            Ok(unsafe { pmix.function::<Commit>("PMIx_Commit")?() })
        })?;
        let mut collect =
            Info { key: [0; 512], flags: 0, value: Value { kind: BOOL, data: [0; 7] } };
        for (to, from) in collect.key.iter_mut().zip(COLLECT.to_bytes()) {
            *to = *from as c_char;
        }
        collect.value.data[0] = u64::from_ne_bytes([1; 8]);
        let mut whole = *own;
        // All ranks of the job.
        whole.rank = u32::MAX - 1;
        self.check("PMIx_Fence", |pmix| {
            // SAFETY: both structures outlive the call, and one of each is given.
            Ok(unsafe { pmix.function::<Fence>("PMIx_Fence")?(&whole, 1, &collect, 1) })
        })?;
        let mut first = *own;
        first.rank = 0;
        let mut value: *mut Value = std::ptr::null_mut();
        self.check("PMIx_Get", |pmix| {
            let get = pmix.function::<Get>("PMIx_Get")?;
            // SAFETY: the structures outlive the call; the library stores one pointer.
            Ok(unsafe { get(&first, KEY.as_ptr(), std::ptr::null(), 0, &mut value) })
        })?;
        ensure!(!value.is_null(), DataLoss, "PMIx returned no value");
        // SAFETY: a value that the library has made for the caller, with its kind first. Only the
        // first two words are read, which all versions have. It is not freed: it is small.
        let (kind, text) = unsafe { ((*value).kind, (*value).data[0] as usize as *const c_char) };
        ensure!(kind == STRING && !text.is_null(), DataLoss, "PMIx returned another type: {kind}");
        // SAFETY: a value of this kind holds a text that ends with a zero.
        let text = unsafe { CStr::from_ptr(text) };
        Ok(text.to_string_lossy().into_owned())
    }

    /// A function of the library.
    fn function<T: Copy>(&self, name: &str) -> Result<T> {
        // SAFETY: every caller names a function together with its type.
        let found = unsafe { self.0.get::<T>(name) };
        found.map(|f| *f).map_err(|e| store_error("the PMIx library is too old", e))
    }

    fn check(&self, what: &str, call: impl FnOnce(&Pmix) -> Result<c_int>) -> Result<()> {
        match call(self)? {
            SUCCESS => Ok(()),
            status => {
                let text = self.function::<ErrorText>("PMIx_Error_string")?;
                // SAFETY: the function returns a constant text, or null.
                let text = unsafe { text(status) };
                let text = match text.is_null() {
                    true => String::new(),
                    // SAFETY: not null, and the text ends with a zero.
                    false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
                };
                bail!(Unavailable, "{what} failed: {text} ({status})")
            }
        }
    }
}
