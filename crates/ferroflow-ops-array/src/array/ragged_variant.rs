//! RaggedTensorToVariant and back: ragged tensors as values that can be batched and sliced.

use crate::prelude::*;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_op_kit::pack::concat;
use ferroflow_op_kit::tensor_arithmetic::add_assign;

/// A ragged tensor: row splits from the outermost to the innermost, and the values.
struct Ragged {
    splits: Vec<Vec<i64>>,
    values: Tensor,
}

impl VariantObject for Ragged {
    fn type_name(&self) -> &str {
        "RaggedTensorVariant"
    }

    fn zeros_like(&self) -> Result<Variant> {
        let values = Tensor::zeros(self.values.dtype(), self.values.shape().clone())?;
        Ok(Variant::new(Ragged { splits: self.splits.clone(), values }))
    }

    fn plus(&self, other: &Variant) -> Result<Variant> {
        let Some(other) = other.get::<Ragged>() else {
            bail!(InvalidArgument, "a ragged tensor is added to something else");
        };
        ensure!(
            self.splits == other.splits,
            InvalidArgument,
            "ragged tensors of different splits cannot be added"
        );
        let mut values = self.values.clone();
        add_assign(&mut values, &other.values)?;
        Ok(Variant::new(Ragged { splits: self.splits.clone(), values }))
    }
}

impl Ragged {
    fn from_inputs(ctx: &Ctx<'_>) -> Result<Ragged> {
        let last = ctx.num_inputs() - 1;
        let rows = |i: usize| -> Result<Vec<i64>> {
            let rank = ctx.input(i)?.rank();
            ensure!(
                rank == 1,
                InvalidArgument,
                "Requires nested_row_splits[{i}] to be rank 1 but is rank {rank}"
            );
            ctx.input(i)?.to_indices()
        };
        let splits: Result<Vec<Vec<i64>>> = (0..last).map(rows).collect();
        let ragged = Ragged { splits: splits?, values: ctx.input(last)?.clone() };
        ragged.check()?;
        Ok(ragged)
    }

    /// Checks that each split starts at 0, never decreases, and ends at the length of the level
    /// below.
    fn check(&self) -> Result<()> {
        for (i, splits) in self.splits.iter().enumerate() {
            let ends = splits.first() == Some(&0) && splits.windows(2).all(|w| w[0] <= w[1]);
            let inner = match self.splits.get(i + 1) {
                Some(inner) => inner.len() as i64 - 1,
                None => self.values.shape().first().map_or(-1, |&n| n as i64),
            };
            ensure!(
                ends && splits.last() == Some(&inner),
                InvalidArgument,
                "Invalid ragged splits: they must go from 0 to {inner} and never fall"
            );
        }
        Ok(())
    }

    fn rows(&self) -> Result<usize> {
        match (self.splits.first(), self.values.shape().first()) {
            (Some(splits), _) => Ok(splits.len() - 1),
            (None, Some(&n)) => Ok(n),
            (None, None) => bail!(InvalidArgument, "a scalar has no rows"),
        }
    }

    /// Row `i`, with one dimension fewer.
    fn row(&self, i: usize) -> Result<Ragged> {
        let Some((outer, inner)) = self.splits.split_first() else {
            return Ok(Ragged { splits: Vec::new(), values: self.values.row(i)? });
        };
        let (mut from, mut to) = (outer[i] as usize, outer[i + 1] as usize);
        let mut splits = Vec::with_capacity(inner.len());
        for all in inner {
            let mine = &all[from..=to];
            splits.push(mine.iter().map(|x| x - mine[0]).collect());
            (from, to) = (all[from] as usize, all[to] as usize);
        }
        Ok(Ragged { splits, values: self.values.rows(from, to - from)? })
    }
}

fn to_variant(init: &KernelInit<'_>) -> Result<KernelBox> {
    let batched = init.bool("batched_input")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let ragged = Ragged::from_inputs(ctx)?;
        if !batched {
            return ctx.set(0, Tensor::variant(Variant::new(ragged)));
        }
        let rows = ragged.rows()?;
        let all: Result<Vec<Variant>> =
            (0..rows).map(|i| Ok(Variant::new(ragged.row(i)?))).collect();
        ctx.set(0, Tensor::from_variants([rows], all?)?)
    }))
}

