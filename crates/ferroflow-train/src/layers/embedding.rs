//! Embeddings: rows of a trained table, looked up by id.

use crate::init;
use crate::output::Output;
use crate::variable::{PartitionedVariable, Variable};
use crate::variable_scope::Reuse;
use ferroflow_core::DType;

/// How the rows of a partitioned table are distributed over its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionStrategy {
    /// Row `i` is row `i / parts` of part `i % parts`.
    Mod,
    /// The first part has the first rows, and so on: what [`PartitionedVariable`] and checkpoints
    /// mean.
    #[default]
    Div,
}

/// Looks up `ids` in a trained table of `rows` by `width`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::embedding;
/// let words = g.placeholder::<i64>("words", [None, Some(7)]);
/// let vectors = embedding("words/table", &words, 10_000, 16);
/// assert_eq!(vectors.shape().to_string(), "[?,7,16]");
/// ```
#[track_caller]
pub fn embedding(name: &str, ids: &Output, rows: usize, width: usize) -> Output {
    let g = ids.graph();
    g.variable_scope(name, Reuse::No, || {
        let limit = 0.05;
        let table: Variable =
            g.get_variable("embeddings", init::uniform([rows, width], -limit, limit));
        table.gather(ids)
    })
}

/// Looks up rows of a partitioned table, whose parts may be on several servers. Each part is asked
/// only for its own rows.
#[track_caller]
pub fn embedding_lookup(
    table: &PartitionedVariable,
    ids: &Output,
    strategy: PartitionStrategy,
) -> Output {
    let g = ids.graph();
    let parts = table.parts();
    if let [one] = parts {
        return one.gather(ids);
    }
    g.name_scope("embedding_lookup", |_| {
        let n = parts.len();
        // Row ids may be larger than the integers that an `f32` holds exactly.
        let flat = ids.reshape([None]).cast(DType::Int64);
        let number = |x: usize| g.constant(i64::try_from(x).unwrap_or(i64::MAX));
        let (part, row) = match strategy {
            PartitionStrategy::Mod => (&flat % number(n), &flat / number(n)),
            PartitionStrategy::Div => {
                let rows: usize =
                    parts.iter().map(|p| p.variable_shape().dim(0).unwrap_or(0)).sum();
                // The first `extras` parts have a row more than the others.
                let (each, extras) = (rows / n, rows % n);
                let (long, short) = (number(each.saturating_add(1)), number(each.max(1)));
                let limit = number(extras.saturating_mul(each.saturating_add(1)));
                let is_long = flat.less(&limit);
                let after = &flat - &limit;
                let part = is_long.select(&flat / &long, &after / &short + number(extras));
                (part, is_long.select(&flat % &long, &after % &short))
            }
        };
        let part = part.cast(DType::Int32);
        let positions = g.range(0, flat.dim(0), 1);
        let dealt = |x: &Output| {
            let op = g.op("DynamicPartition").input(x).input(&part);
            op.attr("num_partitions", n as i64).count_of_outputs(n)
        };
        let (rows, positions) = (dealt(&row), dealt(&positions));
        let found: Vec<Output> = parts.iter().zip(&rows).map(|(p, r)| p.gather(r)).collect();
        let joined = g.op("DynamicStitch").list(&positions).list(&found).output();
        let width = parts[0].variable_shape().dims().map(|d| d[1..].to_vec()).unwrap_or_default();
        let tail = g.constant(width.iter().map(|d| d.unwrap_or(0) as i32).collect::<Vec<_>>());
        let result = joined.reshape(g.concat(&[ids.shape_op(), tail], 0));
        if let Some(dims) = ids.shape().dims() {
            let dims = dims.iter().chain(&width).copied();
            result.set_shape(ferroflow_core::PartialShape::new(dims));
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{floats, graph, initialized};
    use ferroflow_core::Tensor;

    #[test]
    fn rows_of_parts_are_found_whatever_the_strategy() {
        let g = graph();
        let table = g.partitioned_variable("t", init::zeros([7, 1]), 3);
        // Part sizes are 3, 2, 2: `div` numbers them through, `mod` deals them out.
        let values: [&[f32]; 3] = [&[0.0, 1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]];
        let assign: Vec<_> = table
            .parts()
            .iter()
            .zip(values)
            .map(|(p, v)| p.assign(Tensor::from_slice([v.len(), 1], v).unwrap()))
            .collect();
        let ids = g.constant([[6, 0], [3, 5]]);
        let div = embedding_lookup(&table, &ids, PartitionStrategy::Div);
        let modulo = embedding_lookup(&table, &ids, PartitionStrategy::Mod);
        assert_eq!(div.shape().to_string(), "[2,2,1]");
        let s = initialized(&g).unwrap();
        s.run(&assign).unwrap();
        let (div, modulo) = s.run((&div, &modulo)).unwrap();
        assert_eq!(floats(&div), [6.0, 0.0, 3.0, 5.0]);
        assert_eq!(floats(&modulo), [2.0, 0.0, 1.0, 6.0]);
    }
}
