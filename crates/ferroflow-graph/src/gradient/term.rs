//! Tensors of a gradient, with operators, so that gradient functions read like formulas.

use super::slices::EndpointSlices;
use super::tape::{Flow, Tape};
use crate::attr::Attrs;
use crate::graph::Endpoint;
use ferroflow_core::{Complex32, Complex64, DType, PartialShape, Result, Tensor, bail, bf16, f16};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A tensor of the graph, [`EndpointSlices`] of one, or nothing.
///
/// Operators add nodes. They broadcast and require equal dtypes, like TensorFlow's ops; a number
/// takes the dtype of the other operand. A failed operation returns nothing, and the whole gradient
/// fails with the first such error.
#[derive(Clone, Copy)]
pub struct Term<'g> {
    pub(super) tape: &'g Tape,
    pub(super) flow: Flow,
}

impl<'g> Term<'g> {
    /// Whether there is no gradient.
    pub fn is_none(self) -> bool {
        self.flow == Flow::None
    }

    /// Whether it is known to be zero, because nothing depends on the output.
    pub fn is_zero(self) -> bool {
        matches!(self.flow, Flow::None | Flow::Zeros(_))
    }

    /// The slices, if it is not a tensor.
    pub fn slices(self) -> Option<EndpointSlices> {
        match self.flow {
            Flow::Slices(s) => Some(s),
            _ => None,
        }
    }

    /// The tensor. Slices are made dense. An error if there is none.
    pub fn endpoint(self) -> Result<Endpoint> {
        match self.flow {
            Flow::Tensor(e) => Ok(e),
            Flow::Slices(s) => self.tape.dense(s),
            Flow::Zeros(e) => self.tape.zeros_of(e),
            Flow::None => {
                self.tape.check()?;
                bail!(Internal, "a tensor that has no gradient was used as one")
            }
        }
    }

