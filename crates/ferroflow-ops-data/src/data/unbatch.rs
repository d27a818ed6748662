//! Splits batches, or changes their size: UnbatchDataset, RebatchDataset and its V2.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use ferroflow_op_kit::pack::concat;
use std::collections::VecDeque;

/// The number of rows of a batch, which all its components share.
fn rows_of(batch: &[Tensor]) -> Result<usize> {
    let mut rows = None;
    for t in batch {
        let Some(&n) = t.shape().first() else {
            bail!(InvalidArgument, "Input element must have a non-scalar value in each component.");
        };
        ensure!(
            rows.is_none_or(|rows| rows == n),
            InvalidArgument,
            "Input element must have the same batch size in each component. Component 0 had size \
             {} but component {} had size, {n}.",
            rows.unwrap_or(0),
            batch.iter().position(|other| std::ptr::eq(other, t)).unwrap_or(0)
        );
        rows = Some(n);
    }
    Ok(rows.unwrap_or(0))
}

fn cut(batch: &[Tensor], from: usize, n: usize) -> Result<Tuple> {
    batch.iter().map(|t| t.rows(from, n)).collect()
}

struct Unbatch(DatasetRef);

impl Dataset for Unbatch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Unbatching {
            input: self.0.iterate(scope)?,
            batch: vec![],
            rows: 0,
            at: 0,
        }))
    }

    fn cardinality(&self) -> i64 {
        let rows = self.0.types().shapes.first().and_then(|s| s.dim(0));
        match (self.0.cardinality(), rows) {
            (n, _) if n <= 0 => n,
            (n, Some(rows)) => n.saturating_mul(i64::try_from(rows).unwrap_or(i64::MAX)),
            _ => UNKNOWN,
        }
    }
}

struct Unbatching {
    input: Elements,
    batch: Tuple,
    rows: usize,
    at: usize,
}

impl Produce for Unbatching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while self.at == self.rows {
                let Some(batch) = self.input.next().await? else { return Ok(None) };
                self.rows = rows_of(&batch)?;
                (self.batch, self.at) = (batch, 0);
            }
            self.at += 1;
            let row = self.batch.iter().map(|t| t.row(self.at - 1));
            row.collect::<Result<Tuple>>().map(Some)
        })
    }
}

/// Each batch in `parts` parts, as equal as they can be.
struct Divide {
    input: DatasetRef,
    parts: usize,
}

impl Dataset for Divide {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(Dividing { input, parts: self.parts, batch: vec![], rows: 0, part: 0 }))
    }
}

struct Dividing {
    input: Elements,
    parts: usize,
    batch: Tuple,
    rows: usize,
    /// The part that comes next.
    part: usize,
}

impl Produce for Dividing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            if self.part == 0 {
                let Some(batch) = self.input.next().await? else { return Ok(None) };
                self.rows = rows_of(&batch)?;
                self.batch = batch;
            }
            let each = self.rows.div_ceil(self.parts);
            let from = Ord::min(each.saturating_mul(self.part), self.rows);
            let n = Ord::min(each, self.rows - from);
            self.part = (self.part + 1) % self.parts;
            cut(&self.batch, from, n).map(Some)
        })
    }
}

/// Batches of the sizes that `sizes` lists, over and over.
struct Rebatch {
    input: DatasetRef,
    sizes: Arc<Vec<usize>>,
    drop_remainder: bool,
}

impl Dataset for Rebatch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Rebatching {
            input: self.input.iterate(scope)?,
            types: self.input.types().clone(),
            sizes: self.sizes.clone(),
            at: 0,
            drop_remainder: self.drop_remainder,
            pieces: VecDeque::new(),
            held: 0,
        }))
    }
}

struct Rebatching {
    input: Elements,
    types: ElementTypes,
    sizes: Arc<Vec<usize>>,
    at: usize,
    drop_remainder: bool,
    /// Rows not given out yet, and how many they are.
    pieces: VecDeque<(Tuple, usize)>,
    held: usize,
}

impl Produce for Rebatching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let wanted = self.sizes[self.at];
            while self.held < wanted || wanted == 0 && self.pieces.is_empty() {
                let Some(batch) = self.input.next().await? else { break };
                let rows = rows_of(&batch)?;
                if rows > 0 {
                    self.held += rows;
                    self.pieces.push_back((batch, rows));
                }
            }
            if self.pieces.is_empty() || self.held < wanted && self.drop_remainder {
                return Ok(None);
            }
            self.at = (self.at + 1) % self.sizes.len();
            let mut left = Ord::min(wanted, self.held);
            self.held -= left;
            let mut parts: Vec<Tuple> = Vec::new();
            while let Some((batch, rows)) = self.pieces.front_mut() {
                if left == 0 {
                    break;
                }
                let n = Ord::min(left, *rows);
                parts.push(cut(batch, 0, n)?);
                left -= n;
                if n == *rows {
                    self.pieces.pop_front();
                } else {
                    (*batch, *rows) = (cut(batch, n, *rows - n)?, *rows - n);
                }
            }
            if parts.is_empty() {
                // An empty batch is a cut of no rows.
                let front = self.pieces.front();
                let (batch, _) = front.ok_or_else(|| err!(Internal, "no rows to cut"))?;
                parts.push(cut(batch, 0, 0)?);
            }
            joined(&parts, &self.types).map(Some)
        })
    }
}

