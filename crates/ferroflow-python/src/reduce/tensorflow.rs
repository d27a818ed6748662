//! Collectives as ops of TensorFlow, registered through its C interface.
//!
//! `FerroflowSubmit` submits tensors and returns a number at once. It takes over the memory of
//! tensors without other users, and copies the others. `FerroflowWait` waits for the results of
//! such numbers. This module is not compiled against TensorFlow: Python passes the addresses of the
//! functions of the library that it has loaded.

use super::handle::HandleSlot;
use super::world::{operation, world};
use ferroflow_collective::{Collective, ForeignDone, ForeignTensor, SubmitOptions, scale};
use ferroflow_core::{Code, DType, Error, Result, bail, ensure, err};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

type Ptr = *mut c_void;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// TensorFlow's functions.
        #[expect(non_snake_case, reason = "TensorFlow's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        /// The names of TensorFlow's functions that the ops need.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Functions {
            fn new(addresses: &HashMap<String, usize>) -> Result<Functions> {
                let at = |name: &str| match addresses.get(name) {
                    Some(&address) if address != 0 => Ok(address),
                    _ => bail!(Unimplemented, "this TensorFlow has no function {name}"),
                };
                Ok(Functions {
                    // SAFETY: the address is that of the function of this name, whose signature
                    // is part of TensorFlow's C interface.
                    $($name: unsafe {
                        std::mem::transmute::<usize, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(
                            at(stringify!($name))?,
                        )
                    },)*
                })
            }
        }
    };
}

type Create = unsafe extern "C" fn(Ptr) -> Ptr;
type Compute = unsafe extern "C" fn(Ptr, Ptr);
type Delete = unsafe extern "C" fn(Ptr);
type ShapeFunction = unsafe extern "C" fn(Ptr, Ptr);

functions! {
    TF_NewStatus: fn() -> Ptr;
    TF_DeleteStatus: fn(Ptr);
    TF_SetStatus: fn(Ptr, c_int, *const c_char);
    TF_GetCode: fn(Ptr) -> c_int;
    TF_Message: fn(Ptr) -> *const c_char;
    TF_NewOpDefinitionBuilder: fn(*const c_char) -> Ptr;
    TF_OpDefinitionBuilderAddAttr: fn(Ptr, *const c_char);
    TF_OpDefinitionBuilderAddInput: fn(Ptr, *const c_char);
    TF_OpDefinitionBuilderAddOutput: fn(Ptr, *const c_char);
    TF_OpDefinitionBuilderSetIsStateful: fn(Ptr, bool);
    TF_OpDefinitionBuilderSetShapeInferenceFunction: fn(Ptr, ShapeFunction);
    TF_ShapeInferenceContextSetUnknownShape: fn(Ptr, Ptr);
    TF_RegisterOpDefinition: fn(Ptr, Ptr);
    TF_NewKernelBuilder: fn(*const c_char, *const c_char, Create, Compute, Delete) -> Ptr;
    TF_RegisterKernelBuilder: fn(*const c_char, Ptr, Ptr);
    TF_OpKernelConstruction_GetAttrSize: fn(Ptr, *const c_char, *mut i32, *mut i32, Ptr);
    TF_OpKernelConstruction_GetAttrString: fn(Ptr, *const c_char, *mut c_char, usize, Ptr);
    TF_OpKernelConstruction_GetAttrInt64: fn(Ptr, *const c_char, *mut i64, Ptr);
    TF_OpKernelConstruction_GetAttrFloat: fn(Ptr, *const c_char, *mut f32, Ptr);
    TF_OpKernelConstruction_Failure: fn(Ptr, Ptr);
    TF_OpKernelContext_Failure: fn(Ptr, Ptr);
    TF_NumInputs: fn(Ptr) -> c_int;
    TF_NumOutputs: fn(Ptr) -> c_int;
    TF_GetInput: fn(Ptr, c_int, *mut Ptr, Ptr);
    TF_SetOutput: fn(Ptr, c_int, Ptr, Ptr);
    TF_ForwardInputOrAllocateOutput: fn(
        Ptr, *const c_int, c_int, c_int, *const i64, c_int, *mut c_int, Ptr
    ) -> Ptr;
    TF_AllocateTensor: fn(c_int, *const i64, c_int, usize) -> Ptr;
    TF_DeleteTensor: fn(Ptr);
    TF_TensorType: fn(Ptr) -> c_int;
    TF_NumDims: fn(Ptr) -> c_int;
    TF_Dim: fn(Ptr, c_int) -> i64;
    TF_TensorByteSize: fn(Ptr) -> usize;
    TF_TensorData: fn(Ptr) -> Ptr;
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

fn tf() -> &'static Functions {
    FUNCTIONS.get().expect("kernels exist only after their registration")
}

