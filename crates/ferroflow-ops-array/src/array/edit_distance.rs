//! EditDistance.

use super::walk::by_width;
use crate::prelude::*;
use std::collections::BTreeMap;

/// A sparse tensor, with its values grouped by all indices but the last.
struct Sequences {
    shape: Vec<i64>,
    groups: BTreeMap<Vec<i64>, Vec<usize>>,
}

fn sequences(ctx: &Ctx<'_>, at: usize, name: &str) -> Result<Sequences> {
    let (indices, values, shape) = (ctx.input(at)?, ctx.input(at + 1)?, ctx.input(at + 2)?);
    for (t, rank, part, what) in [
        (indices, 2, "indices", "matrix"),
        (values, 1, "values", "vector"),
        (shape, 1, "shape", "vector"),
    ] {
        ensure!(
            t.rank() == rank,
            InvalidArgument,
            "{name}_{part} should be a {what}, but got shape: {}",
            t.shape()
        );
    }
    ensure!(
        values.elements() == indices.shape()[0],
        InvalidArgument,
        "Expected {name}_values.NumElements == #rows({name}_indices), their shapes are: {} and {}",
        values.shape(),
        indices.shape()
    );
    ensure!(
        shape.elements() == indices.shape()[1],
        InvalidArgument,
        "Expected {name}_shape.NumElements == #cols({name}_indices), their shapes are: {} and {}",
        shape.shape(),
        indices.shape()
    );
    ensure!(
        shape.elements() >= 2,
        InvalidArgument,
        "Input SparseTensors must have rank at least 2, but {name}_shape rank is: {}",
        shape.elements()
    );
    let rank = shape.elements();
    let mut groups: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for (i, index) in indices.as_slice::<i64>()?.chunks_exact(rank).enumerate() {
        groups.entry(index[..rank - 1].to_vec()).or_default().push(i);
    }
    Ok(Sequences { shape: shape.to_indices()?, groups })
}

/// The number of insertions, deletions and replacements that turn `a` into `b`.
fn distance<T: PartialEq>(a: &[&T], b: &[&T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn between<T: PartialEq>(hypothesis: &[T], truth: &[T], h: &[usize], t: &[usize]) -> usize {
    let h: Vec<&T> = h.iter().filter_map(|&i| hypothesis.get(i)).collect();
    let t: Vec<&T> = t.iter().filter_map(|&i| truth.get(i)).collect();
    distance(&h, &t)
}

fn edit_distance(init: &KernelInit<'_>) -> Result<KernelBox> {
    let normalize = init.bool("normalize")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let truth = sequences(ctx, 3, "truth")?;
        let hypothesis = sequences(ctx, 0, "hypothesis")?;
        ensure!(
            truth.shape.len() == hypothesis.shape.len(),
            InvalidArgument,
            "Expected truth and hypothesis to have matching ranks, but got: {} and {}",
            truth.shape.len(),
            hypothesis.shape.len()
        );
        let groups = truth.shape.len() - 1;
        let dims: Vec<i64> = truth.shape[..groups]
            .iter()
            .zip(&hypothesis.shape)
            .map(|(&a, &b)| if a < 0 || b < 0 { Ord::min(a, b) } else { Ord::max(a, b) })
            .collect();
        let shape = super::args::to_shape(&dims)?;
        let mut out = Tensor::zeros(DType::Float, shape.clone())?;
        let distances = out.as_mut_slice::<f32>()?;
        let strides = shape.strides();
        let (hv, tv) = (ctx.input(1)?, ctx.input(4)?);
        let none = Vec::new();
        for group in hypothesis.groups.keys().chain(truth.groups.keys()) {
            let inside = group.iter().zip(shape.iter()).all(|(&g, &d)| 0 <= g && g < d as i64);
            let at: i128 = group.iter().zip(&strides).map(|(&g, &s)| g as i128 * s as i128).sum();
            ensure!(
                inside,
                Internal,
                "Got an inner product {at} which would require writing to outside of the buffer \
                 for the output tensor (max elements {})",
                shape.elements()
            );
            let h = hypothesis.groups.get(group).unwrap_or(&none);
            let t = truth.groups.get(group).unwrap_or(&none);
            let edits = edits(hv, tv, h, t)? as f32;
            distances[at as usize] = match (normalize, t.len()) {
                (false, _) => edits,
                (true, 0) if edits > 0.0 => f32::INFINITY,
                (true, n) => edits / n.max(1) as f32,
            };
        }
        ctx.set(0, out)
    }))
}

