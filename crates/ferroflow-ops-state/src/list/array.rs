//! Tensor arrays: vectors of tensors that live for a step. Each element is written once and may be
//! read several times. In the arrays of their gradients, several writes are summed.

use crate::prelude::*;
use ferroflow_core::CountedVec;
use ferroflow_op_kit::tensor_arithmetic::add_assign;
use parking_lot::Mutex;

/// A tensor array.
pub(crate) struct TensorArray {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    identical_shapes: bool,
    clear_after_read: bool,
    /// Whether it holds gradients: writes to one index are summed, and elements that were not
    /// written are zero.
    is_gradient: bool,
    state: Mutex<State>,
}

struct State {
    items: CountedVec<Item>,
    shape: PartialShape,
    dynamic: bool,
    closed: bool,
    /// The number of elements that were last unpacked into it. The gradient packs as many.
    marked: usize,
    /// Whether several writes were summed. Their gradients cannot be separated.
    summed: bool,
}

#[derive(Clone, Default)]
struct Item {
    value: Option<Tensor>,
    /// Set once it is written, or when a gradient's shape is known from the forward array.
    shape: Option<Shape>,
    read: bool,
    cleared: bool,
}

/// The parameters of an array.
pub(crate) struct Options {
    pub(crate) dtype: DType,
    pub(crate) shape: PartialShape,
    pub(crate) dynamic: bool,
    pub(crate) clear_after_read: bool,
    pub(crate) identical_shapes: bool,
}

/// A larger size is refused before it is allocated.
const MAX_SIZE: usize = 1 << 24;

impl Resource for TensorArray {
    fn describe(&self) -> String {
        format!("tensor array {} ({})", self.name, self.dtype)
    }
}

impl TensorArray {
    pub(crate) fn new(name: String, size: usize, options: &Options) -> Result<TensorArray> {
        check_size(size)?;
        Ok(TensorArray {
            name,
            dtype: options.dtype,
            identical_shapes: options.identical_shapes,
            clear_after_read: options.clear_after_read,
            is_gradient: false,
            state: Mutex::new(State {
                items: CountedVec::filled(size, Item::default())?,
                shape: options.shape.clone(),
                dynamic: options.dynamic,
                closed: false,
                marked: 0,
                summed: false,
            }),
        })
    }

    /// An array for the gradients of this one, with `prepend` in front of the shapes of its
    /// elements. After this call, this array cannot grow.
    pub(crate) fn gradient(&self, name: String, prepend: &[usize]) -> Result<TensorArray> {
        let mut state = self.open()?;
        ensure!(
            !state.summed,
            InvalidArgument,
            "Unable to create a gradients TensorArray for {}.  Perhaps you used the \
             multiple_writes_aggregate flag on a previous write?  Gradient calculation is \
             impossible when multiple writes are performed to the same index.",
            self.name
        );
        state.dynamic = false;
        let longer = |shape: &Shape| prepend.iter().chain(shape.iter()).copied().collect();
        let items = state
            .items
            .iter()
            .map(|item| Ok(Item { shape: item.shape.as_ref().map(longer), ..Item::default() }));
        let shape = match state.shape.dims() {
            Some(dims) => {
                PartialShape::new(prepend.iter().map(|&d| Some(d)).chain(dims.iter().copied()))
            }
            None => PartialShape::unknown(),
        };
        Ok(TensorArray {
            name,
            dtype: self.dtype,
            identical_shapes: self.identical_shapes,
            clear_after_read: true,
            is_gradient: true,
            state: Mutex::new(State {
                items: CountedVec::try_from_iter(items)?,
                shape,
                dynamic: false,
                closed: false,
                marked: state.marked,
                summed: false,
            }),
        })
    }

    pub(crate) fn size(&self) -> Result<usize> {
        Ok(self.open()?.items.len())
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.state.lock().dynamic
    }

    /// The number of elements that packing or concatenating takes.
    pub(crate) fn packed_size(&self) -> Result<usize> {
        let state = self.open()?;
        Ok(if self.is_gradient { state.marked } else { state.items.len() })
    }

    pub(crate) fn mark(&self, size: usize) -> Result<()> {
        let mut state = self.open()?;
        if !self.is_gradient {
            state.marked = size;
        }
        Ok(())
    }

    pub(crate) fn shape(&self) -> PartialShape {
        self.state.lock().shape.clone()
    }

