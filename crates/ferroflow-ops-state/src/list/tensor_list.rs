//! Tensor lists: values of variant tensors that hold a list of tensors.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{CountedVec, Variant, VariantObject};
use ferroflow_op_kit::tensor_arithmetic::add_assign;

/// A list of tensors of one dtype. Elements may be unset.
pub(crate) struct TensorList {
    pub(crate) dtype: DType,
    /// The known shape of every element.
    pub(crate) shape: PartialShape,
    /// The most elements that pushing may reach; `None` for no limit.
    pub(crate) max: Option<usize>,
    pub(crate) items: CountedVec<Option<Tensor>>,
}

/// A larger length is refused before it is allocated.
const MAX_LEN: usize = 1 << 26;

impl VariantObject for TensorList {
    fn type_name(&self) -> &str {
        "tensorflow::TensorList"
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let unset: Vec<u64> =
            (0u64..).zip(self.items.iter()).filter(|(_, t)| t.is_none()).map(|(i, _)| i).collect();
        let mut out = Vec::new();
        put_varint(&mut out, unset.len() as u64);
        unset.into_iter().for_each(|i| put_varint(&mut out, i));
        put_varint(&mut out, self.dtype.number() as u64);
        put_varint(&mut out, self.max.map_or(-1i64, |max| max as i64) as u64);
        put_shape(&mut out, &self.shape);
        Some((out.into(), self.items.iter().flatten().cloned().collect()))
    }

    fn zeros_like(&self) -> Result<Variant> {
        let zeros = |t: &Tensor| -> Result<Tensor> {
            match t.variants() {
                Ok(all) => {
                    let zeros: Result<Vec<Variant>> = all.iter().map(Variant::zeros_like).collect();
                    Tensor::from_variants(t.shape().clone(), zeros?)
                }
                Err(_) => Tensor::zeros(t.dtype(), t.shape().clone()),
            }
        };
        let items = self.items.iter().map(|t| t.as_ref().map(zeros).transpose());
        Ok(Variant::new(self.with_items(CountedVec::try_from_iter(items)?)))
    }

    fn plus(&self, other: &Variant) -> Result<Variant> {
        let Some(other) = other.get::<TensorList>() else {
            bail!(InvalidArgument, "a tensor list and {other:?} cannot be added");
        };
        ensure!(
            self.dtype == other.dtype && self.items.len() == other.items.len(),
            InvalidArgument,
            "Trying to add two lists of tensors with different lengths or dtypes. One is {} {} and \
             the other is {} {}",
            self.items.len(),
            self.dtype,
            other.items.len(),
            other.dtype
        );
        let add = |(a, b): (&Option<Tensor>, &Option<Tensor>)| match (a, b) {
            (Some(a), Some(b)) => {
                let mut sum = a.clone();
                add_assign(&mut sum, b).map(|()| Some(sum))
            }
            (a, b) => Ok(a.clone().or_else(|| b.clone())),
        };
        let items = self.items.iter().zip(other.items.iter()).map(add);
        let shape = self.shape.merge(&other.shape)?;
        let items = CountedVec::try_from_iter(items)?;
        Ok(Variant::new(TensorList { shape, ..self.with_items(items) }))
    }
}

impl TensorList {
    pub(crate) fn new(dtype: DType, shape: PartialShape) -> TensorList {
        TensorList { dtype, shape, max: None, items: CountedVec::new() }
    }

    /// The same kind of list, with other elements.
    fn with_items(&self, items: CountedVec<Option<Tensor>>) -> TensorList {
        TensorList { dtype: self.dtype, shape: self.shape.clone(), max: self.max, items }
    }

    /// A copy. An error if there is no memory for it.
    pub(crate) fn try_clone(&self) -> Result<TensorList> {
        Ok(self.with_items(self.items.try_clone()?))
    }

    /// Resizes it to `len` elements; new ones are not set.
    pub(crate) fn resize(&mut self, len: usize) -> Result<()> {
        ensure!(
            len <= MAX_LEN,
            ResourceExhausted,
            "a list of {len} elements is longer than the {MAX_LEN} that are allowed"
        );
        self.items.resize(len, None)
    }

    pub(crate) fn check_dtype(&self, dtype: DType) -> Result<()> {
        ensure!(
            self.dtype == dtype,
            InvalidArgument,
            "Invalid data types; op elements {dtype} but list elements {}",
            self.dtype
        );
        Ok(())
    }

    /// The shape of elements: from the list, from `asked`, and if that is not complete, from the
    /// elements that are set.
    pub(crate) fn element_shape(&self, asked: &PartialShape) -> Result<PartialShape> {
        let mut shape = self.shape.merge(asked)?;
        if shape.known().is_none() {
            for item in self.items.iter().flatten() {
                shape = shape.merge(&item.shape().into())?;
            }
        }
        Ok(shape)
    }

