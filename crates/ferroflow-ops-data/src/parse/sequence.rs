//! ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample: records with features
//! of the whole (the context) and features of every step (feature lists).

use super::example::{Parsed, Record, Wanted, dense_features, set_sparse_and_dense};
use super::features::{
    Dense, Features, Listed, Sparse, Values, features, index_vector, keys_of, steps, values,
};
use crate::prelude::*;
use bytes::Bytes;

/// The requested feature lists.
struct Lists {
    sparse: Vec<Listed>,
    dense: Vec<Dense>,
    ragged: Vec<Listed>,
    /// Which dense lists may be missing, and then have no steps.
    may_miss: Vec<bool>,
}

/// One record: its feature lists, and how errors name it.
struct Sequence<'a> {
    lists: Features<'a>,
    name: String,
}

impl Sequence<'_> {
    /// The values of every step; `None` if the record has no such list.
    fn steps(&self, key: &[u8], dtype: DType) -> Result<Option<Vec<Values>>> {
        let Some(list) = self.lists.get(key) else { return Ok(None) };
        let text = String::from_utf8_lossy(key);
        let malformed = || {
            err!(
                InvalidArgument,
                "Name: {}, Feature list: {text}.  Can't parse serialized SequenceExample.",
                self.name
            )
        };
        let mut all = Vec::new();
        for (i, step) in steps(list).ok_or_else(malformed)?.into_iter().enumerate() {
            let found = values(step).ok_or_else(malformed)?;
            let found = found.unwrap_or_else(|| Values::empty(dtype));
            ensure!(
                found.dtype() == dtype,
                InvalidArgument,
                "Name: {}, Feature list: {text}, Index: {i}.  Data types don't match. Expected \
                 type: {dtype}, Actual type: {}",
                self.name,
                found.dtype()
            );
            all.push(found);
        }
        Ok(Some(all))
    }

    /// The steps of a dense list, each as many values as its shape has.
    fn dense_steps(&self, want: &Dense, may_miss: bool) -> Result<Vec<Values>> {
        let Some(all) = self.steps(&want.key, want.dtype)? else {
            ensure!(
                may_miss,
                InvalidArgument,
                "Name: {}, Feature list '{}' is required but could not be found.  Did you mean to \
                 include it in feature_list_dense_missing_assumed_empty or \
                 feature_list_dense_defaults?",
                self.name,
                want.name()
            );
            return Ok(Vec::new());
        };
        for (i, step) in all.iter().enumerate() {
            ensure!(
                step.len() == want.stride(),
                InvalidArgument,
                "Name: {}, Key: {}, Index: {i}.  Number of values != expected.  values size: {} but \
                 output shape: {}",
                self.name,
                want.name(),
                step.len(),
                want.described()
            );
        }
        Ok(all)
    }
}

fn total(dims: &[usize]) -> Result<usize> {
    Shape::from_dims(&dims.iter().map(|&d| d as i64).collect::<Vec<_>>())?.checked_elements()
}

impl Lists {
    /// The lists of one record, without a batch dimension.
    fn parse_one(&self, record: &Sequence<'_>) -> Result<(Vec<[Tensor; 3]>, Vec<Tensor>)> {
        let (mut sparse, mut dense) = (Vec::new(), Vec::new());
        for want in &self.sparse {
            let all = record.steps(&want.key, want.dtype)?.unwrap_or_default();
            let (mut indices, mut widest) = (Vec::new(), 0);
            let mut values = Values::empty(want.dtype);
            let count = all.len() as i64;
            for (step, list) in all.into_iter().enumerate() {
                widest = std::cmp::max(widest, list.len());
                indices.extend((0..list.len()).flat_map(|i| [step as i64, i as i64]));
                values.append(list);
            }
            let shape = vec![count, widest as i64];
            sparse.push(Sparse { indices, values, shape }.tensors()?);
        }
        for (want, &may_miss) in self.dense.iter().zip(&self.may_miss) {
            let all = record.dense_steps(want, may_miss)?;
            let mut shape = Shape::vector(all.len());
            want.shape.iter().for_each(|&d| shape.push(d));
            let mut values = Values::empty(want.dtype);
            all.into_iter().for_each(|step| values.append(step));
            dense.push(values.into_tensor(shape)?);
        }
        Ok((sparse, dense))
    }

