//! Tensors: a dtype, a shape and shared storage.

use crate::{
    Buffer, DType, DeviceBuffer, Element, Error, Gpu, List, ResourceHandle, Result, Shape, Variant,
    bail, ensure, err,
};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// A tensor. Clones are cheap, because they share storage. A write copies the storage first if it
/// has other owners.
///
/// ```
/// use ferroflow_core::Tensor;
/// let mut t = Tensor::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
/// let before = t.clone();
/// t.as_mut_slice::<f32>()?[0] = 9.0;
/// assert_eq!(t.as_slice::<f32>()?, [9.0, 2.0, 3.0, 4.0]);
/// assert_eq!(before.row(0)?.as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    storage: Storage,
    /// The position of the first element in the storage. Slices of the leading dimension share the
    /// storage of their parent.
    start: usize,
}

/// The storage of a tensor's elements.
#[derive(Clone)]
pub enum Storage {
    /// Plain bytes in host memory.
    Plain(Arc<Buffer>),
    /// Strings.
    Strings(Arc<List<Bytes>>),
    /// Resource handles.
    Handles(Arc<List<ResourceHandle>>),
    /// Variants.
    Variants(Arc<List<Variant>>),
    /// Plain bytes in the memory of a GPU.
    Device(Arc<DeviceBuffer>),
}

impl Tensor {
    /// A tensor with unspecified elements: zeros, or bytes that the same session has freed. Strings
    /// are empty, `bool`s are false.
    pub fn alloc(dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        // Freed memory may hold bytes that are not valid `bool`s.
        let new = if dtype == DType::Bool { Buffer::zeroed } else { Buffer::alloc };
        Tensor::make(dtype, shape.into(), new)
    }

    /// A tensor of the bytes of `buffer`, whose length and contents fit dtype and shape.
    pub(crate) fn of_buffer(dtype: DType, shape: Shape, buffer: Buffer) -> Tensor {
        Tensor { dtype, shape, storage: Storage::Plain(Arc::new(buffer)), start: 0 }
    }

    /// A tensor of zeros, `false` or empty strings.
    pub fn zeros(dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::make(dtype, shape.into(), Buffer::zeroed)
    }

    fn make(dtype: DType, shape: Shape, new: fn(usize) -> Result<Buffer>) -> Result<Tensor> {
        let n = shape.elements_of_tensor()?;
        let oom = || {
            err!(ResourceExhausted, "OOM when allocating tensor with shape{shape} and type {dtype}")
        };
        let storage = match dtype.size() {
            Some(size) => {
                let bytes = n.checked_mul(size).ok_or_else(oom)?;
                new(bytes).map(|buffer| Storage::Plain(Arc::new(buffer)))
            }
            None => match dtype {
                DType::String => List::of_defaults(n).map(|l| Storage::Strings(Arc::new(l))),
                DType::Resource => List::of_defaults(n).map(|l| Storage::Handles(Arc::new(l))),
                _ => List::of_defaults(n).map(|l| Storage::Variants(Arc::new(l))),
            },
        };
        let storage = storage.map_err(|e| oom().context(e.message()))?;
        Ok(Tensor { dtype, shape, storage, start: 0 })
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::from_slice(Shape::scalar(), &[value]).expect("a scalar has one element")
    }

    /// A vector.
    pub fn vector<T: Element>(values: &[T]) -> Tensor {
        Tensor::from_slice([values.len()], values).expect("a vector has as many elements")
    }

    /// A tensor with a copy of `values`. An error unless the shape has as many elements.
    pub fn from_slice<T: Element>(shape: impl Into<Shape>, values: &[T]) -> Result<Tensor> {
        let mut t = Tensor::alloc(T::DTYPE, shape)?;
        ensure!(
            t.elements() == values.len(),
            InvalidArgument,
            "{} values do not fill shape {}",
            values.len(),
            t.shape
        );
        t.as_mut_slice::<T>()?.copy_from_slice(values);
        Ok(t)
    }

