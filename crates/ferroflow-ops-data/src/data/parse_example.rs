//! ParseExampleDataset: batches of Example records as tensors.

use super::dataset::*;
use super::parallel_map::calls_for;
use super::scope::Scope;
use crate::parse::example::{Wanted, dense_features, listed, records};
use crate::parse::features::{Dense, Listed};
use crate::prelude::*;
use crate::sparse::serialize::to_output;
use bytes::Bytes;
use std::collections::BTreeMap;

struct ParseExample {
    input: DatasetRef,
    parser: Arc<Parser>,
}

/// The requested features, and the component of each.
struct Parser {
    wanted: Wanted,
    sparse_places: Vec<usize>,
    dense_places: Vec<usize>,
}

impl Parser {
    fn parse(&self, element: &[Tensor]) -> Result<Tuple> {
        let [batch] = element else {
            bail!(InvalidArgument, "an element has {} components", element.len());
        };
        let parsed = self.wanted.parse_batch(&records(batch.strings()?, &[])?)?;
        let mut out: Vec<Option<Tensor>> =
            vec![None; self.sparse_places.len() + self.dense_places.len()];
        for (&place, parts) in self.sparse_places.iter().zip(&parsed.sparse) {
            out[place] = Some(to_output(DType::Variant, Shape::vector(3), parts)?);
        }
        for (&place, t) in self.dense_places.iter().zip(parsed.dense) {
            out[place] = Some(t);
        }
        let out: Option<Tuple> = out.into_iter().collect();
        out.ok_or_else(|| err!(Internal, "a feature was not parsed"))
    }
}

impl Dataset for ParseExample {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(Parsing { input, parser: self.parser.clone() }))
    }

    fn cardinality(&self) -> i64 {
        self.input.cardinality()
    }
}

struct Parsing {
    input: Elements,
    parser: Arc<Parser>,
}

impl Produce for Parsing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            match self.input.next().await? {
                Some(element) => self.parser.parse(&element).map(Some),
                None => Ok(None),
            }
        })
    }
}

/// Features become components in the order of their names.
fn places(sparse: &[Listed], dense: &[Dense]) -> Result<(Vec<usize>, Vec<usize>)> {
    let keys = || sparse.iter().map(|f| &f.key).chain(dense.iter().map(|f| &f.key));
    let mut order: BTreeMap<&Bytes, usize> = keys().map(|key| (key, 0)).collect();
    ensure!(
        order.len() == sparse.len() + dense.len(),
        InvalidArgument,
        "Duplicate key not allowed: a feature is wanted twice"
    );
    order.values_mut().enumerate().for_each(|(i, place)| *place = i);
    let place = |key: &Bytes| order[key];
    Ok((
        sparse.iter().map(|f| place(&f.key)).collect(),
        dense.iter().map(|f| place(&f.key)).collect(),
    ))
}

fn parse_example(init: &KernelInit<'_>) -> Result<KernelBox> {
    ensure!(
        !init.contains("ragged_keys") || init.byte_strings("ragged_keys")?.is_empty(),
        Unimplemented,
        "{} with ragged features is not supported",
        init.node.op
    );
    let sparse_keys = init.byte_strings("sparse_keys")?;
    let sparse_types = init.dtypes("sparse_types")?;
    ensure!(
        sparse_keys.len() == sparse_types.len(),
        InvalidArgument,
        "len(sparse_keys) != len(sparse_types): {} vs. {}",
        sparse_keys.len(),
        sparse_types.len()
    );
    let dense_keys = init.byte_strings("dense_keys")?;
    let (dense_types, dense_shapes) = (init.dtypes("Tdense")?, init.shapes("dense_shapes")?);
    makes(init, move |ctx| {
        calls_for(scalar(ctx, 1, "num_parallel_calls")?)?;
        let input = input(ctx, 0)?;
        ensure!(
            input.types().dtypes == [DType::String],
            InvalidArgument,
            "Input dataset should have a single component of type string"
        );
        let sparse = listed(sparse_keys.clone(), &sparse_types);
        let dense = dense_features(dense_keys.clone(), &dense_types, &dense_shapes)?;
        let defaults = Wanted::read_defaults(ctx, 2, &dense)?;
        let (sparse_places, dense_places) = places(&sparse, &dense)?;
        let wanted = Wanted { sparse, dense, ragged: Vec::new(), defaults };
        let parser = Arc::new(Parser { wanted, sparse_places, dense_places });
        Ok(ParseExample { input, parser })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, attr, ragged) in [
        ("ParseExampleDataset", "sloppy: bool = false", true),
        ("ParseExampleDatasetV2", "deterministic: string = 'default'", true),
        ("ExperimentalParseExampleDataset", "sloppy: bool = false", false),
    ] {
        let b = c
            .op(op)
            .doc("A dataset of features of batches of Example records.")
            .input("input_dataset: variant")
            .input("num_parallel_calls: int64")
            .input("dense_defaults: Tdense")
            .makes_dataset()
            .attr("sparse_keys: list(string) >= 0")
            .attr("dense_keys: list(string) >= 0")
            .attr("sparse_types: list({float, int64, string}) >= 0")
            .attr("Tdense: list({float, int64, string}) >= 0")
            .attr("dense_shapes: list(shape) >= 0")
            .element_types()
            .attr(attr);
        let b = match ragged {
            true => b
                .attr("ragged_keys: list(string) >= 0 = []")
                .attr("ragged_value_types: list({float, int64, string}) >= 0 = []")
                .attr("ragged_split_types: list({int32, int64}) >= 0 = []"),
            false => b,
        };
        drop(b.cpu(parse_example));
    }
}