    pub(crate) fn into_tensor(self) -> Tensor {
        Tensor::variant(Variant::new(self))
    }
}

/// The list in a variant.
pub(crate) fn list_in(variant: &Variant) -> Result<&TensorList> {
    variant
        .get::<TensorList>()
        .ok_or_else(|| err!(InvalidArgument, "Input handle is not a list. Saw: '{variant:?}'"))
}

/// The list in input `i`, for reading.
pub(crate) fn list<'a>(ctx: &'a Ctx<'_>, i: usize) -> Result<&'a TensorList> {
    match ctx.input(i)?.variants()? {
        [one] => list_in(one),
        _ => bail!(InvalidArgument, "Input list must be a scalar saw: {}", ctx.input(i)?.shape()),
    }
}

/// The list in input `i`, mutable: its own elements if unshared, else a copy.
pub(crate) fn take_list(ctx: &mut Ctx<'_>, i: usize) -> Result<TensorList> {
    let copy = |list: &TensorList| TensorList::new(list.dtype, list.shape.clone());
    let mut input = ctx.take(i)?;
    if input.elements() == 1
        && input.is_unique()
        && let Some(list) = input.variants_mut()?[0].get_mut::<TensorList>()
    {
        let empty = copy(list);
        return Ok(std::mem::replace(list, empty));
    }
    match input.variants()? {
        [one] => list_in(one)?.try_clone(),
        _ => bail!(InvalidArgument, "Input list must be a scalar saw: {}", input.shape()),
    }
}

/// The shape in a shape input: a scalar -1 means an unknown rank.
pub(crate) fn shape_in(t: &Tensor) -> Result<PartialShape> {
    let dims = t.to_indices()?;
    match (t.rank(), dims.as_slice()) {
        (0, [-1]) => Ok(PartialShape::unknown()),
        (1, dims) => PartialShape::from_i64s(dims),
        _ => bail!(
            InvalidArgument,
            "The only valid scalar shape tensor is the fully unknown shape specified as -1."
        ),
    }
}

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A shape in TensorFlow's protobuf encoding: field 2 holds dimensions (whose field 1 is the
/// size), field 3 says that the rank is unknown.
fn put_shape(out: &mut Vec<u8>, shape: &PartialShape) {
    let Some(dims) = shape.dims() else {
        return out.extend([3 << 3, 1]);
    };
    for dim in dims {
        let mut inner = Vec::new();
        let size = dim.map_or(-1, |d| d as i64);
        if size != 0 {
            inner.push(1 << 3);
            put_varint(&mut inner, size as u64);
        }
        out.push(2 << 3 | 2);
        put_varint(out, inner.len() as u64);
        out.extend(inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<const N: usize>(all: [Option<f32>; N]) -> CountedVec<Option<Tensor>> {
        CountedVec::try_from_iter(all.map(|x| Ok(x.map(Tensor::scalar)))).unwrap()
    }

    #[test]
    fn lists_are_encoded_as_tensorflow_does() {
        let mut list = TensorList::new(DType::Float, PartialShape::new([Some(2), None]));
        list.items = items([None, Some(1.0), None]);
        let (metadata, tensors) = list.encode().unwrap();
        let minus_one = [0xff; 9].iter().chain(&[1]).copied().collect::<Vec<u8>>();
        let mut want = vec![2, 0, 2, 1];
        want.extend(&minus_one);
        want.extend([0x12, 2, 8, 2, 0x12, 11, 8]);
        want.extend(&minus_one);
        assert_eq!(&metadata[..], want);
        assert_eq!(tensors.len(), 1);
    }

    #[test]
    fn lists_add_up_element_by_element() {
        let mut a = TensorList::new(DType::Float, PartialShape::unknown());
        let mut b = a.try_clone().unwrap();
        a.items = items([Some(1.0), None, Some(3.0)]);
        b.items = items([Some(10.0), Some(20.0), None]);
        let sum = a.plus(&Variant::new(b.try_clone().unwrap())).unwrap();
        let got: Vec<f32> = sum
            .get::<TensorList>()
            .unwrap()
            .items
            .iter()
            .map(|t| t.as_ref().unwrap().scalar_value().unwrap())
            .collect();
        assert_eq!(got, [11.0, 20.0, 3.0]);
        let zeros = a.zeros_like().unwrap();
        let zeros = zeros.get::<TensorList>().unwrap();
        assert_eq!(zeros.items[0], Some(Tensor::scalar(0.0f32)));
        assert!(zeros.items[1].is_none());
        b.items.pop();
        assert!(a.plus(&Variant::new(b)).is_err());
    }
}
