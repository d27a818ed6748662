//! PaddedBatchDataset: pads elements to equal shapes, then batches them.

use super::batch::{batch_size, batched_cardinality, gather};
use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Variant;
use ferroflow_op_kit::pack::with_rows;

struct PaddedBatch {
    input: DatasetRef,
    size: usize,
    drop_remainder: bool,
    padding: Arc<Vec<Padding>>,
}

/// How one component is padded.
struct Padding {
    /// Sizes to pad to; `None`: to the largest in the batch.
    dims: Vec<Option<usize>>,
    value: Tensor,
}

impl Dataset for PaddedBatch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(PaddedBatching {
            input: self.input.iterate(scope)?,
            size: self.size,
            drop_remainder: self.drop_remainder,
            padding: self.padding.clone(),
        }))
    }

    fn cardinality(&self) -> i64 {
        batched_cardinality(self.input.cardinality(), self.size, self.drop_remainder)
    }
}

struct PaddedBatching {
    input: Elements,
    size: usize,
    drop_remainder: bool,
    padding: Arc<Vec<Padding>>,
}

impl Produce for PaddedBatching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let batch = gather(&mut self.input, self.size).await?;
            if batch.is_empty() || self.drop_remainder && batch.len() < self.size {
                return Ok(None);
            }
            let all = self.padding.iter().enumerate().map(|(i, padding)| {
                let parts: Option<Vec<&Tensor>> = batch.iter().map(|e| e.get(i)).collect();
                let parts = parts.ok_or_else(|| err!(InvalidArgument, "no component {i}"))?;
                padded(i, padding, &parts)
            });
            all.collect::<Result<Tuple>>().map(Some)
        })
    }
}

fn padded(i: usize, padding: &Padding, parts: &[&Tensor]) -> Result<Tensor> {
    let rank = padding.dims.len();
    let mut dims: Vec<usize> = padding.dims.iter().map(|d| d.unwrap_or(0)).collect();
    for part in parts {
        ensure!(
            part.rank() == rank,
            InvalidArgument,
            "All elements in a batch must have the same rank as the padded shape for component{i}: \
             expected rank {rank} but got element with rank {}",
            part.rank()
        );
        for (axis, &d) in part.shape().iter().enumerate() {
            match padding.dims[axis] {
                None => dims[axis] = Ord::max(dims[axis], d),
                Some(most) => ensure!(
                    d <= most,
                    DataLoss,
                    "Attempted to pad to a smaller size than the input element."
                ),
            }
        }
    }
    let mut out = Tensor::alloc(padding.value.dtype(), with_rows(parts.len(), &dims))?;
    match padding.value.dtype().size() {
        Some(1) => fill::<u8>(&mut out, &dims, padding, parts)?,
        Some(2) => fill::<u16>(&mut out, &dims, padding, parts)?,
        Some(4) => fill::<u32>(&mut out, &dims, padding, parts)?,
        Some(8) => fill::<u64>(&mut out, &dims, padding, parts)?,
        Some(16) => fill::<[u64; 2]>(&mut out, &dims, padding, parts)?,
        _ => match padding.value.dtype() {
            DType::String => fill::<Bytes>(&mut out, &dims, padding, parts)?,
            DType::Variant => fill::<Variant>(&mut out, &dims, padding, parts)?,
            other => bail!(Unimplemented, "padding {other} tensors is not supported"),
        },
    }
    Ok(out)
}

fn fill<W: Movable>(
    out: &mut Tensor,
    dims: &[usize],
    padding: &Padding,
    parts: &[&Tensor],
) -> Result<()> {
    let [pad] = W::of(&padding.value)? else { bail!(Internal, "a padding value is no scalar") };
    let (pad, each) = (pad.clone(), dims.iter().product::<usize>());
    let all = W::of_mut(out)?;
    all.fill(pad);
    if each == 0 {
        return Ok(());
    }
    for (to, part) in all.chunks_exact_mut(each).zip(parts) {
        ensure!(
            part.dtype() == padding.value.dtype(),
            InvalidArgument,
            "expected a {} component, got {}",
            padding.value.dtype(),
            part.dtype()
        );
        place(to, dims, W::of(part)?, part.shape());
    }
    Ok(())
}

/// Copies `from` into the corner of `to`.
fn place<T: Clone>(to: &mut [T], to_dims: &[usize], from: &[T], from_dims: &[usize]) {
    if from.is_empty() {
        return;
    }
    match (to_dims.split_first(), from_dims.split_first()) {
        (Some((_, [])), Some((&n, _))) => to[..n].clone_from_slice(from),
        (Some((&rows, to_rest)), Some((&n, from_rest))) => {
            let (to_row, from_row) = (to.len() / rows, from.len() / n);
            for (to, from) in to.chunks_exact_mut(to_row).zip(from.chunks_exact(from_row)) {
                place(to, to_rest, from, from_rest);
            }
        }
        _ => to.clone_from_slice(from),
    }
}