/// The names of the functions whose addresses `register_tensorflow_ops` needs.
#[pyfunction]
pub(super) fn tensorflow_functions() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// Registers the ops with the TensorFlow of these addresses. Only the first call has an effect.
#[pyfunction]
pub(super) fn register_tensorflow_ops(
    py: Python<'_>,
    addresses: HashMap<String, usize>,
) -> PyResult<()> {
    if FUNCTIONS.get().is_some() {
        return Ok(());
    }
    let registered = Functions::new(&addresses).and_then(|functions| {
        let _ = FUNCTIONS.set(functions);
        register_ops()
    });
    registered.map_err(|e| super::exception::raised(py, &e))
}

const SUBMIT: &CStr = c"FerroflowSubmit";
const WAIT: &CStr = c"FerroflowWait";
const PLACE: &CStr = c"FerroflowPlace";

fn register_ops() -> Result<()> {
    let attrs = [
        c"T: list(type)",
        c"kind: int",
        c"op: int",
        c"root: int",
        c"process_set: int",
        c"tensor_name: string",
        c"prescale: float = 1.0",
        c"postscale: float = 1.0",
    ];
    let inputs = [c"tensors: T", c"splits: int32"];
    // No op reads the second output. A kernel gets the memory of an input only through an output.
    let outputs = [c"handle: int64", c"memory: T"];
    define(SUBMIT, &attrs, &inputs, &outputs, create_submit, compute_submit)?;
    define(
        WAIT,
        &[c"N: int >= 1", c"T: list(type)"],
        &[c"handles: N * int64"],
        &[c"tensors: T", c"counts: int64"],
        create_nothing,
        compute_wait,
    )?;
    let attrs = [c"which: int", c"process_set: int = 0"];
    define(PLACE, &attrs, &[], &[c"value: int32"], create_place, compute_place)
}

fn define(
    name: &CStr,
    attrs: &[&CStr],
    inputs: &[&CStr],
    outputs: &[&CStr],
    create: Create,
    compute: Compute,
) -> Result<()> {
    let tf = tf();
    let status = Status::new();
    // SAFETY: these calls follow TensorFlow's C interface. It copies all texts. The two calls that
    // register take over the builders.
    unsafe {
        let op = (tf.TF_NewOpDefinitionBuilder)(name.as_ptr());
        attrs.iter().for_each(|a| (tf.TF_OpDefinitionBuilderAddAttr)(op, a.as_ptr()));
        inputs.iter().for_each(|i| (tf.TF_OpDefinitionBuilderAddInput)(op, i.as_ptr()));
        outputs.iter().for_each(|o| (tf.TF_OpDefinitionBuilderAddOutput)(op, o.as_ptr()));
        (tf.TF_OpDefinitionBuilderSetIsStateful)(op, true);
        (tf.TF_OpDefinitionBuilderSetShapeInferenceFunction)(op, unknown_shape);
        (tf.TF_RegisterOpDefinition)(op, status.0);
        status.check()?;
        let kernel = (tf.TF_NewKernelBuilder)(
            name.as_ptr(),
            c"CPU".as_ptr(),
            create,
            compute,
            delete_attributes,
        );
        (tf.TF_RegisterKernelBuilder)(name.as_ptr(), kernel, status.0);
    }
    status.check()
}

unsafe extern "C" fn unknown_shape(context: Ptr, status: Ptr) {
    // SAFETY: TensorFlow passes a valid context and status.
    unsafe { (tf().TF_ShapeInferenceContextSetUnknownShape)(context, status) }
}

