//! ParseExample, ParseExampleV2, ParseSingleExample.

use super::features::{
    Dense, Features, Listed, Sparse, Values, features, index_vector, keys_of, values,
};
use crate::prelude::*;
use bytes::Bytes;

/// The requested features of each record.
pub(crate) struct Wanted {
    pub sparse: Vec<Listed>,
    pub dense: Vec<Dense>,
    pub ragged: Vec<Listed>,
    /// For open dense features the padding, for others the value of records without it.
    pub defaults: Vec<Values>,
}

/// The results: sparse, dense or ragged for each requested feature.
pub(crate) struct Parsed {
    pub sparse: Vec<[Tensor; 3]>,
    pub dense: Vec<Tensor>,
    pub ragged: Vec<(Tensor, Vec<i64>)>,
}

/// A record's features, and how errors name it.
pub(crate) struct Record<'a> {
    pub features: Features<'a>,
    /// `Name: x, `, or nothing.
    pub prefix: String,
    /// `, Index: 3`, or nothing.
    pub suffix: String,
}

impl Record<'_> {
    /// The values of a feature; `None` if the record does not have it.
    fn values(&self, key: &[u8]) -> Result<Option<Values>> {
        let Some(feature) = self.features.get(key) else { return Ok(None) };
        values(feature).ok_or_else(|| {
            let key = String::from_utf8_lossy(key);
            err!(
                InvalidArgument,
                "{}Key: {key}{}.  Can't parse serialized Example.",
                self.prefix,
                self.suffix
            )
        })
    }

    /// The values of a feature wanted as a list: none where it is missing.
    fn list(&self, want: &Listed) -> Result<Values> {
        match self.values(&want.key)? {
            None => Ok(Values::empty(want.dtype)),
            Some(v) if v.dtype() == want.dtype => Ok(v),
            Some(v) => bail!(
                InvalidArgument,
                "{}Key: {}{}.  Data types don't match. Expected type: {}, Actual type: {}",
                self.prefix,
                want.name(),
                self.suffix,
                want.dtype,
                v.dtype()
            ),
        }
    }

    /// The values of a dense feature: as many as its shape has, or a multiple where it is open.
    fn dense(&self, want: &Dense, default: &Values) -> Result<Values> {
        let Some(v) = self.values(&want.key)? else {
            if want.is_open {
                return Ok(Values::empty(want.dtype));
            }
            ensure!(
                default.len() > 0,
                InvalidArgument,
                "{}Feature: {} (data type: {}) is required but could not be found.",
                self.prefix,
                want.name(),
                want.dtype
            );
            return Ok(default.clone());
        };
        ensure!(
            v.dtype() == want.dtype,
            InvalidArgument,
            "{}Key: {}{}.  Data types don't match. Data type: {} but expected type: {}",
            self.prefix,
            want.name(),
            self.suffix,
            v.dtype(),
            want.dtype
        );
        let stride = want.stride();
        if want.is_open {
            ensure!(
                stride > 0 && v.len() % stride == 0,
                InvalidArgument,
                "{}Key: {}{}.  Number of {} values is not a multiple of stride length. Values size: \
                 {} but output shape: {}",
                self.prefix,
                want.name(),
                self.suffix,
                want.dtype,
                v.len(),
                want.described()
            );
        } else {
            ensure!(
                v.len() == stride,
                InvalidArgument,
                "{}Key: {}{}.  Number of {} values != expected.  Values size: {} but output shape: \
                 {}",
                self.prefix,
                want.name(),
                self.suffix,
                want.dtype,
                v.len(),
                want.described()
            );
        }
        Ok(v)
    }
}

impl Wanted {
    /// The defaults in inputs from `at` on, which must fit the shapes of the dense features.
    pub fn read_defaults(ctx: &Ctx<'_>, at: usize, dense: &[Dense]) -> Result<Vec<Values>> {
        let mut defaults = Vec::new();
        for (i, want) in dense.iter().enumerate() {
            let t = ctx.input(at + i)?;
            ensure!(
                t.dtype() == want.dtype,
                InvalidArgument,
                "dense_defaults[{i}].dtype() == {} != dense_types_[{i}] == {}",
                t.dtype(),
                want.dtype
            );
            if want.is_open {
                ensure!(
                    t.elements() == 1,
                    InvalidArgument,
                    "dense_shape[{i}] is a variable length shape: {}, therefore def_value[{i}] must \
                     contain a single element (the padding element).  But its shape is: {}",
                    want.described(),
                    t.shape()
                );
            } else {
                ensure!(
                    t.elements() == 0 || t.shape() == &want.shape,
                    InvalidArgument,
                    "def_value[{i}].shape() == {} is not compatible with dense_shapes_[{i}] == {}",
                    t.shape(),
                    want.described()
                );
            }
            defaults.push(Values::of(t)?);
        }
        Ok(defaults)
    }