    fn batch_sparse(&self, records: &[Sequence<'_>]) -> Result<Vec<[Tensor; 3]>> {
        let mut out = Vec::new();
        for want in &self.sparse {
            let (mut indices, mut values) = (Vec::new(), Values::empty(want.dtype));
            let (mut longest, mut widest) = (0, 0);
            for (row, record) in records.iter().enumerate() {
                let all = record.steps(&want.key, want.dtype)?.unwrap_or_default();
                longest = std::cmp::max(longest, all.len());
                for (step, list) in all.into_iter().enumerate() {
                    widest = std::cmp::max(widest, list.len());
                    let place = |i: usize| [row as i64, step as i64, i as i64];
                    indices.extend((0..list.len()).flat_map(place));
                    values.append(list);
                }
            }
            let shape = vec![records.len() as i64, longest as i64, widest as i64];
            out.push(Sparse { indices, values, shape }.tensors()?);
        }
        Ok(out)
    }

    /// Dense lists, padded to the longest of the batch; and how long each is.
    fn batch_dense(&self, records: &[Sequence<'_>]) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let (mut dense, mut lengths) = (Vec::new(), Vec::new());
        for (want, &may_miss) in self.dense.iter().zip(&self.may_miss) {
            let mut rows = Vec::new();
            for record in records {
                rows.push(record.dense_steps(want, may_miss)?);
            }
            let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
            lengths.push(Tensor::vector(&rows.iter().map(|r| r.len() as i64).collect::<Vec<_>>()));
            let mut shape = Shape::from([records.len(), longest]);
            want.shape.iter().for_each(|&d| shape.push(d));
            let _counted = Values::count(want.dtype, total(&shape)?)?;
            let mut values = Values::empty(want.dtype);
            for (i, row) in rows.into_iter().enumerate() {
                row.into_iter().for_each(|step| values.append(step));
                values.pad((i + 1) * longest * want.stride(), None);
            }
            dense.push(values.into_tensor(shape)?);
        }
        Ok((dense, lengths))
    }

    /// Ragged lists: values, where records begin among the steps, where steps begin.
    fn batch_ragged(&self, records: &[Sequence<'_>]) -> Result<Vec<(Tensor, Vec<i64>, Vec<i64>)>> {
        let mut out = Vec::new();
        for want in &self.ragged {
            let (mut values, mut outer, mut inner) = (Values::empty(want.dtype), vec![0], vec![0]);
            for record in records {
                for step in record.steps(&want.key, want.dtype)?.unwrap_or_default() {
                    values.append(step);
                    inner.push(values.len() as i64);
                }
                outer.push(inner.len() as i64 - 1);
            }
            let n = values.len();
            out.push((values.into_tensor([n])?, outer, inner));
        }
        Ok(out)
    }
}

/// Types and shapes of all features, from the attributes of any of the ops.
struct Types {
    context_sparse: Vec<DType>,
    context_dense: Vec<DType>,
    context_shapes: Vec<PartialShape>,
    context_ragged: Vec<DType>,
    context_splits: Vec<DType>,
    list_sparse: Vec<DType>,
    list_dense: Vec<DType>,
    list_shapes: Vec<PartialShape>,
    list_ragged: Vec<DType>,
    list_splits: Vec<DType>,
}

impl Types {
    fn new(init: &KernelInit<'_>) -> Result<Types> {
        let types = |name: &str| if init.contains(name) { init.dtypes(name) } else { Ok(vec![]) };
        Ok(Types {
            context_sparse: types("context_sparse_types")?,
            context_dense: types("Tcontext_dense")?,
            context_shapes: init.shapes("context_dense_shapes")?,
            context_ragged: types("context_ragged_value_types")?,
            context_splits: types("context_ragged_split_types")?,
            list_sparse: types("feature_list_sparse_types")?,
            list_dense: types("feature_list_dense_types")?,
            list_shapes: init.shapes("feature_list_dense_shapes")?,
            list_ragged: types("feature_list_ragged_value_types")?,
            list_splits: types("feature_list_ragged_split_types")?,
        })
    }
}

/// The names of all features.
#[derive(Clone, Default)]
struct Keys {
    context_sparse: Vec<Bytes>,
    context_dense: Vec<Bytes>,
    context_ragged: Vec<Bytes>,
    list_sparse: Vec<Bytes>,
    list_dense: Vec<Bytes>,
    list_ragged: Vec<Bytes>,
    may_miss: Vec<bool>,
}

fn listed(keys: &[Bytes], types: &[DType], what: &str) -> Result<Vec<Listed>> {
    ensure!(
        keys.len() == types.len(),
        InvalidArgument,
        "len({what}_keys) != len({what}_types): {} vs. {}",
        keys.len(),
        types.len()
    );
    Ok(keys.iter().zip(types).map(|(key, &dtype)| Listed { key: key.clone(), dtype }).collect())
}

/// The requested features; inputs from `defaults_at` on hold the defaults of dense context
/// features.
fn wanted(ctx: &Ctx<'_>, types: &Types, keys: Keys, defaults_at: usize) -> Result<(Wanted, Lists)> {
    let dense = dense_features(keys.context_dense, &types.context_dense, &types.context_shapes)?;
    let defaults = Wanted::read_defaults(ctx, defaults_at, &dense)?;
    let context = Wanted {
        sparse: listed(&keys.context_sparse, &types.context_sparse, "context_sparse")?,
        dense,
        ragged: listed(&keys.context_ragged, &types.context_ragged, "context_ragged")?,
        defaults,
    };
    ensure!(
        keys.may_miss.len() == keys.list_dense.len(),
        InvalidArgument,
        "Expected len(feature_list_dense_missing_assumed_empty) == len(feature_list_dense_keys)"
    );
    let lists = Lists {
        sparse: listed(&keys.list_sparse, &types.list_sparse, "feature_list_sparse")?,
        dense: dense_features(keys.list_dense, &types.list_dense, &types.list_shapes)?,
        ragged: listed(&keys.list_ragged, &types.list_ragged, "feature_list_ragged")?,
        may_miss: keys.may_miss,
    };
    for want in &lists.dense {
        ensure!(
            !want.is_open,
            InvalidArgument,
            "feature_list_dense_shapes must be known, got {} for {}",
            want.described(),
            want.name()
        );
    }
    Ok((context, lists))
}

/// The parts of a record: context and lists.
fn take_apart<'a>(
    record: &'a [u8],
    name: &str,
    index: usize,
) -> Result<(Record<'a>, Sequence<'a>)> {
    let (Some(context), Some(lists)) = (features(record, 1), features(record, 2)) else {
        bail!(
            InvalidArgument,
            "Name: {name}, Could not parse SequenceExample input, value: '{}'",
            String::from_utf8_lossy(record)
        );
    };
    let record = Record {
        features: context,
        prefix: format!("Name: {name}, "),
        suffix: format!(", Index: {index}"),
    };
    Ok((record, Sequence { lists, name: name.into() }))
}

fn name_of(names: &[Bytes], i: usize) -> String {
    names.get(i).map_or("<unknown>".into(), |n| String::from_utf8_lossy(n).into_owned())
}

fn compute_batch(ctx: &mut Ctx<'_>, types: &Types, keys: Keys, defaults_at: usize) -> Result<()> {
    let (serialized, names) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        serialized.rank() <= 1,
        InvalidArgument,
        "Expected serialized to be a vector, got shape: {}",
        serialized.shape()
    );
    ensure!(
        names.elements() == 0 || names.elements() == serialized.elements(),
        InvalidArgument,
        "Expected len(debug_name) == len(serialized), but got: {} vs. {}",
        names.elements(),
        serialized.elements()
    );
    let (context, lists) = wanted(ctx, types, keys, defaults_at)?;
    let (mut records, mut sequences) = (Vec::new(), Vec::new());
    for (i, record) in serialized.strings()?.iter().enumerate() {
        let (record, sequence) = take_apart(record, &name_of(names.strings()?, i), i)?;
        records.push(record);
        sequences.push(sequence);
    }
    let is_batch = serialized.rank() == 1;
    let Parsed { sparse, dense, ragged } = match is_batch {
        true => context.parse_batch(&records)?,
        false => context.parse_one(&records[0])?,
    };
    let (list_sparse, list_dense, lengths) = if is_batch {
        let (dense, lengths) = lists.batch_dense(&sequences)?;
        (lists.batch_sparse(&sequences)?, dense, lengths)
    } else {
        let (sparse, dense) = lists.parse_one(&sequences[0])?;
        let lengths = dense.iter().map(|t| Tensor::scalar(t.shape()[0] as i64)).collect();
        (sparse, dense, lengths)
    };
    let list_ragged = lists.batch_ragged(&sequences)?;
    let mut at = set_sparse_and_dense(ctx, 0, sparse, dense)?;
    let n = ragged.len();
    for (i, (values, splits)) in ragged.into_iter().enumerate() {
        ctx.set(at + i, values)?;
        ctx.set(at + n + i, index_vector(types.context_splits[i], &splits))?;
    }
    at = set_sparse_and_dense(ctx, at + 2 * n, list_sparse, list_dense)?;
    for t in lengths {
        ctx.set(at, t)?;
        at += 1;
    }
    let n = list_ragged.len();
    for (i, (values, outer, inner)) in list_ragged.into_iter().enumerate() {
        let dtype = types.list_splits[i];
        ctx.set(at + i, values)?;
        let outer = if is_batch { outer } else { Vec::new() };
        ctx.set(at + n + i, index_vector(dtype, &outer))?;
        ctx.set(at + 2 * n + i, index_vector(dtype, &inner))?;
    }
    Ok(())
}

fn batch(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = Types::new(init)?;
    let missing = init.byte_strings("feature_list_dense_missing_assumed_empty")?;
    let list_dense = init.byte_strings("feature_list_dense_keys")?;
    let keys = Keys {
        context_sparse: init.byte_strings("context_sparse_keys")?,
        context_dense: init.byte_strings("context_dense_keys")?,
        list_sparse: init.byte_strings("feature_list_sparse_keys")?,
        may_miss: list_dense.iter().map(|k| missing.contains(k)).collect(),
        list_dense,
        ..Keys::default()
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| compute_batch(ctx, &types, keys.clone(), 2)))
}