    /// Narrows the shape of all elements.
    pub(crate) fn merge_shape(&self, shape: &PartialShape) -> Result<()> {
        let mut state = self.state.lock();
        state.shape = state.shape.merge(shape)?;
        Ok(())
    }

    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
    }

    /// Writes the elements at these indices.
    pub(crate) fn write(&self, indices: &[i64], values: Vec<Tensor>) -> Result<()> {
        let mut state = self.open()?;
        for (&index, value) in indices.iter().zip(values) {
            self.write_one(&mut state, index, value)?;
        }
        Ok(())
    }

    fn write_one(&self, state: &mut State, index: i64, value: Tensor) -> Result<()> {
        let name = &self.name;
        let size = state.items.len();
        let at = usize::try_from(index).ok().filter(|&at| at < size || state.dynamic);
        let Some(at) = at else {
            bail!(
                InvalidArgument,
                "TensorArray {name}: Tried to write to index {index} but array is not resizeable \
                 and size is: {size}"
            );
        };
        if at >= size {
            check_size(at + 1)?;
            state.items.resize(at + 1, Item::default())?;
        }
        let writing =
            || format!("TensorArray {name}: Could not write to TensorArray index {index}");
        ensure!(
            value.dtype() == self.dtype,
            InvalidArgument,
            "{} because the value dtype is {} but TensorArray dtype is {}.",
            writing(),
            value.dtype(),
            self.dtype
        );
        ensure!(
            state.shape.admits(value.shape()),
            InvalidArgument,
            "{} because the value shape is {} which is incompatible with the TensorArray's \
             inferred element shape: {} (consider setting infer_shape=False).",
            writing(),
            value.shape(),
            state.shape
        );
        if self.identical_shapes {
            state.shape = value.shape().into();
        }
        let item = &mut state.items[at];
        ensure!(!item.read, InvalidArgument, "{} because it has already been read.", writing());
        let Some(shape) = &item.shape else {
            (item.shape, item.value) = (Some(value.shape().clone()), Some(value));
            return Ok(());
        };
        ensure!(
            self.is_gradient,
            InvalidArgument,
            "{} because it has already been written to.",
            writing()
        );
        ensure!(
            shape == value.shape(),
            InvalidArgument,
            "TensorArray {name}: Could not aggregate to TensorArray index {index} because the \
             existing shape is {shape} but the new input shape is {}.",
            value.shape()
        );
        match &mut item.value {
            Some(sum) => {
                add_assign(sum, &value)?;
                state.summed = true;
            }
            slot => *slot = Some(value),
        }
        Ok(())
    }

    /// Reads elements, and clears them if the array is cleared on read.
    pub(crate) fn read(&self, indices: &[i64]) -> Result<Vec<Tensor>> {
        let mut state = self.open()?;
        indices.iter().map(|&index| self.read_one(&mut state, index)).collect()
    }

    fn read_one(&self, state: &mut State, index: i64) -> Result<Tensor> {
        let (name, size) = (&self.name, state.items.len());
        let at = usize::try_from(index).ok().filter(|&at| at < size || self.is_gradient);
        let Some(at) = at else {
            bail!(InvalidArgument, "Tried to read from index {index} but array size is: {size}");
        };
        if at >= size {
            check_size(at + 1)?;
            state.items.resize(at + 1, Item::default())?;
        }
        if state.items[at].shape.is_none() {
            let Some(shape) = state.shape.known() else {
                bail!(
                    InvalidArgument,
                    "TensorArray {name}: Could not read from TensorArray index {index}.  \
                     Furthermore, the element shape is not fully defined: {}.  It is possible you \
                     are working with a resizeable TensorArray and stop_gradients is not allowing \
                     the gradients to be written.  If you set the full element_shape property on \
                     the forward TensorArray, the proper all-zeros tensor will be returned \
                     instead of incurring this error.",
                    state.shape
                );
            };
            state.items[at].shape = Some(shape);
        }
        let item = &mut state.items[at];
        ensure!(
            !item.cleared,
            InvalidArgument,
            "TensorArray {name}: Could not read index {index} twice because it was cleared after a \
             previous read (perhaps try setting clear_after_read = false?)."
        );
        let value = match &item.value {
            Some(value) => value.clone(),
            None => Tensor::zeros(self.dtype, item.shape.clone().unwrap_or_default())?,
        };
        item.read = true;
        if self.clear_after_read {
            (item.value, item.cleared) = (None, true);
        } else {
            item.value = Some(value.clone());
        }
        Ok(value)
    }

    fn open(&self) -> Result<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        ensure!(
            !state.closed,
            InvalidArgument,
            "TensorArray {} has already been closed.",
            self.name
        );
        Ok(state)
    }
}

fn check_size(size: usize) -> Result<()> {
    ensure!(
        size <= MAX_SIZE,
        ResourceExhausted,
        "a TensorArray of {size} elements is larger than the {MAX_SIZE} that are allowed"
    );
    Ok(())
}