    /// A tensor of plain bytes (little-endian, row-major). Shares the memory of `bytes` if its
    /// alignment allows.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: Bytes) -> Result<Tensor> {
        let n = shape.elements_of_tensor()?;
        let want = dtype.size().and_then(|size| n.checked_mul(size));
        ensure!(
            want == Some(bytes.len()),
            InvalidArgument,
            "{} bytes do not fill a {dtype} tensor of shape {shape}",
            bytes.len()
        );
        if dtype == DType::Bool {
            // Only 0 and 1 are valid `bool`s.
            let mut incoming = crate::IncomingTensor::new(dtype, shape)?;
            let mut bytes = &bytes[..];
            while let Some(piece) = incoming.next_piece()? {
                let (now, later) = bytes.split_at(piece.len());
                piece.copy_from_slice(now);
                bytes = later;
            }
            return incoming.finish();
        }
        let storage = Storage::Plain(Arc::new(Buffer::from_bytes(bytes)?));
        Ok(Tensor { dtype, shape, storage, start: 0 })
    }

    /// A tensor of strings.
    pub fn from_strings(shape: impl Into<Shape>, values: Vec<Bytes>) -> Result<Tensor> {
        Tensor::from_storage(
            DType::String,
            shape.into(),
            Storage::Strings(Arc::new(List::of_texts(values)?)),
        )
    }

    /// A string scalar.
    pub fn string(value: impl Into<Bytes>) -> Tensor {
        Tensor::from_strings(Shape::scalar(), vec![value.into()]).expect("a scalar has one element")
    }

    /// A tensor of resource handles.
    pub fn from_handles(shape: impl Into<Shape>, values: Vec<ResourceHandle>) -> Result<Tensor> {
        Tensor::from_storage(
            DType::Resource,
            shape.into(),
            Storage::Handles(Arc::new(values.try_into()?)),
        )
    }

    /// A scalar resource handle.
    pub fn handle(value: ResourceHandle) -> Tensor {
        Tensor::from_handles(Shape::scalar(), vec![value]).expect("a scalar has one element")
    }

    /// A tensor of variants.
    pub fn from_variants(shape: impl Into<Shape>, values: Vec<Variant>) -> Result<Tensor> {
        Tensor::from_storage(
            DType::Variant,
            shape.into(),
            Storage::Variants(Arc::new(values.try_into()?)),
        )
    }

    /// A scalar variant.
    pub fn variant(value: Variant) -> Tensor {
        Tensor::from_variants(Shape::scalar(), vec![value]).expect("a scalar has one element")
    }

    fn from_storage(dtype: DType, shape: Shape, storage: Storage) -> Result<Tensor> {
        let have = match &storage {
            Storage::Plain(b) => b.len() / dtype.size().unwrap_or(1),
            Storage::Strings(v) => v.len(),
            Storage::Handles(v) => v.len(),
            Storage::Variants(v) => v.len(),
            Storage::Device(b) => b.len() / dtype.size().unwrap_or(1),
        };
        ensure!(
            shape.elements_of_tensor()? == have,
            InvalidArgument,
            "{have} values do not fill shape {shape}"
        );
        Ok(Tensor { dtype, shape, storage, start: 0 })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// The storage, which other tensors may share.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Bytes of all elements. For strings, the bytes of their texts.
    pub fn byte_len(&self) -> usize {
        match self.dtype.size() {
            Some(size) => self.elements() * size,
            None => self.strings().map_or(0, |s| s.iter().map(Bytes::len).sum()),
        }
    }

    /// Whether the storage has no other owner, so that a write needs no copy.
    pub fn is_unique(&mut self) -> bool {
        match &mut self.storage {
            Storage::Plain(b) => Arc::get_mut(b).is_some_and(|b| b.bytes_mut().is_some()),
            Storage::Strings(v) => Arc::get_mut(v).is_some(),
            Storage::Handles(v) => Arc::get_mut(v).is_some(),
            Storage::Variants(v) => Arc::get_mut(v).is_some(),
            Storage::Device(b) => Arc::get_mut(b).is_some(),
        }
    }

    /// Whether both tensors share storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        match (&self.storage, &other.storage) {
            (Storage::Plain(a), Storage::Plain(b)) => Arc::ptr_eq(a, b),
            (Storage::Strings(a), Storage::Strings(b)) => Arc::ptr_eq(a, b),
            (Storage::Handles(a), Storage::Handles(b)) => Arc::ptr_eq(a, b),
            (Storage::Variants(a), Storage::Variants(b)) => Arc::ptr_eq(a, b),
            (Storage::Device(a), Storage::Device(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The bytes of the elements. An error for strings, resources and variants.
    pub fn bytes(&self) -> Result<&[u8]> {
        let (Storage::Plain(buffer), Some(size)) = (&self.storage, self.dtype.size()) else {
            return Err(self.no_bytes());
        };
        let (from, len) = (self.start * size, self.elements() * size);
        Ok(&buffer.bytes()[from..from + len])
    }

    /// The bytes of the elements for writing. Copies shared storage first. The caller must write
    /// only 0 or 1 to `bool` elements.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if matches!(self.storage, Storage::Device(_)) {
            return Err(self.no_bytes());
        }
        self.make_unique()?;
        let (Storage::Plain(buffer), Some(size)) = (&mut self.storage, self.dtype.size()) else {
            bail!(InvalidArgument, "a {} tensor has no plain bytes", self.dtype);
        };
        let (from, len) = (self.start * size, self.shape.elements() * size);
        let bytes = Arc::get_mut(buffer).and_then(|b| b.bytes_mut());
        Ok(&mut bytes.expect("make_unique left us the only owner")[from..from + len])
    }

    /// The elements. An error if they are not stored as `T`.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect_stores::<T>()?;
        let bytes = self.bytes()?;
        // SAFETY: `T: Element` has no padding, is valid for the contents of tensors of this dtype,
        // and is as large as the dtype's size, so the range holds `elements()` of them. Buffers are
        // aligned to at least 16 bytes and `start` is a multiple of the element's size.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.elements()) })
    }

    /// The elements for writing. Copies shared storage first.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect_stores::<T>()?;
        let n = self.elements();
        let bytes = self.bytes_mut()?;
        // SAFETY: as in `as_slice`. `bytes_mut` made this tensor the only owner.
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), n) })
    }

    /// The elements of a string tensor.
    pub fn strings(&self) -> Result<&[Bytes]> {
        match &self.storage {
            Storage::Strings(v) => Ok(&v[self.start..self.start + self.elements()]),
            _ => bail!(InvalidArgument, "expected a string tensor, got {}", self.dtype),
        }
    }

    /// The elements of a string tensor for writing. Copies shared storage first.
    pub fn strings_mut(&mut self) -> Result<&mut [Bytes]> {
        let (from, n) = (self.start, self.elements());
        match &mut self.storage {
            Storage::Strings(v) => Ok(&mut Arc::make_mut(v)[from..from + n]),
            _ => bail!(InvalidArgument, "expected a string tensor, got {}", self.dtype),
        }
    }

    /// The elements of a resource tensor.
    pub fn handles(&self) -> Result<&[ResourceHandle]> {
        match &self.storage {
            Storage::Handles(v) => Ok(&v[self.start..self.start + self.elements()]),
            _ => bail!(InvalidArgument, "expected a resource tensor, got {}", self.dtype),
        }
    }

    /// The elements of a resource tensor for writing. Copies shared storage first.
    pub fn handles_mut(&mut self) -> Result<&mut [ResourceHandle]> {
        let (from, n) = (self.start, self.elements());
        match &mut self.storage {
            Storage::Handles(v) => Ok(&mut Arc::make_mut(v)[from..from + n]),
            _ => bail!(InvalidArgument, "expected a resource tensor, got {}", self.dtype),
        }
    }

    /// The elements of a variant tensor.
    pub fn variants(&self) -> Result<&[Variant]> {
        match &self.storage {
            Storage::Variants(v) => Ok(&v[self.start..self.start + self.elements()]),
            _ => bail!(InvalidArgument, "expected a variant tensor, got {}", self.dtype),
        }
    }

    /// The elements of a variant tensor for writing. Copies shared storage first.
    pub fn variants_mut(&mut self) -> Result<&mut [Variant]> {
        let (from, n) = (self.start, self.elements());
        match &mut self.storage {
            Storage::Variants(v) => Ok(&mut Arc::make_mut(v)[from..from + n]),
            _ => bail!(InvalidArgument, "expected a variant tensor, got {}", self.dtype),
        }
    }

    /// The value of a tensor with exactly one element.
    pub fn scalar_value<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [value] => Ok(*value),
            _ => bail!(InvalidArgument, "expected a scalar, got shape {}", self.shape),
        }
    }

    /// The text of a string tensor with exactly one element.
    pub fn scalar_string(&self) -> Result<&Bytes> {
        match self.strings()? {
            [value] => Ok(value),
            _ => bail!(InvalidArgument, "expected a scalar, got shape {}", self.shape),
        }
    }

    /// The only element of an int32 or int64 tensor.
    pub fn scalar_index(&self) -> Result<i64> {
        match self.to_indices()?.as_slice() {
            [value] => Ok(*value),
            _ => bail!(InvalidArgument, "expected a scalar, got shape {}", self.shape),
        }
    }

    /// The elements of an integer tensor as `i64`: shapes, axes, permutations and so on.
    pub fn to_indices(&self) -> Result<Vec<i64>> {
        fn widen<T: Element + Into<i64>>(t: &Tensor) -> Result<Vec<i64>> {
            Ok(t.as_slice::<T>()?.iter().map(|&x| x.into()).collect())
        }
        match self.dtype {
            DType::Int64 => Ok(self.as_slice::<i64>()?.to_vec()),
            DType::Int32 => widen::<i32>(self),
            DType::Int16 => widen::<i16>(self),
            DType::Int8 => widen::<i8>(self),
            DType::UInt8 => widen::<u8>(self),
            DType::UInt16 => widen::<u16>(self),
            DType::UInt32 => widen::<u32>(self),
            other => bail!(InvalidArgument, "expected an integer tensor, got {other}"),
        }
    }

    /// The shape that an integer vector describes.
    pub fn to_shape(&self) -> Result<Shape> {
        ensure!(
            self.rank() <= 1,
            InvalidArgument,
            "shape must be a vector, got shape {}",
            self.shape
        );
        Shape::from_dims(&self.to_indices()?)
    }

    /// The same elements in another shape, without a copy.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        self.clone().into_shape(shape)
    }

    /// [`Tensor::reshape`] of an owned tensor. It stays the only owner if it was.
    pub fn into_shape(mut self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        ensure!(
            shape.elements_of_tensor()? == self.elements(),
            InvalidArgument,
            "cannot reshape {} ({} elements) to {shape}",
            self.shape,
            self.elements()
        );
        self.shape = shape;
        Ok(self)
    }

    /// The same bytes as another dtype with the same element size, without a copy.
    pub fn with_dtype(mut self, dtype: DType) -> Result<Tensor> {
        ensure!(
            dtype.is_plain() && dtype.size() == self.dtype.size() && dtype != DType::Bool,
            InvalidArgument,
            "cannot view {} as {dtype}",
            self.dtype
        );
        self.dtype = dtype;
        Ok(self)
    }

    /// Rows `from..from + len` of the leading dimension, without a copy.
    pub fn rows(&self, from: usize, len: usize) -> Result<Tensor> {
        let Some(&rows) = self.shape.first() else {
            bail!(InvalidArgument, "a scalar has no rows");
        };
        ensure!(
            from.checked_add(len).is_some_and(|end| end <= rows),
            InvalidArgument,
            "rows {from}..{} of a tensor with {rows}",
            from.saturating_add(len)
        );
        let row: usize = self.shape[1..].iter().product();
        let mut dims = self.shape.to_vec();
        dims[0] = len;
        let mut part = self.clone();
        part.start += from * row;
        part.shape = Shape::from(dims);
        Ok(part)
    }

    /// Row `i` of the leading dimension, without that dimension and without a copy.
    pub fn row(&self, i: usize) -> Result<Tensor> {
        let part = self.rows(i, 1)?;
        let shape = Shape::from(&self.shape[1..]);
        part.into_shape(shape)
    }

    /// A copy with its own storage.
    pub fn deep_copy(&self) -> Result<Tensor> {
        let mut copy = self.clone();
        copy.make_unique()?;
        Ok(copy)
    }

    /// The bytes of the elements as reference-counted `Bytes`, without a copy. Transports send
    /// these.
    pub fn to_wire_bytes(&self) -> Result<Bytes> {
        let whole = match &self.storage {
            Storage::Plain(buffer) => Bytes::from_owner(SharedBuffer(buffer.clone())),
            _ => return Err(self.no_bytes()),
        };
        let size = self.dtype.size().expect("plain storage has a plain dtype");
        let from = self.start * size;
        Ok(whole.slice(from..from + self.elements() * size))
    }

    fn make_unique(&mut self) -> Result<()> {
        if self.is_unique() {
            return Ok(());
        }
        let storage = match &self.storage {
            Storage::Plain(_) => {
                let from = self.bytes()?;
                let mut buffer = Buffer::alloc(from.len())?;
                buffer.bytes_mut().expect("a new buffer is ours").copy_from_slice(from);
                Storage::Plain(Arc::new(buffer))
            }
            Storage::Strings(_) => Storage::Strings(Arc::new(List::copy_of(self.strings()?)?)),
            Storage::Handles(_) => Storage::Handles(Arc::new(List::copy_of(self.handles()?)?)),
            Storage::Variants(_) => Storage::Variants(Arc::new(List::copy_of(self.variants()?)?)),
            Storage::Device(old) => {
                let copy = DeviceBuffer::alloc(old.gpu(), self.byte_len())?;
                old.gpu().copy(self.device_address()?, copy.address(), copy.len())?;
                Storage::Device(Arc::new(copy))
            }
        };
        self.storage = storage;
        self.start = 0;
        Ok(())
    }

    /// A tensor with unspecified elements in the memory of a GPU.
    pub fn on_device(gpu: &Arc<dyn Gpu>, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        let bytes =
            dtype.size().and_then(|size| shape.elements_of_tensor().ok()?.checked_mul(size));
        let Some(bytes) = bytes else {
            bail!(InvalidArgument, "a {dtype} tensor of shape {shape} cannot be on {}", gpu.name());
        };
        let buffer = DeviceBuffer::alloc(gpu, bytes).map_err(|e| {
            e.context(format!("allocating a tensor with shape{shape} and type {dtype}"))
        })?;
        Ok(Tensor { dtype, shape, storage: Storage::Device(Arc::new(buffer)), start: 0 })
    }

    /// A tensor with unspecified elements in the memory that this one is in.
    pub fn alloc_beside(&self, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        match &self.storage {
            Storage::Device(buffer) => Tensor::on_device(buffer.gpu(), dtype, shape),
            _ => Tensor::alloc(dtype, shape),
        }
    }

    /// A tensor of zeros in the memory that this one is in.
    pub fn zeros_beside(&self, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        let Storage::Device(buffer) = &self.storage else { return Tensor::zeros(dtype, shape) };
        let zeros = Tensor::on_device(buffer.gpu(), dtype, shape)?;
        buffer.gpu().clear(zeros.device_address()?, zeros.byte_len())?;
        Ok(zeros)
    }

    /// The GPU whose memory holds the elements; `None` for host memory.
    pub fn gpu(&self) -> Option<&Arc<dyn Gpu>> {
        match &self.storage {
            Storage::Device(buffer) => Some(buffer.gpu()),
            _ => None,
        }
    }

    /// The address of the first element in the memory of a GPU. An error for host memory.
    pub fn device_address(&self) -> Result<u64> {
        match (&self.storage, self.dtype.size()) {
            (Storage::Device(buffer), Some(size)) => {
                Ok(buffer.address() + (self.start * size) as u64)
            }
            _ => bail!(
                Internal,
                "a {} tensor of shape {} is in host memory, not in that of a GPU",
                self.dtype,
                self.shape
            ),
        }
    }

    /// A tensor of the bytes in `buffer`, which were those of a tensor of this dtype.
    pub fn from_buffer(dtype: DType, shape: Shape, buffer: Buffer) -> Result<Tensor> {
        Tensor::from_storage(dtype, shape, Storage::Plain(Arc::new(buffer)))
    }

    /// The error of a read of host bytes that do not exist.
    #[cold]
    fn no_bytes(&self) -> Error {
        match &self.storage {
            Storage::Device(buffer) => err!(
                Internal,
                "a {} tensor of shape {} is in the memory of {}: the host cannot read it",
                self.dtype,
                self.shape,
                buffer.gpu().name()
            ),
            _ => err!(InvalidArgument, "a {} tensor has no plain bytes", self.dtype),
        }
    }

    fn expect_stores<T: Element>(&self) -> Result<()> {
        ensure!(
            T::stores(self.dtype),
            InvalidArgument,
            "expected a {} tensor, got {}",
            T::DTYPE,
            self.dtype
        );
        Ok(())
    }
}