    /// The tensor: makes slices dense, and zeros that do not exist yet.
    pub fn dense(self) -> Term<'g> {
        match self.flow {
            Flow::Tensor(_) | Flow::None => self,
            _ => self.made(self.endpoint()),
        }
    }

    /// Its dtype.
    pub fn dtype(self) -> DType {
        match self.flow {
            Flow::Tensor(e) | Flow::Zeros(e) => self.tape.type_of(e),
            Flow::Slices(s) => self.tape.type_of(s.values),
            Flow::None => DType::Float,
        }
    }

    /// The shape, as far as it is known when the graph is built.
    pub fn static_shape(self) -> PartialShape {
        match self.flow {
            Flow::Tensor(e) | Flow::Zeros(e) => self.tape.state.borrow().shape(e),
            Flow::Slices(_) | Flow::None => PartialShape::unknown(),
        }
    }

    /// Its rank, if it is known.
    pub fn rank(self) -> Option<usize> {
        self.static_shape().rank()
    }

    /// The value, when it is a constant.
    pub fn value(self) -> Option<Tensor> {
        match self.flow {
            Flow::Tensor(e) => self.tape.state.borrow().value(e),
            _ => None,
        }
    }

    /// The result of an op with this one input.
    pub fn apply(self, op: &str) -> Term<'g> {
        self.apply_with(op, Attrs::new())
    }

    /// The result of an op with this one input and these attributes.
    pub fn apply_with(self, op: &str, attrs: Attrs) -> Term<'g> {
        self.made(self.tape.op(op, &[self], attrs))
    }

    /// The result of an op with two inputs.
    pub fn with(self, op: &str, other: Term<'g>) -> Term<'g> {
        self.made(self.tape.op(op, &[self, other], Attrs::new()))
    }

    pub(super) fn made(self, result: Result<Endpoint>) -> Term<'g> {
        match result {
            Ok(e) => self.tape.term(e),
            Err(e) => {
                self.tape.fail(e);
                self.tape.flow(Flow::None)
            }
        }
    }

    /// `x * x`.
    pub fn square(self) -> Term<'g> {
        self.apply("Square")
    }

    /// The square root.
    pub fn sqrt(self) -> Term<'g> {
        self.apply("Sqrt")
    }

    /// The exponential.
    pub fn exp(self) -> Term<'g> {
        self.apply("Exp")
    }

    /// The natural logarithm.
    pub fn log(self) -> Term<'g> {
        self.apply("Log")
    }

    /// `1 / x`.
    pub fn reciprocal(self) -> Term<'g> {
        self.apply("Reciprocal")
    }

    /// The complex conjugate; itself when it is real.
    pub fn conj(self) -> Term<'g> {
        if self.dtype().is_complex() { self.apply("Conj") } else { self }
    }

    /// Converts to another dtype.
    pub fn cast(self, to: DType) -> Term<'g> {
        if self.is_none() || self.dtype() == to {
            return self;
        }
        self.apply_with("Cast", Attrs::new().with("DstT", to))
    }

    /// Its shape as an int32 vector: a constant when it is known.
    pub fn shape(self) -> Term<'g> {
        self.shape_as(DType::Int32)
    }

    /// Its shape as a vector of int32 or int64.
    pub fn shape_as(self, dtype: DType) -> Term<'g> {
        // The shape of a resource is that of its variable.
        let is_handle = matches!(self.flow, Flow::Tensor(_)) && self.dtype() == DType::Resource;
        if !is_handle && let Some(shape) = self.static_shape().known() {
            return self.made(self.tape.integers(&shape.to_i64s(), dtype));
        }
        match self.flow {
            // Slices carry the shape of the whole.
            Flow::Slices(s) => self.tape.term(s.shape).cast(dtype),
            Flow::Zeros(e) => self.tape.term(e).shape_as(dtype),
            _ if is_handle => {
                self.apply_with("VariableShape", Attrs::new().with("out_type", dtype))
            }
            // Keep only the shape of a loop's tensor, not its value.
            Flow::Tensor(e) => self.made(self.tape.state.borrow_mut().shape_of(e, dtype)),
            Flow::None => self,
        }
    }

    /// Its rank, as an int32 scalar.
    pub fn rank_term(self) -> Term<'g> {
        match self.rank() {
            Some(rank) => self.made(self.tape.constant(Tensor::scalar(rank as i32))),
            None => self.apply("Rank"),
        }
    }

    /// Its number of elements, as a scalar of int32.
    pub fn size(self) -> Term<'g> {
        match self.static_shape().elements().and_then(|n| i32::try_from(n).ok()) {
            Some(n) => self.made(self.tape.constant(Tensor::scalar(n))),
            None => self.apply("Size"),
        }
    }

    /// The same elements in another shape.
    pub fn reshape(self, shape: Term<'g>) -> Term<'g> {
        if let (Some(now), Some(then)) = (self.static_shape().known(), shape.value())
            && then.to_indices().is_ok_and(|dims| dims == now.to_i64s())
        {
            return self;
        }
        self.with("Reshape", shape)
    }

    /// The same elements in the shape of another tensor.
    pub fn reshape_like(self, other: Term<'g>) -> Term<'g> {
        self.reshape(other.shape())
    }

    /// The sum over some axes.
    pub fn sum(self, axes: Term<'g>, keep_dims: bool) -> Term<'g> {
        let attrs = Attrs::new().with("keep_dims", keep_dims);
        self.made(self.tape.op("Sum", &[self, axes], attrs))
    }

    /// Zeros of the same shape and dtype.
    pub fn zeros_like(self) -> Term<'g> {
        match self.flow {
            Flow::Tensor(e) | Flow::Zeros(e) => self.made(self.tape.zeros_of(e)),
            _ => self.apply("ZerosLike"),
        }
    }

    /// Ones of the same shape and dtype.
    pub fn ones_like(self) -> Term<'g> {
        self.apply("OnesLike")
    }

    /// Element `i` of a vector, a scalar.
    pub fn element(self, i: i64) -> Term<'g> {
        if let Some(value) = self.value()
            && let Ok(all) = value.to_indices()
            && let Some(x) = all.get(i as usize)
        {
            return self.made(self.tape.number(*x as f64, value.dtype()));
        }
        let (begin, end) = (self.tape.integers(&[i], DType::Int32), [i + 1]);
        let ends = self.tape.integers(&end, DType::Int32);
        let ones = self.tape.integers(&[1], DType::Int32);
        let attrs = Attrs::new().with("shrink_axis_mask", 1i64);
        let inputs = [self, self.made(begin), self.made(ends), self.made(ones)];
        self.made(self.tape.op("StridedSlice", &inputs, attrs))
    }

    /// Inserts a dimension of length 1 at `axis`.
    pub fn expand_dims(self, axis: i64) -> Term<'g> {
        let axis = self.made(self.tape.number(axis as f64, DType::Int32));
        self.with("ExpandDims", axis)
    }

    /// The number as a scalar of this term's dtype.
    pub fn number(self, x: f64) -> Term<'g> {
        self.made(self.tape.number(x, self.dtype()))
    }

    fn binary(self, op: &str, other: Term<'g>) -> Term<'g> {
        self.with(op, other)
    }
}