/// A status of TensorFlow.
struct Status(Ptr);

impl Status {
    fn new() -> Status {
        // SAFETY: no arguments.
        Status(unsafe { (tf().TF_NewStatus)() })
    }

    fn check(&self) -> Result<()> {
        // SAFETY: the status is valid, and its message lives as long as it is not changed.
        unsafe {
            let code = (tf().TF_GetCode)(self.0);
            if code == 0 {
                return Ok(());
            }
            let text = CStr::from_ptr((tf().TF_Message)(self.0)).to_string_lossy();
            Err(Error::new(Code::from_number(code), text.into_owned()))
        }
    }

    fn set(&self, e: &Error) {
        let text = CString::new(e.message().replace('\0', " ")).unwrap_or_default();
        // SAFETY: TensorFlow copies the text.
        unsafe { (tf().TF_SetStatus)(self.0, e.code() as c_int, text.as_ptr()) }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { (tf().TF_DeleteStatus)(self.0) }
    }
}

/// A tensor of TensorFlow that this module owns.
struct TfTensor(Ptr);

// SAFETY: TensorFlow's tensors are reference-counted and may be used on any thread.
unsafe impl Send for TfTensor {}

impl Drop for TfTensor {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { (tf().TF_DeleteTensor)(self.0) }
    }
}

impl TfTensor {
    fn allocate(dtype: c_int, dims: &[i64], bytes: usize) -> Result<TfTensor> {
        let count = dims.len() as c_int;
        let dims = if dims.is_empty() { null() } else { dims.as_ptr() };
        // SAFETY: the array has `count` entries.
        let made = unsafe { (tf().TF_AllocateTensor)(dtype, dims, count, bytes) };
        ensure!(!made.is_null(), ResourceExhausted, "no memory for {bytes} bytes");
        Ok(TfTensor(made))
    }

    fn dtype(&self) -> c_int {
        // SAFETY: the tensor is valid.
        unsafe { (tf().TF_TensorType)(self.0) }
    }