/// Concatenates batches.
fn joined(parts: &[Tuple], types: &ElementTypes) -> Result<Tuple> {
    if let [one] = parts {
        return Ok(one.clone());
    }
    let all = types.dtypes.iter().enumerate().map(|(i, dtype)| {
        let column: Option<Vec<&Tensor>> = parts.iter().map(|p| p.get(i)).collect();
        let column = column.ok_or_else(|| err!(InvalidArgument, "no component {i}"))?;
        let row = column.first().map(|t| Shape::from(&t.shape()[1..])).unwrap_or_default();
        concat(*dtype, &row, column.into_iter())
    });
    all.collect()
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["UnbatchDataset", "ExperimentalUnbatchDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of the rows of the elements.")
            .input("input_dataset: variant")
            .makes_dataset()
            .element_types()
            .cpu(|init| makes(init, |ctx| Ok(Unbatch(input(ctx, 0)?))));
        if op == "UnbatchDataset" {
            drop(b.metadata_attr());
        }
    }
    for op in ["RebatchDataset", "ExperimentalRebatchDataset"] {
        c.op(op)
            .doc("A dataset of the elements' rows, each element cut into `num_replicas` parts.")
            .input("input_dataset: variant")
            .input("num_replicas: int64")
            .makes_dataset()
            .element_types()
            .attr("use_fallback: bool = true")
            .cpu(|init| {
                makes(init, |ctx| {
                    let parts: i64 = scalar(ctx, 1, "num_replicas")?;
                    ensure!(parts > 0, InvalidArgument, "num_replicas must be greater than zero.");
                    Ok(Divide { input: input(ctx, 0)?, parts: parts as usize })
                })
            });
    }
    c.op("RebatchDatasetV2")
        .doc("A dataset of the elements' rows, in batches of `batch_sizes` over and over.")
        .input("input_dataset: variant")
        .input("batch_sizes: int64")
        .input("drop_remainder: bool")
        .makes_dataset()
        .element_types()
        .cpu(|init| {
            makes(init, |ctx| {
                let sizes = ctx.input(1)?;
                ensure!(
                    sizes.rank() <= 1,
                    InvalidArgument,
                    "`batch_sizes` must be a scalar or a vector."
                );
                let sizes: Result<Vec<usize>> = sizes
                    .to_indices()?
                    .into_iter()
                    .map(|n| {
                        usize::try_from(n)
                            .map_err(|_| err!(InvalidArgument, "batch size {n} must be >= 0"))
                    })
                    .collect();
                let sizes = sizes?;
                ensure!(
                    sizes.iter().any(|&n| n > 0),
                    InvalidArgument,
                    "`batch_sizes` must hold a size greater than zero."
                );
                Ok(Rebatch {
                    input: input(ctx, 0)?,
                    sizes: Arc::new(sizes),
                    drop_remainder: scalar(ctx, 2, "drop_remainder")?,
                })
            })
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;

    fn pairs(n: i64) -> Tensor {
        let op = dataset("BatchDataset", &[DType::Int64]).input(range(n));
        made(op.input(Tensor::scalar(2i64)))
    }

    #[test]
    fn batches_are_taken_apart_and_cut_anew() {
        let unbatched = made(dataset("UnbatchDataset", &[DType::Int64]).input(pairs(3)));
        assert_eq!(longs(&unbatched), [[0], [1], [2]]);
        let cut = |sizes: &[i64], drop_remainder: bool| {
            let op = dataset("RebatchDatasetV2", &[DType::Int64]).input(pairs(7));
            let op = op.input(Tensor::vector(sizes)).input(Tensor::scalar(drop_remainder));
            longs(&made(op))
        };
        assert_eq!(cut(&[3], false), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(cut(&[3], true), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(
            cut(&[1, 0, 4], false),
            [vec![0], vec![], vec![1, 2, 3, 4], vec![5], vec![], vec![6]]
        );
        let op = dataset("RebatchDataset", &[DType::Int64]).input(pairs(3));
        let parts = longs(&made(op.input(Tensor::scalar(2i64))));
        assert_eq!(parts, [vec![0], vec![1], vec![2], vec![]]);
        let e = elements(&made(dataset("UnbatchDataset", &[DType::Int64]).input(range(1))));
        assert!(e.unwrap_err().message().contains("non-scalar value in each component"));
    }
}