impl Tape {
    /// A scalar constant.
    pub(super) fn number(&self, x: f64, dtype: DType) -> Result<Endpoint> {
        self.constant(scalar(x, dtype)?)
    }

    /// A vector of int32 or int64.
    pub(super) fn integers(&self, values: &[i64], dtype: DType) -> Result<Endpoint> {
        let narrow: Vec<i32> = values.iter().filter_map(|&x| i32::try_from(x).ok()).collect();
        self.constant(match dtype {
            DType::Int32 if narrow.len() == values.len() => Tensor::vector(&narrow),
            DType::Int64 => Tensor::vector(values),
            _ => bail!(InvalidArgument, "{values:?} do not fit {dtype}"),
        })
    }

    /// Zeros like a tensor, or like the variable of a resource.
    pub(super) fn zeros_of(&self, e: Endpoint) -> Result<Endpoint> {
        let (dtype, shape) = (self.type_of(e), self.state.borrow().shape(e));
        if dtype == DType::Resource {
            return self.zeros_of_variable(e, self.variable_dtype(e));
        }
        // Large ones would make the graph large.
        if dtype.is_plain()
            && let Some(known) = shape.known()
            && known.checked_elements().is_ok_and(|n| n <= 1024)
        {
            return self.constant(Tensor::zeros(dtype, known)?);
        }
        self.op("ZerosLike", &[self.term(e)], Attrs::new())
    }

    /// The dtype of the variable of a handle, from the node that made the handle; float if unknown.
    fn variable_dtype(&self, handle: Endpoint) -> DType {
        let graph = self.graph();
        let mut node = graph.node(handle.node);
        loop {
            if let Ok(dtype) = node.attrs.dtype("dtype") {
                return dtype;
            }
            let dtypes = node.attrs.dtypes("_handle_dtypes").unwrap_or_default();
            if let Some(dtype) = dtypes.first() {
                return *dtype;
            }
            // Follow nodes that pass handles on; a loop's first input comes from outside.
            match node.inputs.first() {
                Some(e) if graph.type_of(*e).dtype == DType::Resource => node = graph.node(e.node),
                _ => return DType::Float,
            }
        }
    }

    /// Zeros like the variable of a resource handle.
    pub(super) fn zeros_of_variable(&self, handle: Endpoint, dtype: DType) -> Result<Endpoint> {
        let shape = self.term(handle).apply("VariableShape");
        let zero = self.term(self.number(0.0, dtype)?);
        self.op("Fill", &[shape, zero], Attrs::new())
    }
}

/// A scalar tensor of any dtype of numbers.
fn scalar(x: f64, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::Float => Tensor::scalar(x as f32),
        DType::Double => Tensor::scalar(x),
        DType::Half => Tensor::scalar(f16::from_f64(x)),
        DType::BFloat16 => Tensor::scalar(bf16::from_f64(x)),
        DType::Complex64 => Tensor::scalar(Complex32::new(x as f32, 0.0)),
        DType::Complex128 => Tensor::scalar(Complex64::new(x, 0.0)),
        DType::Int32 => Tensor::scalar(x as i32),
        DType::Int64 => Tensor::scalar(x as i64),
        DType::Int16 => Tensor::scalar(x as i16),
        DType::Int8 => Tensor::scalar(x as i8),
        DType::UInt8 => Tensor::scalar(x as u8),
        DType::UInt16 => Tensor::scalar(x as u16),
        DType::UInt32 => Tensor::scalar(x as u32),
        DType::UInt64 => Tensor::scalar(x as u64),
        DType::Bool => Tensor::scalar(x != 0.0),
        other => bail!(InvalidArgument, "there are no numbers of dtype {other}"),
    })
}

macro_rules! operators {
    ($($trait:ident $fn:ident $op:literal;)*) => {$(
        impl<'g> $trait for Term<'g> {
            type Output = Term<'g>;
            fn $fn(self, other: Term<'g>) -> Term<'g> { self.binary($op, other) }
        }
        impl<'g> $trait<f64> for Term<'g> {
            type Output = Term<'g>;
            fn $fn(self, other: f64) -> Term<'g> { self.binary($op, self.number(other)) }
        }
        impl<'g> $trait<Term<'g>> for f64 {
            type Output = Term<'g>;
            fn $fn(self, other: Term<'g>) -> Term<'g> { other.number(self).binary($op, other) }
        }
    )*};
}
operators! {
    Add add "AddV2";
    Sub sub "Sub";
    Mul mul "Mul";
    Div div "RealDiv";
}

impl<'g> Neg for Term<'g> {
    type Output = Term<'g>;
    fn neg(self) -> Term<'g> {
        self.apply("Neg")
    }
}