    /// A batch of records.
    pub fn parse_batch(&self, records: &[Record<'_>]) -> Result<Parsed> {
        let n = records.len();
        let mut parsed = Parsed { sparse: vec![], dense: vec![], ragged: vec![] };
        for want in &self.sparse {
            let (mut indices, mut all, mut widest) = (Vec::new(), Values::empty(want.dtype), 0);
            for (row, record) in records.iter().enumerate() {
                let list = record.list(want)?;
                widest = std::cmp::max(widest, list.len());
                indices.extend((0..list.len()).flat_map(|i| [row as i64, i as i64]));
                all.append(list);
            }
            let shape = vec![n as i64, widest as i64];
            parsed.sparse.push(Sparse { indices, values: all, shape }.tensors()?);
        }
        for (want, default) in self.dense.iter().zip(&self.defaults) {
            let mut rows = Vec::with_capacity(n);
            for record in records {
                rows.push(record.dense(want, default)?);
            }
            let width = match want.is_open {
                true => rows.iter().map(Values::len).max().unwrap_or(0),
                false => want.stride(),
            };
            // Records without the feature are padded to the widest one.
            let _counted = Values::count(want.dtype, n.saturating_mul(width))?;
            let mut all = Values::empty(want.dtype);
            for (i, row) in rows.into_iter().enumerate() {
                all.append(row);
                all.pad((i + 1) * width, Some(default));
            }
            let mut shape = Shape::vector(n);
            if want.is_open {
                shape.push(width.checked_div(want.stride()).unwrap_or(0));
            }
            want.shape.iter().for_each(|&d| shape.push(d));
            parsed.dense.push(all.into_tensor(shape)?);
        }
        for want in &self.ragged {
            let (mut all, mut splits) = (Values::empty(want.dtype), vec![0]);
            for record in records {
                all.append(record.list(want)?);
                splits.push(all.len() as i64);
            }
            let len = all.len();
            parsed.ragged.push((all.into_tensor([len])?, splits));
        }
        Ok(parsed)
    }

    /// A single record, without a batch dimension.
    pub fn parse_one(&self, record: &Record<'_>) -> Result<Parsed> {
        let mut parsed = Parsed { sparse: vec![], dense: vec![], ragged: vec![] };
        for want in &self.sparse {
            let list = record.list(want)?;
            let n = list.len() as i64;
            let indices = (0..n).collect();
            parsed.sparse.push(Sparse { indices, values: list, shape: vec![n] }.tensors()?);
        }
        for (want, default) in self.dense.iter().zip(&self.defaults) {
            let list = record.dense(want, default)?;
            let mut shape = Shape::scalar();
            if want.is_open {
                shape.push(list.len().checked_div(want.stride()).unwrap_or(0));
            }
            want.shape.iter().for_each(|&d| shape.push(d));
            parsed.dense.push(list.into_tensor(shape)?);
        }
        for want in &self.ragged {
            let list = record.list(want)?;
            let len = list.len();
            parsed.ragged.push((list.into_tensor([len])?, vec![]));
        }
        Ok(parsed)
    }
}

/// Sets sparse and dense outputs from output `at` on, in the order all of these ops have; gives
/// the number behind them.
pub(crate) fn set_sparse_and_dense(
    ctx: &mut Ctx<'_>,
    at: usize,
    sparse: Vec<[Tensor; 3]>,
    dense: Vec<Tensor>,
) -> Result<usize> {
    let n = sparse.len();
    for (i, parts) in sparse.into_iter().enumerate() {
        for (k, t) in parts.into_iter().enumerate() {
            ctx.set(at + k * n + i, t)?;
        }
    }
    let first = at + 3 * n;
    let count = dense.len();
    for (i, t) in dense.into_iter().enumerate() {
        ctx.set(first + i, t)?;
    }
    Ok(first + count)
}

/// The features of Example records, named for errors.
pub(crate) fn records<'a>(serialized: &'a [Bytes], names: &[Bytes]) -> Result<Vec<Record<'a>>> {
    let one = |(i, record): (usize, &'a Bytes)| {
        let name = names.get(i).map_or("<unknown>".into(), |n| String::from_utf8_lossy(n));
        let Some(features) = features(record, 1) else {
            bail!(
                InvalidArgument,
                "Could not parse example input, value: '{}'",
                String::from_utf8_lossy(record)
            );
        };
        Ok(Record { features, prefix: format!("Name: {name}, "), suffix: format!(", Index: {i}") })
    };
    serialized.iter().enumerate().map(one).collect()
}

