//! Convolutions with cuDNN, where it is installed. The algorithm is chosen once for each kind of
//! convolution, among those with the same bits in every run.

use cudarc::cudnn::sys::{
    self, cudnnConvolutionBwdDataAlgo_t as InputAlgorithm,
    cudnnConvolutionBwdFilterAlgo_t as FilterAlgorithm, cudnnConvolutionDescriptor_t,
    cudnnConvolutionFwdAlgo_t as OutputAlgorithm, cudnnConvolutionMode_t as Mode,
    cudnnDataType_t as Element, cudnnDeterminism_t as Determinism, cudnnFilterDescriptor_t,
    cudnnHandle_t, cudnnMathType_t as Math, cudnnStatus_t as Status, cudnnTensorDescriptor_t,
    cudnnTensorFormat_t as Format,
};
use ferroflow_core::{ConvolutionResult, DType, GpuConvolution, HashMap, Result, bail, err};
use parking_lot::Mutex;
use std::ffi::{c_int, c_void};

/// Scratch memory that an algorithm may use.
const MOST_SCRATCH: usize = 1 << 30;
/// The number of algorithms to request.
const CHOICES: usize = 8;

/// A library handle and the convolutions it knows.
pub(crate) struct Dnn {
    /// One caller at a time may use the handle.
    state: Mutex<State>,
    allow_tf32: bool,
}

struct State {
    handle: cudnnHandle_t,
    /// `None` for kinds that the library does not support.
    known: HashMap<GpuConvolution, Option<Plan>>,
}

// SAFETY: the handle and the descriptors are used under the lock alone.
unsafe impl Send for State {}

#[derive(Clone, Copy)]
struct Plan {
    x: cudnnTensorDescriptor_t,
    y: cudnnTensorDescriptor_t,
    w: cudnnFilterDescriptor_t,
    convolution: cudnnConvolutionDescriptor_t,
    algorithm: Algorithm,
    scratch: usize,
}

#[derive(Clone, Copy)]
enum Algorithm {
    Output(OutputAlgorithm),
    Input(InputAlgorithm),
    Filter(FilterAlgorithm),
}

fn check(status: Status) -> Result<(), Status> {
    if status == Status::CUDNN_STATUS_SUCCESS { Ok(()) } else { Err(status) }
}

impl Dnn {
    /// A handle on the current context, whose work goes to `stream`.
    pub fn new(stream: *mut c_void, allow_tf32: bool) -> Result<Dnn> {
        let broken = |status: Status| err!(Internal, "cuDNN does not start: {status:?}");
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library sets `handle`.
        check(unsafe { sys::cudnnCreate(&mut handle) }).map_err(broken)?;
        // SAFETY: handle and stream are valid.
        check(unsafe { sys::cudnnSetStream(handle, stream.cast()) }).map_err(broken)?;
        let known = HashMap::default();
        Ok(Dnn { state: Mutex::new(State { handle, known }), allow_tf32 })
    }

    /// Enqueues a convolution. Returns `false` if the library does not support it. `scratch` calls
    /// its second argument with the address of this many bytes.
    pub fn convolve(
        &self,
        convolution: &GpuConvolution,
        scratch: &dyn Fn(usize, &mut dyn FnMut(u64) -> Result<()>) -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        let kind = GpuConvolution { x: 0, w: 0, y: 0, ..convolution.clone() };
        let handle = state.handle;
        let known = state.known.get(&kind).copied();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let plan = Plan::new(handle, &kind, self.allow_tf32).ok().flatten();
                state.known.insert(kind, plan);
                plan
            }
        };
        let Some(plan) = plan else { return Ok(false) };
        scratch(plan.scratch, &mut |address| {
            let done = check(plan.run(handle, convolution, address));
            done.map_err(|status| err!(Internal, "a convolution with cuDNN: {status:?}"))
        })?;
        Ok(true)
    }
}