/// [`between`] for tensors. Floats compare as numbers, all other types by their bytes.
fn edits(hypothesis: &Tensor, truth: &Tensor, h: &[usize], t: &[usize]) -> Result<usize> {
    macro_rules! typed {
        ($t:ty) => {
            between(hypothesis.as_slice::<$t>()?, truth.as_slice::<$t>()?, h, t)
        };
    }
    Ok(match hypothesis.dtype() {
        DType::Float => typed!(f32),
        DType::Double => typed!(f64),
        DType::Half => typed!(f16),
        DType::BFloat16 => typed!(bf16),
        dtype => by_width!(dtype, W => between(W::of(hypothesis)?, W::of(truth)?, h, t)),
    })
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("EditDistance")
        .work(work::any)
        .doc("How many edits turn each hypothesis sequence into the true one.")
        .input("hypothesis_indices: int64")
        .input("hypothesis_values: T")
        .input("hypothesis_shape: int64")
        .input("truth_indices: int64")
        .input("truth_values: T")
        .input("truth_shape: int64")
        .output("output: float")
        .attr("normalize: bool = true")
        .attr("T: type")
        .shape(|c| {
            let rank = c.input(2).dim(0).or(c.input(5).dim(0));
            let groups = rank.and_then(|r| r.checked_sub(1)).filter(|&r| r <= 254);
            Ok(vec![groups.map_or(PartialShape::unknown(), PartialShape::of_rank)])
        })
        .cpu(edit_distance);
    c.no_gradient(&["EditDistance"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    type Sparse<'a> = (&'a [[i64; 2]], &'a [i32], &'a [i64]);

    fn edit(hypothesis: Sparse<'_>, truth: Sparse<'_>) -> Check<'static> {
        [hypothesis, truth].into_iter().fold(
            check("EditDistance"),
            |c, (indices, values, shape)| {
                c.input(Tensor::from_slice([indices.len(), 2], &indices.concat()).unwrap())
                    .input(Tensor::vector(values))
                    .input(Tensor::vector(shape))
            },
        )
    }

    #[test]
    fn edits_are_counted_by_group() {
        let truth: Sparse<'_> = (&[[0, 0], [0, 1], [0, 2]], &[1, 5, 2], &[2, 3]);
        edit((&[[0, 0], [0, 1]], &[1, 2], &[2, 2]), truth)
            .attr("normalize", false)
            .gives(Tensor::vector(&[1.0f32, 0.0]));
        edit((&[[0, 0], [1, 1]], &[1, 2], &[2, 2]), truth)
            .gives(Tensor::vector(&[2.0f32 / 3.0, f32::INFINITY]));
        edit((&[], &[], &[1, 2]), (&[[0, 0]], &[1], &[1, 3])).gives(Tensor::vector(&[1.0f32]));
        edit((&[[0, 0], [1, 1]], &[1, 2], &[3, 2]), (&[[1, 0]], &[1], &[2, 3]))
            .attr("normalize", false)
            .gives(Tensor::vector(&[1.0f32, 1.0, 0.0]));
    }

    #[test]
    fn malformed_sequences_are_refused() {
        let good: Sparse<'_> = (&[[0, 0]], &[1], &[1, 3]);
        let fails = |h: Sparse<'_>, code, text: &str| edit(h, good).fails(code, text);
        let invalid = Code::InvalidArgument;
        fails(
            (&[[0, 0]], &[1, 2], &[1, 2]),
            invalid,
            "Expected hypothesis_values.NumElements == #rows(hypothesis_indices), their shapes are: [2] and [1,2]",
        );
        fails(
            (&[[0, 0]], &[1], &[1, 2, 3]),
            invalid,
            "Expected hypothesis_shape.NumElements == #cols",
        );
        fails((&[[0, 0]], &[1], &[-1, 2]), invalid, "Dimension -1 must be >= 0");
        fails(
            (&[[5, 0]], &[1], &[1, 2]),
            Code::Internal,
            "Got an inner product 5 which would require",
        );
        fails((&[[i64::MIN, 0]], &[1], &[1, 2]), Code::Internal, "Got an inner product");
    }
}
