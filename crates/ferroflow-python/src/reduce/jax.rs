//! Collectives inside `jax.jit`: a handler of XLA's foreign-function interface.
//!
//! XLA calls [`handler`] with the buffers and attributes of an op. The handler submits the tensors
//! and returns at once. A future of XLA completes when all results have arrived. The structs follow
//! XLA's C interface, version 0. Their sizes show which fields a version of XLA has.

use super::completions::complete;
use super::world::{operation, world};
use ferroflow_collective::{Collective, ForeignDone, ForeignTensor};
use ferroflow_core::{DType, Error, Result, bail, ensure, err};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// The minor version of XLA's interface, which a handler must state.
static MINOR: AtomicI32 = AtomicI32::new(0);

/// The address of [`handler`], for `jax.ffi.register_ffi_target`. `minor` is the minor version of
/// XLA's interface.
#[pyo3::pyfunction]
pub(super) fn jax_handler(minor: i32) -> usize {
    MINOR.store(minor, Ordering::Relaxed);
    handler as *const () as usize
}

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct ApiVersion {
    struct_size: usize,
    extension: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    api_version: ApiVersion,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

const METADATA: c_int = 1;

#[repr(C)]
struct ErrorCreate {
    struct_size: usize,
    extension: *mut Extension,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct FutureCreate {
    struct_size: usize,
    extension: *mut Extension,
    future: *mut c_void,
}

#[repr(C)]
struct FutureAvailable {
    struct_size: usize,
    extension: *mut Extension,
    future: *mut c_void,
}

#[repr(C)]
struct FutureError {
    struct_size: usize,
    extension: *mut Extension,
    future: *mut c_void,
    error: *mut c_void,
}

type Call<A> = unsafe extern "C" fn(*mut A) -> *mut c_void;

/// XLA's functions, up to those of futures.
#[repr(C)]
struct Api {
    struct_size: usize,
    extension: *mut Extension,
    api_version: ApiVersion,
    internal: *const c_void,
    error_create: Call<ErrorCreate>,
    others: [*const c_void; 12],
    future_create: Call<FutureCreate>,
    future_available: Call<FutureAvailable>,
    future_error: Call<FutureError>,
}

#[repr(C)]
struct Buffers {
    struct_size: usize,
    extension: *mut Extension,
    size: i64,
    kinds: *mut c_int,
    list: *mut *mut XlaBuffer,
}

#[repr(C)]
struct XlaBuffer {
    struct_size: usize,
    extension: *mut Extension,
    dtype: c_int,
    data: *mut u8,
    rank: i64,
    dims: *mut i64,
}

#[repr(C)]
struct ByteSpan {
    data: *const u8,
    len: usize,
}

#[repr(C)]
struct Scalar {
    dtype: c_int,
    value: *const i64,
}

#[repr(C)]
struct Attributes {
    struct_size: usize,
    extension: *mut Extension,
    size: i64,
    kinds: *mut c_int,
    names: *mut *mut ByteSpan,
    list: *mut *mut c_void,
}

const ATTRIBUTE_SCALAR: c_int = 3;
const ATTRIBUTE_STRING: c_int = 4;
const S64: c_int = 5;
const EXECUTE: c_int = 3;

#[repr(C)]
struct CallFrame {
    struct_size: usize,
    extension: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    args: Buffers,
    rets: Buffers,
    attrs: Attributes,
    future: *mut c_void,
}

/// Called by XLA.
///
/// # Safety
///
/// `frame` follows XLA's C interface.
unsafe extern "C" fn handler(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: XLA passes a valid frame that lives during the call, or until the future is complete.
    let frame = unsafe { &mut *frame };
    // SAFETY: an extension is null or valid. Type 1 is the metadata extension.
    unsafe {
        if !frame.extension.is_null() && (*frame.extension).kind == METADATA {
            let metadata = (*frame.extension.cast::<MetadataExtension>()).metadata;
            (*metadata).api_version.major = 0;
            (*metadata).api_version.minor = MINOR.load(Ordering::Relaxed);
            return null_mut();
        }
    }
    if frame.stage != EXECUTE {
        return null_mut();
    }
    match start(frame) {
        Ok(()) => null_mut(),
        // SAFETY: XLA's table of functions is valid.
        Err(e) => unsafe { error(frame.api, &e) },
    }
}

/// # Safety
///
/// `api` is XLA's table of functions.
unsafe fn error(api: *const Api, e: &Error) -> *mut c_void {
    let text = CString::new(e.message().replace('\0', " ")).unwrap_or_default();
    let mut args = ErrorCreate {
        struct_size: size_of::<ErrorCreate>(),
        extension: null_mut(),
        message: text.as_ptr(),
        code: e.code() as c_int,
    };
    // SAFETY: XLA copies the message during the call.
    unsafe { ((*api).error_create)(&raw mut args) }
}

/// A future of XLA, and the number of tensors that it still waits for.
struct Completion {
    api: *const Api,
    future: *mut c_void,
    left: Mutex<(usize, Option<Error>)>,
}

// SAFETY: XLA's functions on futures may be called on any thread, and the table lives forever.
unsafe impl Send for Completion {}
// SAFETY: as above.
unsafe impl Sync for Completion {}

impl Completion {
    fn one_done(self: Arc<Self>, result: Result<()>) {
        let mut left = self.left.lock();
        left.0 -= 1;
        if let Err(e) = result {
            left.1.get_or_insert(e);
        }
        if left.0 > 0 {
            return;
        }
        let failed = left.1.take();
        drop(left);
        complete(Box::new(move || self.end(failed)));
    }

    /// Completes the future. XLA runs the rest of the program inside this call.
    fn end(&self, failed: Option<Error>) {
        let (extension, future) = (null_mut(), self.future);
        // SAFETY: the future was created by this interface and is completed once.
        unsafe {
            match failed {
                None => {
                    let struct_size = size_of::<FutureAvailable>();
                    let mut args = FutureAvailable { struct_size, extension, future };
                    ((*self.api).future_available)(&raw mut args);
                }
                Some(e) => {
                    let error = error(self.api, &e);
                    let struct_size = size_of::<FutureError>();
                    let mut args = FutureError { struct_size, extension, future, error };
                    ((*self.api).future_error)(&raw mut args);
                }
            }
        }
    }
}

/// The attributes of a call.
#[derive(Default)]
struct CallAttributes {
    name: String,
    numbers: HashMap<String, i64>,
}

impl CallAttributes {
    fn number(&self, name: &str) -> Result<u64> {
        let found = self.numbers.get(name).and_then(|&n| u64::try_from(n).ok());
        found.ok_or_else(|| err!(InvalidArgument, "the attribute {name} is missing"))
    }
}

fn attributes(attrs: &Attributes) -> CallAttributes {
    let mut found = CallAttributes::default();
    for i in 0..usize::try_from(attrs.size).unwrap_or(0) {
        // SAFETY: the arrays have `size` entries. The kind of an attribute gives the type of its
        // pointer.
        unsafe {
            let text = |span: *const ByteSpan| {
                let bytes = match (*span).len {
                    0 => &[],
                    len => std::slice::from_raw_parts((*span).data, len),
                };
                String::from_utf8_lossy(bytes).into_owned()
            };
            let name = text(*attrs.names.add(i));
            let value = *attrs.list.add(i);
            match *attrs.kinds.add(i) {
                ATTRIBUTE_STRING => found.name = text(value.cast()),
                ATTRIBUTE_SCALAR => {
                    let scalar = &*value.cast::<Scalar>();
                    if scalar.dtype == S64 {
                        found.numbers.insert(name, *scalar.value);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The buffers of a call.
fn buffers(list: &Buffers) -> Vec<&XlaBuffer> {
    let count = usize::try_from(list.size).unwrap_or(0);
    // SAFETY: the array has `size` entries, which are buffers: XLA has no other kind.
    (0..count).map(|i| unsafe { &**list.list.add(i) }).collect()
}

fn dtype_of(number: c_int) -> Result<DType> {
    Ok(match number {
        1 => DType::Bool,
        2 => DType::Int8,
        3 => DType::Int16,
        4 => DType::Int32,
        5 => DType::Int64,
        6 => DType::UInt8,
        7 => DType::UInt16,
        8 => DType::UInt32,
        9 => DType::UInt64,
        10 => DType::Half,
        11 => DType::Float,
        12 => DType::Double,
        16 => DType::BFloat16,
        other => bail!(Unimplemented, "collectives do not support XLA's type {other}"),
    })
}

/// The buffer as a tensor. XLA keeps its memory until the future of the call is complete.
fn tensor_of(buffer: &XlaBuffer) -> Result<ForeignTensor> {
    let rank = usize::try_from(buffer.rank).unwrap_or(0);
    // SAFETY: the array has `rank` entries.
    let dims = (0..rank).map(|i| unsafe { *buffer.dims.add(i) } as usize).collect();
    // SAFETY: XLA's buffers are contiguous, and it neither reads nor writes them during the call.
    unsafe { ForeignTensor::new(buffer.data, dtype_of(buffer.dtype)?, dims, Box::new(())) }
}

/// Gives each of several concurrent executions of a name its own number.
static EXECUTIONS: Mutex<Option<HashMap<String, u64>>> = Mutex::new(None);

/// Restarts the numbers. All ranks do so when they connect, because new ranks start to count.
pub(super) fn forget_executions() {
    *EXECUTIONS.lock() = None;
}

fn start(frame: &mut CallFrame) -> Result<()> {
    let attrs = attributes(&frame.attrs);
    let (args, rets) = (buffers(&frame.args), buffers(&frame.rets));
    let (kind, op) = (attrs.number("kind")?, attrs.number("op")?);
    let (root, set) = (attrs.number("root")? as usize, attrs.number("process_set")? as usize);
    let (what, ask) = operation(kind as u8, op as u8, root, None, 0)?;
    let world = world()?;
    ensure!(args.len() >= rets.len(), InvalidArgument, "a collective has too few arguments");
    // SAFETY: XLA's table of functions lives forever.
    let api = unsafe { &*frame.api };
    ensure!(
        api.struct_size >= size_of::<Api>(),
        Unimplemented,
        "this version of XLA has no asynchronous calls; use a newer jaxlib"
    );
    let run = {
        let mut all = EXECUTIONS.lock();
        let run = all.get_or_insert_default().entry(attrs.name.clone()).or_insert(0);
        *run = (*run + 1) % 64;
        *run
    };
    let in_place =
        matches!(what, Collective::AllReduce | Collective::Adasum | Collective::Broadcast { .. });
    let mut submitted = Vec::new();
    for (i, ret) in rets.iter().enumerate() {
        let (mut input, mut output) = (tensor_of(args[i])?, tensor_of(ret)?);
        if in_place {
            if input.bytes().as_ptr() != output.bytes().as_ptr() {
                ensure!(
                    input.bytes().len() == output.bytes().len(),
                    InvalidArgument,
                    "the result of a collective has another size than its argument"
                );
                output.bytes_mut().copy_from_slice(input.bytes());
            }
            std::mem::swap(&mut input, &mut output);
        }
        // The result of a gather is copied when it is complete.
        let target = (!in_place).then_some(output);
        submitted.push((format!("{}.{i}.{run}", attrs.name), input.keep_values(), target));
    }
    let mut create = FutureCreate {
        struct_size: size_of::<FutureCreate>(),
        extension: null_mut(),
        future: null_mut(),
    };
    // SAFETY: XLA's table of functions is valid.
    let failed = unsafe { (api.future_create)(&raw mut create) };
    ensure!(failed.is_null(), Internal, "XLA made no future");
    frame.future = create.future;
    let left = Mutex::new((submitted.len().max(1), None));
    let completion = Arc::new(Completion { api: frame.api, future: create.future, left });
    if submitted.is_empty() {
        completion.one_done(Ok(()));
        return Ok(());
    }
    let tensors = submitted.into_iter().map(|(name, tensor, target)| {
        let completion = completion.clone();
        let done: ForeignDone = Box::new(move |outcome| {
            completion.one_done(outcome.and_then(|(tensor, _)| finish(tensor, target)));
        });
        (name, tensor, what.clone(), done)
    });
    world.submit_foreign(tensors.collect(), set, ask);
    Ok(())
}

/// Copies a result to the memory that XLA expects it in.
fn finish(mut tensor: ForeignTensor, target: Option<ForeignTensor>) -> Result<()> {
    let Some(mut output) = target else { return Ok(()) };
    let values = tensor.take_replaced().unwrap_or_default();
    ensure!(
        values.len() == output.bytes().len(),
        InvalidArgument,
        "the ranks have {} bytes together, but this program was compiled for {}: inside jit all \
         ranks need arguments of the same shape",
        values.len(),
        output.bytes().len()
    );
    output.bytes_mut().copy_from_slice(&values);
    Ok(())
}