pub(crate) fn listed(keys: Vec<Bytes>, types: &[DType]) -> Vec<Listed> {
    keys.into_iter().zip(types).map(|(key, &dtype)| Listed { key, dtype }).collect()
}

pub(crate) fn dense_features(
    keys: Vec<Bytes>,
    types: &[DType],
    shapes: &[PartialShape],
) -> Result<Vec<Dense>> {
    ensure!(
        keys.len() == types.len() && types.len() == shapes.len(),
        InvalidArgument,
        "len(dense_keys) != len(dense_types) != len(dense_shapes): {} vs. {} vs. {}",
        keys.len(),
        types.len(),
        shapes.len()
    );
    let all = keys.into_iter().zip(types).zip(shapes);
    all.map(|((key, &dtype), shape)| Dense::new(key, dtype, shape)).collect()
}

struct ParseExample {
    sparse_types: Vec<DType>,
    dense_types: Vec<DType>,
    dense_shapes: Vec<PartialShape>,
    ragged_types: Vec<DType>,
    split_types: Vec<DType>,
    /// The second version has keys in vectors, and takes single records too.
    is_second: bool,
}

impl ParseExample {
    fn new(init: &KernelInit<'_>, is_second: bool) -> Result<ParseExample> {
        let ragged = |name: &str| if is_second { init.dtypes(name) } else { Ok(Vec::new()) };
        Ok(ParseExample {
            sparse_types: init.dtypes("sparse_types")?,
            dense_types: init.dtypes("Tdense")?,
            dense_shapes: init.shapes("dense_shapes")?,
            ragged_types: ragged("ragged_value_types")?,
            split_types: ragged("ragged_split_types")?,
            is_second,
        })
    }

    fn wanted(&self, ctx: &Ctx<'_>) -> Result<Wanted> {
        let (sparse, dense, ragged, at) = if self.is_second {
            let keys = |i: usize, name: &str| keys_of(ctx.input(i)?, name);
            (keys(2, "sparse_keys")?, keys(3, "dense_keys")?, keys(4, "ragged_keys")?, 5)
        } else {
            let (s, d) = (self.sparse_types.len(), self.dense_types.len());
            let key = |i: usize| -> Result<Bytes> {
                let t = ctx.input(i)?;
                ensure!(
                    t.elements() == 1,
                    InvalidArgument,
                    "Expected key {} to be a scalar, got shape: {}",
                    i - 2,
                    t.shape()
                );
                Ok(t.strings()?[0].clone())
            };
            let range =
                |from: usize, n: usize| (from..from + n).map(key).collect::<Result<Vec<_>>>();
            (range(2, s)?, range(2 + s, d)?, Vec::new(), 2 + s + d)
        };
        ensure!(
            sparse.len() == self.sparse_types.len() && ragged.len() == self.ragged_types.len(),
            InvalidArgument,
            "the number of keys does not match the number of types"
        );
        let dense = dense_features(dense, &self.dense_types, &self.dense_shapes)?;
        let defaults = Wanted::read_defaults(ctx, at, &dense)?;
        Ok(Wanted {
            sparse: listed(sparse, &self.sparse_types),
            dense,
            ragged: listed(ragged, &self.ragged_types),
            defaults,
        })
    }
}

impl Kernel for ParseExample {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (serialized, names) = (ctx.input(0)?, ctx.input(1)?);
        let wanted = self.wanted(ctx)?;
        let parsed = if self.is_second && serialized.rank() == 0 {
            let Some(features) = features(serialized.scalar_string()?, 1) else {
                bail!(InvalidArgument, "Could not parse example input");
            };
            wanted.parse_one(&Record { features, prefix: String::new(), suffix: String::new() })?
        } else {
            ensure!(
                serialized.rank() == 1,
                InvalidArgument,
                "Expected serialized to be a vector, got shape: {}",
                serialized.shape()
            );
            ensure!(
                names.elements() == 0 || names.shape() == serialized.shape(),
                InvalidArgument,
                "Expected names have the same shape as serialized: name.shape={}, \
                 serialized.shape={}",
                names.shape(),
                serialized.shape()
            );
            wanted.parse_batch(&records(serialized.strings()?, names.strings()?)?)?
        };
        let next = set_sparse_and_dense(ctx, 0, parsed.sparse, parsed.dense)?;
        let n = parsed.ragged.len();
        for (i, (values, splits)) in parsed.ragged.into_iter().enumerate() {
            ctx.set(next + i, values)?;
            let dtype = self.split_types.get(i).copied().unwrap_or(DType::Int64);
            ctx.set(next + n + i, index_vector(dtype, &splits))?;
        }
        Ok(())
    }
}