/// Combines ragged tensors of `rank` splits into one, with the outer dimensions of `shape`.
fn stacked(parts: &[&Ragged], shape: &[usize], rank: usize, dtype: DType) -> Result<Ragged> {
    let mut splits: Vec<Vec<i64>> = Vec::new();
    // All outer dimensions but the last are uniform.
    let mut rows = 1usize;
    for pair in shape.windows(2) {
        rows = rows.saturating_mul(pair[0]);
        // There may be many splits even without values.
        Tensor::alloc(DType::Int64, [rows.saturating_add(1)])?;
        splits.push((0..=rows).map(|i| (i * pair[1]) as i64).collect());
    }
    let mut inner: Vec<Vec<i64>> = vec![vec![0]; rank + 1];
    for part in parts {
        ensure!(
            part.splits.len() == rank,
            InvalidArgument,
            "Encoded input RaggedTensorVariant has ragged_rank={}.  Expected ragged_rank={rank}.",
            part.splits.len()
        );
        ensure!(
            part.values.dtype() == dtype,
            InvalidArgument,
            "Expected values Tensor dtype: {dtype}, found: {}",
            part.values.dtype()
        );
        let base = inner[0].last().copied().unwrap_or(0);
        inner[0].push(base + part.rows()? as i64);
        for (all, mine) in inner[1..].iter_mut().zip(&part.splits) {
            let base = all.last().copied().unwrap_or(0);
            all.extend(mine[1..].iter().map(|x| base + x));
        }
    }
    splits.extend(inner);
    let row = parts.first().map_or(Shape::vector(0), |p| p.values.shape().clone());
    let row = Shape::from(row.get(1..).unwrap_or_default());
    let values = concat(dtype, &row, parts.iter().map(|p| &p.values))?;
    Ok(Ragged { splits, values })
}

fn from_variant(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (asked, outputs) = (init.int("input_ragged_rank")?, init.int("output_ragged_rank")?);
    let (dtype, splits_type) = (init.dtype("Tvalues")?, init.dtype("Tsplits")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let encoded = ctx.input(0)?;
        let outer = encoded.rank() as i64;
        let rank = if asked == -1 { outputs - outer } else { asked };
        ensure!(
            rank >= 0 && outputs == rank + outer,
            InvalidArgument,
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); \
             output_ragged_rank: {outputs}, input_ragged_rank: {rank}, encoded_ragged.dims(): \
             {outer}."
        );
        let parts: Option<Vec<&Ragged>> =
            encoded.variants()?.iter().map(|v| v.get::<Ragged>()).collect();
        let Some(parts) = parts else {
            bail!(InvalidArgument, "Input Variant element doesn't hold a RaggedTensorVariant");
        };
        let whole = match &parts[..] {
            [one] if outer == 0 => {
                Ragged { splits: one.splits.clone(), values: one.values.clone() }
            }
            parts => stacked(parts, encoded.shape(), rank as usize, dtype)?,
        };
        ensure!(
            whole.splits.len() as i64 == outputs && whole.values.dtype() == dtype,
            InvalidArgument,
            "Encoded input RaggedTensorVariant has ragged_rank={} of {}.  Expected \
             ragged_rank={outputs} of {dtype}.",
            whole.splits.len(),
            whole.values.dtype()
        );
        let n = whole.splits.len();
        for (i, splits) in whole.splits.iter().enumerate() {
            let splits = match splits_type {
                DType::Int32 => {
                    let narrow: Vec<i32> = splits.iter().map(|&x| x as i32).collect();
                    Tensor::vector(&narrow)
                }
                _ => Tensor::vector(splits),
            };
            ctx.set(i, splits)?;
        }
        ctx.set(n, whole.values)
    }))
}