struct SharedBuffer(Arc<Buffer>);

impl AsRef<[u8]> for SharedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Equal if dtype, shape and elements are equal. Floats compare by their bits.
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && match (self.bytes(), other.bytes()) {
                (Ok(a), Ok(b)) => a == b,
                _ => match (self.strings(), other.strings()) {
                    (Ok(a), Ok(b)) => a == b,
                    _ => self.shares_storage(other),
                },
            }
    }
}

/// Prints dtype, shape and the first few elements.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.dtype, self.shape)?;
        macro_rules! show {
            ($($d:ident: $t:ty),*) => {
                match self.dtype {
                    $(DType::$d => show_some(f, self.as_slice::<$t>()),)*
                    DType::String => show_some(f, self.strings()),
                    _ => Ok(()),
                }
            };
        }
        show!(Float: f32, Double: f64, Int32: i32, Int64: i64, Bool: bool, UInt8: u8, Int8: i8,
              Int16: i16, UInt16: u16, UInt32: u32, UInt64: u64, Half: half::f16,
              BFloat16: half::bf16, Complex64: crate::Complex32, Complex128: crate::Complex64)
    }
}

fn show_some<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, values: Result<&[T]>) -> fmt::Result {
    const SHOWN: usize = 12;
    let values = values.map_err(|_| fmt::Error)?;
    let more = if values.len() > SHOWN { " …" } else { "" };
    write!(f, "{:?}{more}", &values[..values.len().min(SHOWN)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_a_shared_tensor_does_not_change_its_clone() {
        let a = Tensor::vector(&[1.0f32, 2.0]);
        let mut b = a.clone();
        b.as_mut_slice::<f32>().unwrap()[0] = 9.0;
        assert_eq!(a.as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(b.as_slice::<f32>().unwrap(), [9.0, 2.0]);
    }

    #[test]
    fn an_unshared_tensor_is_written_in_place() {
        let mut a = Tensor::vector(&[1.0f32, 2.0]);
        let before = a.bytes().unwrap().as_ptr();
        a.as_mut_slice::<f32>().unwrap()[0] = 9.0;
        assert_eq!(a.bytes().unwrap().as_ptr(), before);
    }

    #[test]
    fn rows_share_the_storage_of_their_tensor() {
        let a = Tensor::from_slice([3, 2], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let r = a.row(1).unwrap();
        assert_eq!(r.as_slice::<i32>().unwrap(), [3, 4]);
        assert!(r.shares_storage(&a));
        let mut w = a.rows(1, 2).unwrap();
        w.as_mut_slice::<i32>().unwrap()[0] = 0;
        assert_eq!(w.as_slice::<i32>().unwrap(), [0, 4, 5, 6]);
        assert_eq!(a.as_slice::<i32>().unwrap()[2], 3);
        assert!(a.rows(2, 2).is_err());
    }

    #[test]
    fn allocating_more_than_the_memory_of_any_machine_fails() {
        let e = Tensor::zeros(DType::Float, Shape::from([1 << 40, 1 << 20])).unwrap_err();
        assert_eq!(e.code(), crate::Code::ResourceExhausted);
        let e = Tensor::zeros(DType::Double, Shape::from([1 << 62])).unwrap_err();
        assert_eq!(e.code(), crate::Code::ResourceExhausted);
        assert!(Tensor::zeros(DType::String, Shape::from([1 << 50])).is_err());
    }

    #[test]
    fn wire_bytes_share_the_memory_of_the_tensor() {
        let a = Tensor::vector(&[1u8, 2, 3, 4]);
        let b = a.rows(1, 2).unwrap().to_wire_bytes().unwrap();
        assert_eq!(&b[..], [2, 3]);
        assert_eq!(b.as_ptr(), a.bytes().unwrap()[1..].as_ptr());
    }

    #[test]
    fn bool_bytes_other_than_0_and_1_become_1() {
        let t = Tensor::from_bytes(DType::Bool, Shape::from([3]), Bytes::from_static(&[0, 7, 1]));
        assert_eq!(t.unwrap().as_slice::<bool>().unwrap(), [false, true, true]);
    }
}
