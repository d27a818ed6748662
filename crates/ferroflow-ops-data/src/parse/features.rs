//! What Example and SequenceExample records hold: features by name, each a list of strings, floats
//! or integers.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use ferroflow_op_kit::protobuf::{FieldValue, fields};
use std::collections::HashMap;

/// Features of a record by name, not parsed yet.
pub(crate) type Features<'a> = HashMap<&'a [u8], &'a [u8]>;

/// A list of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Texts(Vec<Bytes>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

/// The entries of a `map<string, message>` field; the last of equal names counts.
fn map_of<'a>(messages: &[(u32, FieldValue<'a>)]) -> Option<Features<'a>> {
    let mut map = HashMap::new();
    for (_, value) in messages.iter().filter(|f| f.0 == 1) {
        let (mut key, mut item): (&[u8], &[u8]) = (&[], &[]);
        for (field, value) in fields(value.as_bytes()?)? {
            match field {
                1 => key = value.as_bytes()?,
                2 => item = value.as_bytes()?,
                _ => {}
            }
        }
        map.insert(key, item);
    }
    Some(map)
}

/// The features that field `number` of a record holds; `None` if the record is malformed.
pub(crate) fn features(record: &[u8], number: u32) -> Option<Features<'_>> {
    let mut all = Features::new();
    for (field, value) in fields(record)? {
        if field == number {
            all.extend(map_of(&fields(value.as_bytes()?)?)?);
        }
    }
    Some(all)
}

/// The steps of a feature list: features one behind the other.
pub(crate) fn steps(list: &[u8]) -> Option<Vec<&[u8]>> {
    let all = fields(list)?;
    all.into_iter().filter(|f| f.0 == 1).map(|f| f.1.as_bytes()).collect()
}

/// The values of a feature; `Some(None)` when its kind is not set, `None` when it is malformed.
pub(crate) fn values(feature: &[u8]) -> Option<Option<Values>> {
    let mut found = None;
    for (field, value) in fields(feature)? {
        let mut list = match field {
            1 => Values::Texts(Vec::new()),
            2 => Values::Floats(Vec::new()),
            3 => Values::Ints(Vec::new()),
            _ => continue,
        };
        for (_, value) in fields(value.as_bytes()?)?.into_iter().filter(|f| f.0 == 1) {
            match &mut list {
                Values::Texts(v) => v.push(Bytes::copy_from_slice(value.as_bytes()?)),
                Values::Floats(v) => value.words(|w| v.push(f32::from_bits(w)))?,
                Values::Ints(v) => value.varints(|x| v.push(x as i64))?,
            }
        }
        found = Some(list);
    }
    Some(found)
}

impl Values {
    /// No values yet, of a dtype that records can hold.
    pub fn empty(dtype: DType) -> Values {
        match dtype {
            DType::Float => Values::Floats(Vec::new()),
            DType::Int64 => Values::Ints(Vec::new()),
            _ => Values::Texts(Vec::new()),
        }
    }

    pub fn of(t: &Tensor) -> Result<Values> {
        Ok(match t.dtype() {
            DType::Float => Values::Floats(t.as_slice::<f32>()?.to_vec()),
            DType::Int64 => Values::Ints(t.as_slice::<i64>()?.to_vec()),
            _ => Values::Texts(t.strings()?.to_vec()),
        })
    }

    /// Counts `n` values of a type before they are made. A small record can ask for many.
    pub fn count(dtype: DType, n: usize) -> Result<Reservation> {
        Reservation::new(n.saturating_mul(dtype.size().unwrap_or(size_of::<Bytes>())))
    }

    pub fn dtype(&self) -> DType {
        match self {
            Values::Texts(_) => DType::String,
            Values::Floats(_) => DType::Float,
            Values::Ints(_) => DType::Int64,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Values::Texts(v) => v.len(),
            Values::Floats(v) => v.len(),
            Values::Ints(v) => v.len(),
        }
    }