fn second(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = Types::new(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let input = |i: usize, name: &str| keys_of(ctx.input(i)?, name);
        let keys = Keys {
            context_sparse: input(2, "context_sparse_keys")?,
            context_dense: input(3, "context_dense_keys")?,
            context_ragged: input(4, "context_ragged_keys")?,
            list_sparse: input(5, "feature_list_sparse_keys")?,
            list_dense: input(6, "feature_list_dense_keys")?,
            list_ragged: input(7, "feature_list_ragged_keys")?,
            may_miss: ctx.input(8)?.as_slice::<bool>()?.to_vec(),
        };
        compute_batch(ctx, &types, keys, 9)
    }))
}

fn single(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = Types::new(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            InvalidArgument,
            "Expected serialized to be a scalar, got shape: {}",
            serialized.shape()
        );
        let missing = keys_of(ctx.input(1)?, "feature_list_dense_missing_assumed_empty")?;
        let mut at = 2;
        let mut keys = |n: usize| -> Result<Vec<Bytes>> {
            at += n;
            (at - n..at).map(|i| Ok(ctx.input(i)?.scalar_string()?.clone())).collect()
        };
        let (context_sparse, context_dense) =
            (keys(types.context_sparse.len())?, keys(types.context_dense.len())?);
        let (list_sparse, list_dense) =
            (keys(types.list_sparse.len())?, keys(types.list_dense.len())?);
        let keys = Keys {
            context_sparse,
            context_dense,
            list_sparse,
            may_miss: list_dense.iter().map(|k| missing.contains(k)).collect(),
            list_dense,
            ..Keys::default()
        };
        let name = ctx.input(at + types.context_dense.len())?;
        let name = match name.elements() {
            0 => "<unknown>".into(),
            _ => String::from_utf8_lossy(&name.strings()?[0]).into_owned(),
        };
        let (context, lists) = wanted(ctx, &types, keys, at)?;
        let (mut record, sequence) = take_apart(serialized.scalar_string()?, &name, 0)?;
        record.suffix.clear();
        let parsed = context.parse_one(&record)?;
        let (sparse, dense) = lists.parse_one(&sequence)?;
        let at = set_sparse_and_dense(ctx, 0, parsed.sparse, parsed.dense)?;
        set_sparse_and_dense(ctx, at, sparse, dense)?;
        Ok(())
    }))
}

