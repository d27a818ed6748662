//! Datasets of a node's inputs: TensorDataset, TensorSliceDataset, ListDataset, RangeDataset.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;

/// One element.
struct Whole(Tuple);

impl Dataset for Whole {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let mut element = Some(self.0.clone());
        Ok(Elements::from_fn(move || Ok(element.take())))
    }

    fn cardinality(&self) -> i64 {
        1
    }
}

/// The rows of tensors, side by side.
struct Slices {
    components: Tuple,
    rows: usize,
}

impl Dataset for Slices {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (components, rows) = (self.components.clone(), self.rows);
        let mut at = 0;
        Ok(Elements::from_fn(move || {
            if at == rows {
                return Ok(None);
            }
            at += 1;
            components.iter().map(|t| t.row(at - 1)).collect::<Result<Tuple>>().map(Some)
        }))
    }

    fn cardinality(&self) -> i64 {
        self.rows as i64
    }
}

fn components(ctx: &mut Ctx<'_>) -> Result<Tuple> {
    (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect()
}

fn slices(ctx: &mut Ctx<'_>) -> Result<Slices> {
    let components = components(ctx)?;
    let mut rows = None;
    for t in &components {
        let Some(&n) = t.shape().first() else {
            bail!(InvalidArgument, "All components must be at least 1-dimensional");
        };
        ensure!(
            rows.is_none_or(|rows| rows == n),
            InvalidArgument,
            "All components must have the same size in the 0th dimension"
        );
        rows = Some(n);
    }
    Ok(Slices { components, rows: rows.unwrap_or(0) })
}

/// Elements that are listed one by one, each of `width` components.
struct Listed {
    tensors: Tuple,
    width: usize,
}

impl Dataset for Listed {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (tensors, width) = (self.tensors.clone(), self.width);
        let mut at = 0;
        Ok(Elements::from_fn(move || {
            let next = tensors.get(at..at + width).map(<[Tensor]>::to_vec);
            at += width;
            Ok(next)
        }))
    }

    fn cardinality(&self) -> i64 {
        (self.tensors.len() / self.width) as i64
    }
}

/// Numbers from `start` to before `stop`.
struct Numbers {
    start: i64,
    stop: i64,
    step: i64,
    dtype: DType,
}

impl Numbers {
    fn count(&self) -> u64 {
        let (span, step) = if self.step > 0 {
            (i128::from(self.stop) - i128::from(self.start), i128::from(self.step))
        } else {
            (i128::from(self.start) - i128::from(self.stop), -i128::from(self.step))
        };
        u64::try_from((span + step - 1).max(0) / step).unwrap_or(u64::MAX)
    }
}

impl Dataset for Numbers {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let (mut next, mut left) = (self.start, self.count());
        let (step, dtype) = (self.step, self.dtype);
        Ok(Elements::from_fn(move || {
            if left == 0 {
                return Ok(None);
            }
            left -= 1;
            let number = number(next, dtype)?;
            next = next.wrapping_add(step);
            Ok(Some(vec![number]))
        }))
    }

    fn cardinality(&self) -> i64 {
        i64::try_from(self.count()).unwrap_or(i64::MAX)
    }
}

/// `x` as a scalar of any number type.
fn number(x: i64, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::Int64 => Tensor::scalar(x),
        DType::Int32 => Tensor::scalar(x as i32),
        DType::Int16 => Tensor::scalar(x as i16),
        DType::Int8 => Tensor::scalar(x as i8),
        DType::UInt64 => Tensor::scalar(x as u64),
        DType::UInt32 => Tensor::scalar(x as u32),
        DType::UInt16 => Tensor::scalar(x as u16),
        DType::UInt8 => Tensor::scalar(x as u8),
        DType::Float => Tensor::scalar(x as f32),
        DType::Double => Tensor::scalar(x as f64),
        DType::Half => Tensor::scalar(f16::from_f64(x as f64)),
        DType::BFloat16 => Tensor::scalar(bf16::from_f64(x as f64)),
        other => bail!(InvalidArgument, "Unsupported data type: {other}"),
    })
}