fn single(init: &KernelInit<'_>) -> Result<KernelBox> {
    let sparse = listed(init.byte_strings("sparse_keys")?, &init.dtypes("sparse_types")?);
    let dense = dense_features(
        init.byte_strings("dense_keys")?,
        &init.dtypes("Tdense")?,
        &init.shapes("dense_shapes")?,
    )?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            InvalidArgument,
            "Expected serialized to be a scalar, got shape: {}",
            serialized.shape()
        );
        let defaults = Wanted::read_defaults(ctx, 1, &dense)?;
        let wanted =
            Wanted { sparse: sparse.clone(), dense: dense.clone(), ragged: vec![], defaults };
        let Some(features) = features(serialized.scalar_string()?, 1) else {
            bail!(InvalidArgument, "Can't parse serialized Example.");
        };
        let record = Record { features, prefix: String::new(), suffix: String::new() };
        let parsed = wanted.parse_one(&record)?;
        set_sparse_and_dense(ctx, 0, parsed.sparse, parsed.dense)?;
        Ok(())
    }))
}

/// Shapes of the outputs of a batch: `sparse` sparse tensors of `rank` dimensions, then dense ones.
fn batch_shapes(c: &ShapeCtx<'_>, sparse: usize, lead: &PartialShape) -> Result<Vec<PartialShape>> {
    let rank = lead.rank().map(|r| r + 1);
    let mut shapes = vec![PartialShape::new([None, rank]); sparse];
    shapes.extend(std::iter::repeat_n(PartialShape::of_rank(1), sparse));
    shapes.extend(std::iter::repeat_n(PartialShape::new([rank]), sparse));
    for shape in c.attrs.shapes("dense_shapes")? {
        shapes.push(match (lead.dims(), shape.dims()) {
            (Some(lead), Some(dims)) => PartialShape::new(lead.iter().chain(dims).copied()),
            _ => PartialShape::unknown(),
        });
    }
    shapes.resize(c.outputs, PartialShape::of_rank(1));
    Ok(shapes)
}

/// The values of sparse and dense features.
const FEATURES: [&str; 4] = [
    "sparse_indices: num_sparse * int64",
    "sparse_values: sparse_types",
    "sparse_shapes: num_sparse * int64",
    "dense_values: Tdense",
];