/// How many features there are, their types and shapes.
const FEATURE_ATTRS: [&str; 10] = [
    "Ncontext_sparse: int >= 0 = 0",
    "Ncontext_dense: int >= 0 = 0",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    "context_sparse_types: list({float, int64, string}) >= 0 = []",
    "Tcontext_dense: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
];

/// The features of a context.
const CONTEXT: [&str; 4] = [
    "context_sparse_indices: Ncontext_sparse * int64",
    "context_sparse_values: context_sparse_types",
    "context_sparse_shapes: Ncontext_sparse * int64",
    "context_dense_values: Tcontext_dense",
];

/// The features of a sequence.
const FEATURE_LISTS: [&str; 4] = [
    "feature_list_sparse_indices: Nfeature_list_sparse * int64",
    "feature_list_sparse_values: feature_list_sparse_types",
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
    "feature_list_dense_values: feature_list_dense_types",
];

pub(crate) fn register(c: &mut Catalog) {
    c.op("ParseSequenceExample")
        .doc("Features of a batch of SequenceExample records.")
        .input("serialized: string")
        .input("debug_name: string")
        .input("context_dense_defaults: Tcontext_dense")
        .outputs(&CONTEXT)
        .outputs(&FEATURE_LISTS)
        .output("feature_list_dense_lengths: Nfeature_list_dense * int64")
        .attr("feature_list_dense_missing_assumed_empty: list(string) >= 0")
        .attr("context_sparse_keys: list(string) >= 0")
        .attr("context_dense_keys: list(string) >= 0")
        .attr("feature_list_sparse_keys: list(string) >= 0")
        .attr("feature_list_dense_keys: list(string) >= 0")
        .attrs(&FEATURE_ATTRS)
        .shape(shape::unknown)
        .expensive()
        .cpu(batch);
    c.op("ParseSequenceExampleV2")
        .doc("Features of one SequenceExample record or a batch of them.")
        .input("serialized: string")
        .input("debug_name: string")
        .input("context_sparse_keys: string")
        .input("context_dense_keys: string")
        .input("context_ragged_keys: string")
        .input("feature_list_sparse_keys: string")
        .input("feature_list_dense_keys: string")
        .input("feature_list_ragged_keys: string")
        .input("feature_list_dense_missing_assumed_empty: bool")
        .input("context_dense_defaults: Tcontext_dense")
        .outputs(&CONTEXT)
        .output("context_ragged_values: context_ragged_value_types")
        .output("context_ragged_row_splits: context_ragged_split_types")
        .outputs(&FEATURE_LISTS)
        .output("feature_list_dense_lengths: Nfeature_list_dense * int64")
        .output("feature_list_ragged_values: feature_list_ragged_value_types")
        .output("feature_list_ragged_outer_splits: feature_list_ragged_split_types")
        .output("feature_list_ragged_inner_splits: feature_list_ragged_split_types")
        .attr("Ncontext_sparse: int >= 0 = 0")
        .attr("Tcontext_dense: list({float, int64, string}) >= 0 = []")
        .attr("context_sparse_types: list({float, int64, string}) >= 0 = []")
        .attr("context_ragged_value_types: list({float, int64, string}) >= 0 = []")
        .attr("context_ragged_split_types: list({int32, int64}) >= 0 = []")
        .attr("context_dense_shapes: list(shape) >= 0 = []")
        .attr("Nfeature_list_sparse: int >= 0 = 0")
        .attr("Nfeature_list_dense: int >= 0 = 0")
        .attr("feature_list_dense_types: list({float, int64, string}) >= 0 = []")
        .attr("feature_list_sparse_types: list({float, int64, string}) >= 0 = []")
        .attr("feature_list_ragged_value_types: list({float, int64, string}) >= 0 = []")
        .attr("feature_list_ragged_split_types: list({int32, int64}) >= 0 = []")
        .attr("feature_list_dense_shapes: list(shape) >= 0 = []")
        .shape(shape::unknown)
        .expensive()
        .cpu(second);
    c.op("ParseSingleSequenceExample")
        .doc("Features of a SequenceExample record.")
        .input("serialized: string")
        .input("feature_list_dense_missing_assumed_empty: string")
        .input("context_sparse_keys: Ncontext_sparse * string")
        .input("context_dense_keys: Ncontext_dense * string")
        .input("feature_list_sparse_keys: Nfeature_list_sparse * string")
        .input("feature_list_dense_keys: Nfeature_list_dense * string")
        .input("context_dense_defaults: Tcontext_dense")
        .input("debug_name: string")
        .outputs(&CONTEXT)
        .outputs(&FEATURE_LISTS)
        .attrs(&FEATURE_ATTRS)
        .shape(shape::unknown)
        .expensive()
        .cpu(single);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;
    use ferroflow_op_kit::protobuf::Message;

    /// A message with this field.
    fn within(field: u32, m: &Message) -> Message {
        let mut out = Message::new();
        out.message(field, m);
        out
    }

    fn entry(key: &str, value: &Message) -> Message {
        let mut out = Message::new();
        out.bytes(1, key.as_bytes()).message(2, value);
        within(1, &out)
    }

    fn ints(values: &[u8]) -> Message {
        let mut list = Message::new();
        list.bytes(1, values);
        within(3, &list)
    }

    /// `{context: {a: [7]}, lists: {b: [[1, 2], [3, 4]]}}`.
    fn record() -> Tensor {
        let mut steps = Message::new();
        steps.message(1, &ints(&[1, 2])).message(1, &ints(&[3, 4]));
        let mut record = Message::new();
        record.message(1, &entry("a", &ints(&[7]))).message(2, &entry("b", &steps));
        Tensor::string(record.into_bytes())
    }

    fn parse(list: &'static str, width: usize) -> Check<'static> {
        check("ParseSingleSequenceExample")
            .attr("Ncontext_sparse", 0i64)
            .attr("Ncontext_dense", 1i64)
            .attr("Nfeature_list_sparse", 0i64)
            .attr("Nfeature_list_dense", 1i64)
            .attr("Tcontext_dense", vec![DType::Int64])
            .attr("context_dense_shapes", vec![PartialShape::from([1])])
            .attr("feature_list_dense_types", vec![DType::Int64])
            .attr("feature_list_dense_shapes", vec![PartialShape::from([width])])
            .input(record())
            .input(Tensor::from_strings([1], vec![Bytes::from("spare")]).unwrap())
            .input(Tensor::string("a"))
            .input(Tensor::string(list))
            .input(Tensor::vector::<i64>(&[]))
            .input(Tensor::string("r"))
    }

    #[test]
    fn steps_are_stacked() {
        let out = parse("b", 2).run().unwrap();
        assert_eq!(out[0], Tensor::vector(&[7i64]));
        assert_eq!(out[1], Tensor::from_slice([2, 2], &[1i64, 2, 3, 4]).unwrap());
        assert_eq!(parse("spare", 2).run().unwrap()[1].shape().dims(), [0, 2]);
        parse("none", 2).fails(
            Code::InvalidArgument,
            "Name: r, Feature list 'none' is required but could not be found.",
        );
        parse("b", 3).fails(Code::InvalidArgument, "values size: 2 but output shape: [3]");
    }
}