impl Dnn {
    /// Repeats a convolution on another stream than `own`, with the same scratch memory. The
    /// convolution must have been enqueued before.
    pub fn convolve_again(
        &self,
        convolution: &GpuConvolution,
        scratch: u64,
        stream: *mut c_void,
        own: *mut c_void,
    ) -> Result<()> {
        let state = self.state.lock();
        let kind = GpuConvolution { x: 0, w: 0, y: 0, ..convolution.clone() };
        let Some(plan) = state.known.get(&kind).copied().flatten() else {
            bail!(Internal, "a convolution that cuDNN has not seen");
        };
        let failed = |status: Status| err!(Internal, "a convolution with cuDNN: {status:?}");
        // SAFETY: handle and stream are valid.
        check(unsafe { sys::cudnnSetStream(state.handle, stream.cast()) }).map_err(failed)?;
        let ran = check(plan.run(state.handle, convolution, scratch)).map_err(failed);
        // SAFETY: as above.
        check(unsafe { sys::cudnnSetStream(state.handle, own.cast()) }).map_err(failed)?;
        ran
    }
}

impl Plan {
    fn new(
        handle: cudnnHandle_t,
        conv: &GpuConvolution,
        allow_tf32: bool,
    ) -> Result<Option<Plan>, Status> {
        let (element, compute) = match conv.dtype {
            DType::Float => (Element::CUDNN_DATA_FLOAT, Element::CUDNN_DATA_FLOAT),
            DType::Half => (Element::CUDNN_DATA_HALF, Element::CUDNN_DATA_FLOAT),
            DType::BFloat16 => (Element::CUDNN_DATA_BFLOAT16, Element::CUDNN_DATA_FLOAT),
            _ => return Ok(None),
        };
        let math = match (conv.dtype, allow_tf32) {
            (DType::Float, false) => Math::CUDNN_FMA_MATH,
            (DType::Float, true) => Math::CUDNN_DEFAULT_MATH,
            _ => Math::CUDNN_TENSOR_OP_MATH,
        };
        let GpuConvolution { batch, channels, groups, input, filter, output, .. } = *conv;
        let [sh, sw] = conv.strides.map(|n| n as c_int);
        let [dh, dw] = conv.dilations.map(|n| n as c_int);
        let [ph, pw] = conv.padding.map(|n| n as c_int);
        let mut descriptor = std::ptr::null_mut();
        let mut w = std::ptr::null_mut();
        let (k, c, [h, wide]) =
            (channels[1] as c_int, (channels[0] / groups) as c_int, filter.map(|n| n as c_int));
        // SAFETY: the library makes the descriptors, which live as long as the process.
        unsafe {
            check(sys::cudnnCreateConvolutionDescriptor(&mut descriptor))?;
            let (mode, format) = (Mode::CUDNN_CROSS_CORRELATION, Format::CUDNN_TENSOR_NHWC);
            check(sys::cudnnSetConvolution2dDescriptor(
                descriptor, ph, pw, sh, sw, dh, dw, mode, compute,
            ))?;
            check(sys::cudnnSetConvolutionGroupCount(descriptor, groups as c_int))?;
            check(sys::cudnnSetConvolutionMathType(descriptor, math))?;
            check(sys::cudnnCreateFilterDescriptor(&mut w))?;
            check(sys::cudnnSetFilter4dDescriptor(w, element, format, k, c, h, wide))?;
        }
        let x = image(element, batch, channels[0], input)?;
        let y = image(element, batch, channels[1], output)?;
        let chosen = choose(handle, conv.result, x, y, w, descriptor)?;
        Ok(chosen.map(|(algorithm, scratch)| Plan {
            x,
            y,
            w,
            convolution: descriptor,
            algorithm,
            scratch,
        }))
    }