/// From inputs 2 on: the padded shapes, then the padding values, of `n` components each.
fn paddings(ctx: &Ctx<'_>, n: usize) -> Result<Vec<Padding>> {
    let dims_of = |t: &Tensor| -> Result<Vec<Option<usize>>> {
        ensure!(t.rank() == 1, InvalidArgument, "All padded shapes must be vectors");
        let dims = t.to_indices()?;
        let all = dims.iter().map(|&d| match d {
            -1 => Ok(None),
            d => usize::try_from(d).map(Some).map_err(|_| {
                err!(InvalidArgument, "Dimension {d} of a padded shape must be >= -1")
            }),
        });
        all.collect()
    };
    let mut all = Vec::with_capacity(n);
    for i in 0..n {
        let value = ctx.input(2 + n + i)?;
        ensure!(value.rank() == 0, InvalidArgument, "All padding values must be scalars");
        all.push(Padding { dims: dims_of(ctx.input(2 + i)?)?, value: value.clone() });
    }
    Ok(all)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtypes = init.dtypes("Toutput_types")?;
    let n = usize::try_from(init.int("N")?).unwrap_or(0);
    ensure!(
        n == dtypes.len(),
        InvalidArgument,
        "Number of padded shapes ({n}) must match the number of components in the input dataset's \
         elements ({})",
        dtypes.len()
    );
    makes(init, move |ctx| {
        let (input, size) = (input(ctx, 0)?, batch_size(ctx, 1)?);
        let drop_remainder = match 2 + 2 * n {
            last if last < ctx.num_inputs() => scalar(ctx, last, "drop_remainder")?,
            _ => false,
        };
        let padding = paddings(ctx, n)?;
        for (i, (p, dtype)) in padding.iter().zip(&input.types().dtypes).enumerate() {
            ensure!(
                p.value.dtype() == *dtype,
                InvalidArgument,
                "Mismatched type between padding value {i} and input dataset's component {i}: {} \
                 vs. {dtype}",
                p.value.dtype()
            );
        }
        Ok(PaddedBatch { input, size, drop_remainder, padding: Arc::new(padding) })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, drop, parallel) in [
        ("PaddedBatchDataset", &[][..], &[][..]),
        (
            "PaddedBatchDatasetV2",
            &["drop_remainder: bool"][..],
            &["parallel_copy: bool = false"][..],
        ),
    ] {
        c.op(name)
            .doc("A dataset of batches of elements, each padded to the same size.")
            .input("input_dataset: variant")
            .input("batch_size: int64")
            .input("padded_shapes: N * int64")
            .input("padding_values: Toutput_types")
            .inputs(drop)
            .makes_dataset()
            .attrs(parallel)
            .attr("Toutput_types: list(type) >= 1")
            .attr("output_shapes: list(shape) >= 1")
            .attr("N: int >= 1")
            .metadata_attr()
            .cpu(make);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    fn padded_to(dims: &[i64], of: Tensor) -> ferroflow_testing::Check<'static> {
        crate::testing::check("PaddedBatchDatasetV2")
            .attr("output_shapes", vec![PartialShape::unknown()])
            .attr("Toutput_types", vec![DType::Int64])
            .attr("N", 1i64)
            .input(of)
            .input(Tensor::scalar(3i64))
            .input(Tensor::vector(dims))
            .input(Tensor::scalar(-7i64))
            .input(Tensor::scalar(false))
    }

    /// [[0, 1]], [[2]] and so on: batches of batches of different sizes.
    fn uneven() -> Tensor {
        let op = dataset("BatchDataset", &[DType::Int64]);
        made(op.input(range(3)).input(Tensor::scalar(2i64)))
    }

    #[test]
    fn elements_are_padded_to_the_largest_or_to_what_is_asked() {
        assert_eq!(longs(&made(padded_to(&[-1], uneven()))), [[0, 1, 2, -7]]);
        assert_eq!(longs(&made(padded_to(&[3], uneven()))), [[0, 1, -7, 2, -7, -7]]);
        let e = elements(&made(padded_to(&[1], uneven()))).unwrap_err();
        assert_eq!(e.code(), Code::DataLoss);
        let e = elements(&made(padded_to(&[1, 1], uneven()))).unwrap_err();
        assert!(e.message().contains("expected rank 2 but got element with rank 1"), "{e}");
    }

    #[test]
    fn a_corner_of_several_dimensions_is_filled() {
        let mut to = [0; 12];
        place(&mut to, &[2, 2, 3], &[1, 2, 3, 4], &[2, 1, 2]);
        assert_eq!(to, [1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0]);
    }
}