/// Converts gradients in variants to the dense values that were put into the variants. An empty
/// variant means zeros.
fn to_variant_gradient(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("Tvalues")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (encoded, splits) = (ctx.input(0)?, ctx.input(1)?.to_indices()?);
        let dims = ctx.input(2)?;
        ensure!(dims.rank() == 1, InvalidArgument, "dense_values_shape must be a vector");
        let shape = Shape::from_dims(&dims.to_indices()?)?;
        let row = Shape::from(shape.get(1..).unwrap_or_default());
        let mut parts = Vec::with_capacity(encoded.elements());
        for (i, variant) in encoded.variants()?.iter().enumerate() {
            if let Some(ragged) = variant.get::<Ragged>() {
                let values = &ragged.values;
                ensure!(
                    values.dtype() == dtype,
                    InvalidArgument,
                    "Expected values Tensor dtype: {dtype}, found: {}",
                    values.dtype()
                );
                // A row without splits may be a scalar.
                let n = values.elements().checked_div(row.elements()).unwrap_or(0);
                let rows: Shape = [n].iter().chain(row.iter()).copied().collect();
                parts.push(match encoded.rank() {
                    0 => values.clone(),
                    _ => values.reshape(rows)?,
                });
                continue;
            }
            ensure!(
                variant.is_empty(),
                InvalidArgument,
                "Input Variant element doesn't hold a RaggedTensorVariant"
            );
            let n = match (encoded.rank(), splits.get(i), splits.get(i + 1)) {
                (0, ..) => shape.first().copied().unwrap_or(1),
                (_, Some(from), Some(to)) => usize::try_from(to - from).unwrap_or(0),
                _ => bail!(InvalidArgument, "row_splits has no row {i}"),
            };
            let rows: Shape = [n].iter().chain(row.iter()).copied().collect();
            parts.push(Tensor::zeros(dtype, rows)?);
        }
        let values = match &parts[..] {
            [one] => one.clone(),
            parts => concat(dtype, &row, parts.iter())?,
        };
        ensure!(
            values.elements() == shape.elements(),
            InvalidArgument,
            "the gradient has {} values, not those of shape {shape}",
            values.elements()
        );
        let values = values.reshape(shape)?;
        ctx.set(0, values)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RaggedTensorToVariantGradient")
        .doc("The gradient of the values that RaggedTensorToVariant put into variants.")
        .input("encoded_ragged_grad: variant")
        .input("row_splits: Tsplits")
        .input("dense_values_shape: int32")
        .output("dense_values_grad: Tvalues")
        .attr("Tvalues: type")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| Ok(vec![c.shape_from(2)]))
        .cpu(to_variant_gradient);
    c.op("RaggedTensorToVariant")
        .work(work::any)
        .doc("A ragged tensor as a value, or its rows as a vector of values.")
        .input("rt_nested_splits: RAGGED_RANK * Tsplits")
        .input("rt_dense_values: Tvalues")
        .output("encoded_ragged: variant")
        .attr("RAGGED_RANK: int >= 0")
        .attr("Tvalues: type")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .attr("batched_input: bool")
        .shape(|c| {
            let rank = if c.attrs.bool("batched_input")? { 1 } else { 0 };
            Ok(vec![PartialShape::of_rank(rank)])
        })
        .cpu(to_variant);
    c.op("RaggedTensorFromVariant")
        .work(work::any)
        .doc("The ragged tensor that a value holds, or several as the rows of one.")
        .input("encoded_ragged: variant")
        .output("output_nested_splits: output_ragged_rank * Tsplits")
        .output("output_dense_values: Tvalues")
        .attr("input_ragged_rank: int >= -1")
        .attr("output_ragged_rank: int >= 0")
        .attr("Tvalues: type")
        .attr("Tsplits: {int32, int64} = DT_INT64")
        .shape(|c| {
            let mut shapes = vec![PartialShape::of_rank(1); c.outputs];
            if let Some(values) = shapes.last_mut() {
                *values = PartialShape::unknown();
            }
            Ok(shapes)
        })
        .cpu(from_variant);
    c.gradient("RaggedTensorToVariant", |g, dy| {
        let last = g.num_inputs().saturating_sub(1);
        let values = g.input(last);
        let splits = if last == 0 { g.int(0) } else { g.input(0) };
        let attrs = Attrs::new().with("Tvalues", values.dtype());
        let inputs = [dy[0], splits, values.shape()];
        Ok(g.at(last, g.call_with("RaggedTensorToVariantGradient", &inputs, attrs)))
    });
    c.gradient("RaggedTensorFromVariant", |g, dy| {
        let batched = match g.input(0).rank() {
            Some(rank) => rank > 0,
            None => g.attrs().int("output_ragged_rank")? > 0,
        };
        let splits = g.num_outputs().saturating_sub(1);
        let mut inputs: Vec<Term<'_>> = (0..splits).map(|i| g.output(i)).collect();
        inputs.push(dy[splits].dense());
        let attrs = Attrs::new().with("batched_input", batched).with("RAGGED_RANK", splits as i64);
        Ok(vec![g.call_with("RaggedTensorToVariant", &inputs, attrs)])
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn rows_go_into_values_and_come_back() {
        let splits = Tensor::vector(&[0i64, 1, 1, 3]);
        let values = Tensor::vector(&[7i32, 8, 9]);
        let encode = |batched: bool| {
            let op = check("RaggedTensorToVariant").input(splits.clone()).input(values.clone());
            op.attr("batched_input", batched).run().unwrap().remove(0)
        };
        let decode = |encoded: Tensor, rank: i64| {
            let op = check("RaggedTensorFromVariant").input(encoded).attr("Tvalues", DType::Int32);
            op.attr("input_ragged_rank", -1i64).attr("output_ragged_rank", rank).run()
        };
        assert_eq!(decode(encode(false), 1).unwrap(), [splits.clone(), values.clone()]);
        let rows = encode(true);
        assert_eq!(rows.shape().dims(), [3]);
        assert_eq!(decode(rows.clone(), 1).unwrap(), [splits.clone(), values.clone()]);
        assert_eq!(decode(rows, 0).unwrap_err().code(), Code::InvalidArgument);
        check("RaggedTensorToVariant")
            .input(Tensor::vector(&[0i64, 4]))
            .input(values.clone())
            .attr("batched_input", true)
            .fails(Code::InvalidArgument, "Invalid ragged splits");
    }
}