    fn run(&self, handle: cudnnHandle_t, conv: &GpuConvolution, scratch: u64) -> Status {
        let (one, zero) = ([1.0f32], [0.0f32]);
        let (one, zero): (*const c_void, *const c_void) =
            (one.as_ptr().cast(), zero.as_ptr().cast());
        let scratch = scratch as *mut c_void;
        let [x, w, y] = [conv.x, conv.w, conv.y].map(|address| address as *mut c_void);
        let d = self.convolution;
        // SAFETY: the plan is for tensors of these sizes, which are alive. The scratch memory is
        // used in the order of the stream.
        unsafe {
            match self.algorithm {
                Algorithm::Output(a) => sys::cudnnConvolutionForward(
                    handle,
                    one,
                    self.x,
                    x,
                    self.w,
                    w,
                    d,
                    a,
                    scratch,
                    self.scratch,
                    zero,
                    self.y,
                    y,
                ),
                Algorithm::Input(a) => sys::cudnnConvolutionBackwardData(
                    handle,
                    one,
                    self.w,
                    w,
                    self.y,
                    y,
                    d,
                    a,
                    scratch,
                    self.scratch,
                    zero,
                    self.x,
                    x,
                ),
                Algorithm::Filter(a) => sys::cudnnConvolutionBackwardFilter(
                    handle,
                    one,
                    self.x,
                    x,
                    self.y,
                    y,
                    d,
                    a,
                    scratch,
                    self.scratch,
                    zero,
                    self.w,
                    w,
                ),
            }
        }
    }
}

fn image(
    element: Element,
    batch: usize,
    channels: usize,
    size: [usize; 2],
) -> Result<cudnnTensorDescriptor_t, Status> {
    let mut descriptor = std::ptr::null_mut();
    let [n, c, h, w] = [batch, channels, size[0], size[1]].map(|n| n as c_int);
    // SAFETY: the library makes the descriptor, which lives as long as the process.
    unsafe {
        check(sys::cudnnCreateTensorDescriptor(&mut descriptor))?;
        let format = Format::CUDNN_TENSOR_NHWC;
        check(sys::cudnnSetTensor4dDescriptor(descriptor, format, element, n, c, h, w))?;
    }
    Ok(descriptor)
}

/// The first algorithm that the library recommends and that can be used, with its scratch memory.
fn choose(
    handle: cudnnHandle_t,
    result: ConvolutionResult,
    x: cudnnTensorDescriptor_t,
    y: cudnnTensorDescriptor_t,
    w: cudnnFilterDescriptor_t,
    d: cudnnConvolutionDescriptor_t,
) -> Result<Option<(Algorithm, usize)>, Status> {
    let mut count = 0;
    let most = CHOICES as c_int;
    macro_rules! first_usable {
        ($ask:ident, $kind:ident, [$($descriptor:expr),*]) => {{
            // SAFETY: the results are plain data, for which zero is a valid value.
            let mut found = [unsafe { std::mem::zeroed() }; CHOICES];
            // SAFETY: the descriptors are valid, and there is room for `most` results.
            let status = unsafe {
                sys::$ask(handle, $($descriptor,)* most, &mut count, found.as_mut_ptr())
            };
            check(status)?;
            let usable = found.iter().take(count as usize).find(|a| {
                a.status == Status::CUDNN_STATUS_SUCCESS
                    && a.determinism == Determinism::CUDNN_DETERMINISTIC
                    && a.memory <= MOST_SCRATCH
            });
            usable.map(|a| (Algorithm::$kind(a.algo), a.memory))
        }};
    }
    Ok(match result {
        ConvolutionResult::Output => {
            first_usable!(cudnnGetConvolutionForwardAlgorithm_v7, Output, [x, w, d, y])
        }
        ConvolutionResult::Input => {
            first_usable!(cudnnGetConvolutionBackwardDataAlgorithm_v7, Input, [w, y, d, x])
        }
        ConvolutionResult::Filter => {
            first_usable!(cudnnGetConvolutionBackwardFilterAlgorithm_v7, Filter, [x, y, d, w])
        }
    })
}