    fn dims(&self) -> Vec<i64> {
        // SAFETY: the tensor is valid.
        unsafe {
            let rank = (tf().TF_NumDims)(self.0);
            (0..rank).map(|i| (tf().TF_Dim)(self.0, i)).collect()
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the tensor is valid and its data are plain values.
        unsafe {
            let (data, len) = ((tf().TF_TensorData)(self.0), (tf().TF_TensorByteSize)(self.0));
            if len == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), len) }
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`. The tensor was allocated here or taken over by `own_input`, so it
        // is the only user of its data.
        unsafe {
            let (data, len) = ((tf().TF_TensorData)(self.0), (tf().TF_TensorByteSize)(self.0));
            if len == 0 { &mut [] } else { std::slice::from_raw_parts_mut(data.cast(), len) }
        }
    }
}

/// The attributes of a node that its kernel keeps.
struct SubmitAttributes {
    name: String,
    what: Collective,
    ask: SubmitOptions,
    process_set: usize,
    prescale: f64,
    postscale: f64,
}

enum KernelAttributes {
    None,
    Submit(SubmitAttributes),
    Place { which: i64, process_set: usize },
}

struct Construction(Ptr);

impl Construction {
    fn int(&self, name: &CStr) -> Result<i64> {
        let (mut value, status) = (0i64, Status::new());
        // SAFETY: the context is valid during construction.
        unsafe {
            (tf().TF_OpKernelConstruction_GetAttrInt64)(
                self.0,
                name.as_ptr(),
                &raw mut value,
                status.0,
            );
        }
        status.check().map(|()| value)
    }

    fn float(&self, name: &CStr) -> Result<f64> {
        let (mut value, status) = (0f32, Status::new());
        // SAFETY: as above.
        unsafe {
            (tf().TF_OpKernelConstruction_GetAttrFloat)(
                self.0,
                name.as_ptr(),
                &raw mut value,
                status.0,
            );
        }
        status.check().map(|()| f64::from(value))
    }

    fn text(&self, name: &CStr) -> Result<String> {
        let (mut list, mut total, status) = (0i32, 0i32, Status::new());
        // SAFETY: as above.
        unsafe {
            (tf().TF_OpKernelConstruction_GetAttrSize)(
                self.0,
                name.as_ptr(),
                &raw mut list,
                &raw mut total,
                status.0,
            );
        }
        status.check()?;
        let mut bytes = vec![0u8; usize::try_from(total).unwrap_or(0)];
        // SAFETY: the buffer has `total` bytes.
        unsafe {
            (tf().TF_OpKernelConstruction_GetAttrString)(
                self.0,
                name.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                status.0,
            );
        }
        status.check()?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn created(context: Ptr, made: Result<KernelAttributes>) -> Ptr {
    match made {
        Ok(attributes) => Box::into_raw(Box::new(attributes)).cast(),
        Err(e) => {
            let status = Status::new();
            status.set(&e);
            // SAFETY: the context is valid during construction.
            unsafe { (tf().TF_OpKernelConstruction_Failure)(context, status.0) };
            null_mut()
        }
    }
}

unsafe extern "C" fn create_nothing(context: Ptr) -> Ptr {
    created(context, Ok(KernelAttributes::None))
}

unsafe extern "C" fn create_place(context: Ptr) -> Ptr {
    let c = Construction(context);
    let made = c.int(c"which").and_then(|which| {
        let process_set = c.int(c"process_set")? as usize;
        Ok(KernelAttributes::Place { which, process_set })
    });
    created(context, made)
}

unsafe extern "C" fn create_submit(context: Ptr) -> Ptr {
    let c = Construction(context);
    let made = || -> Result<KernelAttributes> {
        let (kind, op, root) = (c.int(c"kind")?, c.int(c"op")?, c.int(c"root")?);
        let (what, ask) = operation(kind as u8, op as u8, root as usize, None, 0)?;
        Ok(KernelAttributes::Submit(SubmitAttributes {
            name: c.text(c"tensor_name")?,
            what,
            ask,
            process_set: c.int(c"process_set")? as usize,
            prescale: c.float(c"prescale")?,
            postscale: c.float(c"postscale")?,
        }))
    };
    created(context, made())
}

unsafe extern "C" fn delete_attributes(kernel: Ptr) {
    if !kernel.is_null() {
        // SAFETY: `created` made it, and TensorFlow deletes it once.
        drop(unsafe { Box::from_raw(kernel.cast::<KernelAttributes>()) });
    }
}

/// The call of a kernel.
struct Context(Ptr);

impl Context {
    fn input(&self, index: c_int) -> Result<TfTensor> {
        let (mut tensor, status) = (null_mut(), Status::new());
        // SAFETY: the context is valid during the call. The result is owned by the caller.
        unsafe { (tf().TF_GetInput)(self.0, index, &raw mut tensor, status.0) };
        status.check()?;
        Ok(TfTensor(tensor))
    }

    /// A tensor with the values of an input, in memory without other users. It is the input's own
    /// memory if the input was its only user.
    fn own_input(&self, index: c_int, output: c_int, dims: &[i64]) -> Result<TfTensor> {
        let (mut forwarded, status) = (-1, Status::new());
        // SAFETY: the context is valid during the call. The arrays have the given lengths.
        let own = unsafe {
            (tf().TF_ForwardInputOrAllocateOutput)(
                self.0,
                &raw const index,
                1,
                output,
                dims.as_ptr(),
                dims.len() as c_int,
                &raw mut forwarded,
                status.0,
            )
        };
        status.check()?;
        ensure!(!own.is_null(), ResourceExhausted, "no memory for a tensor of shape {dims:?}");
        let mut own = TfTensor(own);
        if forwarded != index {
            own.bytes_mut().copy_from_slice(self.input(index)?.bytes());
        }
        Ok(own)
    }

    fn set_output(&self, index: c_int, tensor: &TfTensor) -> Result<()> {
        let status = Status::new();
        // SAFETY: as above. TensorFlow shares the tensor's data.
        unsafe { (tf().TF_SetOutput)(self.0, index, tensor.0, status.0) };
        status.check()
    }

    fn set_values(&self, index: c_int, dtype: DType, dims: &[i64], bytes: &[u8]) -> Result<()> {
        let mut tensor = TfTensor::allocate(dtype.number(), dims, bytes.len())?;
        tensor.bytes_mut().copy_from_slice(bytes);
        self.set_output(index, &tensor)
    }

    fn finish(&self, result: Result<()>) {
        if let Err(e) = result {
            let status = Status::new();
            status.set(&e);
            // SAFETY: the context is valid during the call.
            unsafe { (tf().TF_OpKernelContext_Failure)(self.0, status.0) };
        }
    }
}

/// A submission that no op has waited for yet.
struct Submitted {
    slots: Vec<Arc<HandleSlot>>,
    shapes: Vec<Vec<i64>>,
    what: Collective,
    postscale: f64,
}

static SUBMITTED: Mutex<Option<HashMap<i64, Submitted>>> = Mutex::new(None);
static NEXT: AtomicI64 = AtomicI64::new(1);

unsafe extern "C" fn compute_submit(kernel: Ptr, context: Ptr) {
    let context = Context(context);
    // SAFETY: `create_submit` made the kernel's attributes.
    let attributes = unsafe { kernel.cast::<KernelAttributes>().as_ref() };
    context.finish(match attributes {
        Some(KernelAttributes::Submit(a)) => submit(&context, a),
        _ => Err(err!(Internal, "the op has no attributes")),
    });
}

fn submit(context: &Context, attributes: &SubmitAttributes) -> Result<()> {
    let world = world()?;
    let (rank, set) = (world.rank(), attributes.process_set);
    ensure!(
        set == 0 || world.process_set(set)?.includes(rank),
        InvalidArgument,
        "rank {rank} is not in process set {set}"
    );
    // SAFETY: the context is valid during the call.
    let count = unsafe { (tf().TF_NumInputs)(context.0) } - 1;
    let splits = context.input(count)?;
    let splits: Vec<usize> = splits
        .bytes()
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| usize::try_from(i32::from_ne_bytes(*b)).unwrap_or(usize::MAX))
        .collect();
    let (mut all, mut slots, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    let mut ask = attributes.ask.clone();
    let mut what = attributes.what.clone();
    for i in 0..count {
        let input = context.input(i)?;
        let mut dims = input.dims();
        let dtype = DType::from_number(input.dtype())?;
        if dims.is_empty() && matches!(what, Collective::AllGather | Collective::AllToAll { .. }) {
            dims = vec![1];
        }
        if dims.is_empty() && what == Collective::ReduceScatter {
            ask.fault = Some(err!(InvalidArgument, "reducescatter needs a first dimension"));
        }
        let shape: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
        if let Collective::AllToAll { splits: values } = &mut what {
            let row: usize = shape.iter().skip(1).product();
            *values = splits.iter().map(|s| s.saturating_mul(row)).collect();
            let rows = shape.first().copied().unwrap_or(1);
            if splits.iter().fold(0usize, |n, &s| n.saturating_add(s)) != rows {
                ask.fault = Some(err!(
                    InvalidArgument,
                    "the splits {splits:?} do not add up to {rows} rows"
                ));
            }
        }
        // With this reference, the memory would have two users.
        drop(input);
        let mut own = context.own_input(i, i + 1, &dims)?;
        if attributes.prescale != 1.0 {
            scale(dtype, own.bytes_mut(), attributes.prescale)?;
        }
        let data = own.bytes_mut().as_mut_ptr();
        // SAFETY: `own` keeps the data, and the data have no other users.
        let tensor = unsafe { ForeignTensor::new(data, dtype, shape, Box::new(own)) }?;
        let slot = Arc::new(HandleSlot::default());
        slots.push(slot.clone());
        shapes.push(dims);
        let name = match count {
            1 => attributes.name.clone(),
            _ => format!("{}.{i}", attributes.name),
        };
        let done: ForeignDone = Box::new(move |outcome| slot.fill(outcome));
        all.push((name, tensor.keep_values(), what.clone(), done));
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let submitted = Submitted { slots, shapes, what, postscale: attributes.postscale };
    SUBMITTED.lock().get_or_insert_default().insert(number, submitted);
    world.submit_foreign(all, attributes.process_set, ask);
    context.set_values(0, DType::Int64, &[], &number.to_ne_bytes())
}

/// When ranks disagree, the error has the class that Horovod's users catch.
fn as_horovod_reports(e: Error) -> Error {
    match e.code() {
        Code::InvalidArgument => Error::new(Code::FailedPrecondition, e.message().to_string()),
        _ => e,
    }
}

unsafe extern "C" fn compute_wait(_kernel: Ptr, context: Ptr) {
    let context = Context(context);
    context.finish(wait(&context));
}

fn wait(context: &Context) -> Result<()> {
    // SAFETY: the context is valid during the call.
    let (handles, outputs) =
        unsafe { ((tf().TF_NumInputs)(context.0), (tf().TF_NumOutputs)(context.0)) };
    let (mut output, mut all_counts) = (0, Vec::new());
    // Takes all of them first: if one fails, the others are dropped.
    let mut taken = Vec::new();
    for i in 0..handles {
        let mut number = [0; 8];
        number.copy_from_slice(context.input(i)?.bytes());
        let found = SUBMITTED.lock().as_mut().and_then(|s| s.remove(&i64::from_ne_bytes(number)));
        taken.push(found.ok_or_else(|| err!(NotFound, "the tensor was waited for twice"))?);
    }
    for Submitted { slots, shapes, what, postscale } in taken {
        for (slot, dims) in slots.into_iter().zip(shapes) {
            slot.wait_until(None);
            let Some(outcome) = slot.take() else { bail!(Internal, "a result was taken twice") };
            let (mut tensor, counts) = outcome.map_err(as_horovod_reports)?;
            let dtype = tensor.dtype();
            if let Some(mut values) = tensor.take_replaced() {
                let row: i64 = dims.iter().skip(1).product();
                let width = dtype.size().unwrap_or(1) as i64;
                let rows = values.len() as i64 / (row * width).max(1);
                let mut shape = dims.clone();
                shape[0] = rows;
                if postscale != 1.0 {
                    scale(dtype, &mut values, postscale)?;
                }
                context.set_values(output, dtype, &shape, &values)?;
                if matches!(what, Collective::AllGather | Collective::AllToAll { .. }) {
                    all_counts.extend(counts.iter().map(|&c| c as i64 / row.max(1)));
                }
            } else {
                if postscale != 1.0 {
                    scale(dtype, tensor.bytes_mut(), postscale)?;
                }
                match tensor.into_owner().downcast::<TfTensor>() {
                    Ok(own) => context.set_output(output, &own)?,
                    Err(_) => bail!(Internal, "the result has another owner than its tensor"),
                }
            }
            output += 1;
        }
    }
    ensure!(
        output + 1 == outputs,
        InvalidArgument,
        "the op has {outputs} outputs for {output} tensors"
    );
    let bytes: Vec<u8> = all_counts.iter().flat_map(|c: &i64| c.to_ne_bytes()).collect();
    context.set_values(output, DType::Int64, &[all_counts.len() as i64], &bytes)
}

unsafe extern "C" fn compute_place(kernel: Ptr, context: Ptr) {
    let context = Context(context);
    // SAFETY: `create_place` made the kernel's attributes.
    let attributes = unsafe { kernel.cast::<KernelAttributes>().as_ref() };
    context.finish((|| {
        let Some(KernelAttributes::Place { which, process_set }) = attributes else {
            bail!(Internal, "the op has no attributes");
        };
        let w = world()?;
        let value = match which {
            0 if *process_set > 0 => w.process_set(*process_set)?.rank().unwrap_or(usize::MAX),
            1 if *process_set > 0 => w.process_set(*process_set)?.size(),
            0 => w.rank(),
            1 => w.size(),
            2 => w.local_rank(),
            3 => w.local_size(),
            4 => usize::from(w.process_set(*process_set)?.includes(w.rank())),
            other => bail!(InvalidArgument, "there is no place {other}"),
        };
        context.set_values(0, DType::Int32, &[], &(value as i32).to_ne_bytes())
    })());
}