    /// Appends values of the same dtype.
    pub fn append(&mut self, more: Values) {
        match (self, more) {
            (Values::Texts(a), Values::Texts(b)) => a.extend(b),
            (Values::Floats(a), Values::Floats(b)) => a.extend(b),
            (Values::Ints(a), Values::Ints(b)) => a.extend(b),
            _ => {}
        }
    }

    /// Appends one value, or zero, until there are `n`.
    pub fn pad(&mut self, n: usize, with: Option<&Values>) {
        match (self, with) {
            (Values::Texts(a), Some(Values::Texts(w))) if !w.is_empty() => {
                a.resize(n, w[0].clone())
            }
            (Values::Floats(a), Some(Values::Floats(w))) if !w.is_empty() => a.resize(n, w[0]),
            (Values::Ints(a), Some(Values::Ints(w))) if !w.is_empty() => a.resize(n, w[0]),
            (Values::Texts(a), _) => a.resize(n, Bytes::new()),
            (Values::Floats(a), _) => a.resize(n, 0.0),
            (Values::Ints(a), _) => a.resize(n, 0),
        }
    }

    pub fn into_tensor(self, shape: impl Into<Shape>) -> Result<Tensor> {
        match self {
            Values::Texts(v) => Tensor::from_strings(shape, v),
            Values::Floats(v) => Tensor::from_slice(shape, &v),
            Values::Ints(v) => Tensor::from_slice(shape, &v),
        }
    }
}

/// A feature that is wanted as a dense tensor: of a fixed shape, or of one whose first dimension
/// is as long as there are values.
#[derive(Clone)]
pub(crate) struct Dense {
    pub key: Bytes,
    pub dtype: DType,
    /// Dimensions, without the first one where that is open.
    pub shape: Shape,
    pub is_open: bool,
}

impl Dense {
    pub fn new(key: Bytes, dtype: DType, shape: &PartialShape) -> Result<Dense> {
        let is_open = matches!(shape.dims(), Some([None, ..]));
        let rest = match shape.dims() {
            Some([None, rest @ ..]) => PartialShape::new(rest.iter().copied()),
            _ => shape.clone(),
        };
        let Some(known) = rest.known() else {
            bail!(
                InvalidArgument,
                "dense_shapes must be known but for the first dimension, got {shape}"
            );
        };
        Ok(Dense { key, dtype, shape: known, is_open })
    }

    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    /// Values per step of the open dimension, or altogether.
    pub fn stride(&self) -> usize {
        self.shape.elements()
    }

    /// The shape as TensorFlow prints it.
    pub fn described(&self) -> PartialShape {
        let dims = self.shape.iter().map(|&d| Some(d));
        match self.is_open {
            true => PartialShape::new([None].into_iter().chain(dims)),
            false => PartialShape::new(dims),
        }
    }
}

/// A feature that each record stores as a separate list.
#[derive(Clone)]
pub(crate) struct Listed {
    pub key: Bytes,
    pub dtype: DType,
}

impl Listed {
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }
}

/// A vector of int32 or int64.
pub(crate) fn index_vector(dtype: DType, values: &[i64]) -> Tensor {
    match dtype {
        DType::Int32 => Tensor::vector(&values.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        _ => Tensor::vector(values),
    }
}

/// The strings of a vector input.
pub(crate) fn keys_of(t: &Tensor, name: &str) -> Result<Vec<Bytes>> {
    ensure!(
        t.rank() == 1,
        InvalidArgument,
        "Expected {name} to be a vector, got shape: {}",
        t.shape()
    );
    Ok(t.strings()?.to_vec())
}

/// Sparse outputs: indices, values, shape.
pub(crate) struct Sparse {
    pub indices: Vec<i64>,
    pub values: Values,
    pub shape: Vec<i64>,
}

impl Sparse {
    pub fn tensors(self) -> Result<[Tensor; 3]> {
        let (n, rank) = (self.values.len(), self.shape.len());
        Ok([
            Tensor::from_slice([n, rank], &self.indices)?,
            self.values.into_tensor([n])?,
            Tensor::vector(&self.shape),
        ])
    }
}