pub(crate) fn register(c: &mut Catalog) {
    c.op("ParseExample")
        .doc("Features of a batch of Example records.")
        .input("serialized: string")
        .input("names: string")
        .input("sparse_keys: Nsparse * string")
        .input("dense_keys: Ndense * string")
        .input("dense_defaults: Tdense")
        .output("sparse_indices: Nsparse * int64")
        .output("sparse_values: sparse_types")
        .output("sparse_shapes: Nsparse * int64")
        .output("dense_values: Tdense")
        .attr("Nsparse: int >= 0")
        .attr("Ndense: int >= 0")
        .attr("sparse_types: list({float, int64, string}) >= 0")
        .attr("Tdense: list({float, int64, string}) >= 0")
        .attr("dense_shapes: list(shape) >= 0")
        .shape(|c| batch_shapes(c, c.attrs.dtypes("sparse_types")?.len(), &c.input(0)))
        .expensive()
        .cpu(|init| Ok(KernelBox::new(ParseExample::new(init, false)?)));
    c.op("ParseExampleV2")
        .doc("Features of one Example record or a batch of them.")
        .input("serialized: string")
        .input("names: string")
        .input("sparse_keys: string")
        .input("dense_keys: string")
        .input("ragged_keys: string")
        .input("dense_defaults: Tdense")
        .outputs(&FEATURES)
        .output("ragged_values: ragged_value_types")
        .output("ragged_row_splits: ragged_split_types")
        .attr("Tdense: list({float, int64, string}) >= 0")
        .attr("num_sparse: int >= 0")
        .attr("sparse_types: list({float, int64, string}) >= 0")
        .attr("ragged_value_types: list({float, int64, string}) >= 0")
        .attr("ragged_split_types: list({int32, int64}) >= 0")
        .attr("dense_shapes: list(shape) >= 0")
        .shape(|c| batch_shapes(c, c.attrs.dtypes("sparse_types")?.len(), &c.input(0)))
        .expensive()
        .cpu(|init| Ok(KernelBox::new(ParseExample::new(init, true)?)));
    c.op("ParseSingleExample")
        .doc("Features of an Example record.")
        .input("serialized: string")
        .input("dense_defaults: Tdense")
        .outputs(&FEATURES)
        .attr("num_sparse: int >= 0")
        .attr("sparse_keys: list(string) >= 0")
        .attr("dense_keys: list(string) >= 0")
        .attr("sparse_types: list({float, int64, string}) >= 0")
        .attr("Tdense: list({float, int64, string}) >= 0")
        .attr("dense_shapes: list(shape) >= 0")
        .shape(|c| batch_shapes(c, c.attrs.dtypes("sparse_types")?.len(), &PartialShape::scalar()))
        .expensive()
        .cpu(single);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use bytes::Bytes;
    use ferroflow_graph::AttrList;

    /// `{a: floats [1, 2], b: ints [5], c: strings ["x", "y"]}`.
    const FULL: &[u8] =
        b"\n.\n\r\n\x01c\x12\x08\n\x06\n\x01x\n\x01y\n\n\n\x01b\x12\x05\x1a\x03\n\x01\x05\n\
        \x11\n\x01a\x12\x0c\x12\n\n\x08\x00\x00\x80?\x00\x00\x00@";
    /// `{a: floats [3, 4]}`.
    const SHORT: &[u8] = b"\n\x13\n\x11\n\x01a\x12\x0c\x12\n\n\x08\x00\x00@@\x00\x00\x80@";

    fn strings(values: &[&'static [u8]]) -> Tensor {
        let values: Vec<Bytes> = values.iter().map(|s| Bytes::from_static(s)).collect();
        Tensor::from_strings([values.len()], values).unwrap()
    }

    fn parse(records: &[&'static [u8]], width: i64) -> Check<'static> {
        check("ParseExample")
            .attr("Nsparse", 2i64)
            .attr("Ndense", 1i64)
            .attr("sparse_types", vec![DType::Int64, DType::String])
            .attr("Tdense", vec![DType::Float])
            .attr("dense_shapes", vec![PartialShape::from_i64s(&[width]).unwrap()])
            .input(strings(records))
            .input(strings(&[]))
            .input(Tensor::string("b"))
            .input(Tensor::string("c"))
            .input(Tensor::string("a"))
            .input(if width < 0 { Tensor::scalar(9f32) } else { Tensor::vector::<f32>(&[]) })
    }

    #[test]
    fn a_batch_is_parsed() {
        let out = parse(&[FULL, SHORT], 2).run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([1, 2], &[0i64, 0]).unwrap());
        assert_eq!(out[1], Tensor::from_slice([2, 2], &[0i64, 0, 0, 1]).unwrap());
        assert_eq!(out[2], Tensor::vector(&[5i64]));
        assert_eq!(out[3], strings(&[b"x", b"y"]));
        assert_eq!(out[5], Tensor::vector(&[2i64, 2]));
        assert_eq!(out[6], Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap());
        let open = parse(&[FULL, b""], -1).run().unwrap();
        assert_eq!(open[6], Tensor::from_slice([2, 2], &[1f32, 2., 9., 9.]).unwrap());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bad = Code::InvalidArgument;
        parse(&[FULL], 3).fails(
            bad,
            "Name: <unknown>, Key: a, Index: 0.  Number of float values != expected.  Values size: 2 \
             but output shape: [3]",
        );
        parse(&[b""], 3)
            .fails(bad, "Feature: a (data type: float) is required but could not be found.");
        parse(&[b"garbage"], 2).fails(bad, "Could not parse example input, value: 'garbage'");
    }

    #[test]
    fn one_record_has_no_batch() {
        let keys = |k: &str| AttrList::Strs(vec![Bytes::from(k.to_string())]);
        let out = check("ParseSingleExample")
            .attr("num_sparse", 1i64)
            .attr("sparse_keys", keys("b"))
            .attr("dense_keys", keys("a"))
            .attr("sparse_types", vec![DType::Int64])
            .attr("dense_shapes", vec![PartialShape::from([2])])
            .input(Tensor::string(Bytes::from_static(FULL)))
            .input(Tensor::vector::<f32>(&[]))
            .run()
            .unwrap();
        assert_eq!(out[0], Tensor::from_slice([1, 1], &[0i64]).unwrap());
        assert_eq!(out[3], Tensor::vector(&[1f32, 2.]));
    }
}