fn range(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtypes = init.dtypes("output_types")?;
    let dtype = dtypes.first().copied().unwrap_or(DType::Int64);
    makes(init, move |ctx| {
        let at = |i, name| scalar::<i64>(ctx, i, name);
        let (start, stop, step) = (at(0, "start")?, at(1, "stop")?, at(2, "step")?);
        ensure!(step != 0, InvalidArgument, "step must be a non-zero integer.");
        Ok(Numbers { start, stop, step, dtype })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("TensorDataset")
        .doc("A dataset of one element: the tensors as they are.")
        .input("components: Toutput_types")
        .makes_dataset()
        .attr("Toutput_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .metadata_attr()
        .stateful()
        .cpu(|init| makes(init, |ctx| components(ctx).map(Whole)));
    c.op("TensorSliceDataset")
        .doc("A dataset of the rows of tensors.")
        .input("components: Toutput_types")
        .makes_dataset()
        .attr("Toutput_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .attr("is_files: bool = false")
        .metadata_attr()
        .attr("replicate_on_split: bool = false")
        .stateful()
        .cpu(|init| makes(init, slices));
    c.op("ListDataset")
        .doc("A dataset of elements that are listed one by one.")
        .input("tensors: Tinput_types")
        .makes_dataset()
        .attr("Tinput_types: list(type) >= 1")
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            let width = init.dtypes("output_types")?.len();
            makes(init, move |ctx| {
                let tensors = components(ctx)?;
                ensure!(
                    width > 0 && tensors.len() % width == 0,
                    InvalidArgument,
                    "{} tensors do not make elements of {width} components",
                    tensors.len()
                );
                Ok(Listed { tensors, width })
            })
        });
    c.op("RangeDataset")
        .doc("A dataset of numbers from `start` to before `stop`.")
        .input("start: int64")
        .input("stop: int64")
        .input("step: int64")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .attr("replicate_on_split: bool = false")
        .stateful()
        .cpu(range);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::{dataset, elements, made, slices};
    use crate::testing::check;

    #[test]
    fn rows_come_side_by_side() {
        let names = Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap();
        let rows = Tensor::from_slice([2, 2], &[1i32, 2, 3, 4]).unwrap();
        let got = elements(&slices(&[names, rows])).unwrap();
        assert_eq!(got[1], [Tensor::string("b"), Tensor::vector(&[3i32, 4])]);
        assert_eq!(got.len(), 2);
        let op =
            || check("TensorSliceDataset").attr("output_shapes", vec![PartialShape::unknown()]);
        op().input(Tensor::scalar(1i32)).fails(Code::InvalidArgument, "at least 1-dimensional");
        op().input(Tensor::vector(&[1i32]))
            .input(Tensor::vector(&[1i32, 2]))
            .fails(Code::InvalidArgument, "must have the same size in the 0th dimension");
    }

    #[test]
    fn ranges_are_counted_without_overflow() {
        let numbers =
            |start: i64, stop: i64, step: i64| Numbers { start, stop, step, dtype: DType::Int64 };
        assert_eq!(numbers(0, 10, 3).count(), 4);
        assert_eq!(numbers(10, 0, -3).count(), 4);
        assert_eq!(numbers(0, -1, 1).count(), 0);
        assert_eq!(numbers(i64::MIN, i64::MAX, 1).count(), u64::MAX);
        assert_eq!(numbers(i64::MIN, i64::MAX, 1).cardinality(), i64::MAX);
        assert_eq!(numbers(i64::MAX, i64::MIN, i64::MIN).count(), 2);
        let floats = dataset("RangeDataset", &[DType::Float]);
        let floats = [1i64, 3, 1].map(Tensor::scalar).into_iter().fold(floats, |c, t| c.input(t));
        assert_eq!(elements(&made(floats)).unwrap()[1], [Tensor::scalar(2f32)]);
    }
}
