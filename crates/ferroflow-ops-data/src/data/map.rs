//! MapDataset: each element through a function.

use super::dataset::*;
use super::function::Captured;
use super::scope::Scope;
use crate::prelude::*;

struct Map {
    input: DatasetRef,
    f: Captured,
    preserve_cardinality: bool,
}

struct Mapping {
    input: Elements,
    f: Captured,
    scope: Scope,
    preserve_cardinality: bool,
}

impl Dataset for Map {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Mapping {
            input: self.input.iterate(scope)?,
            f: self.f.clone(),
            scope: scope.clone(),
            preserve_cardinality: self.preserve_cardinality,
        }))
    }

    fn cardinality(&self) -> i64 {
        if self.preserve_cardinality { self.input.cardinality() } else { UNKNOWN }
    }
}

impl Produce for Mapping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let Some(element) = self.input.next().await? else { return Ok(None) };
            mapped(self.f.call(&self.scope, element).await, self.preserve_cardinality)
        })
    }
}

/// The result of a function for an element. An out-of-range error ends the sequence, unless the
/// number of elements must be preserved.
pub(super) fn mapped(result: Result<Tuple>, preserve_cardinality: bool) -> Result<Option<Tuple>> {
    match result {
        Err(e) if e.code() == Code::OutOfRange && preserve_cardinality => Err(err!(
            InvalidArgument,
            "Function invocation produced OutOfRangeError: {}",
            e.message()
        )),
        Err(e) if e.code() == Code::OutOfRange => Ok(None),
        result => result.map(Some),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MapDataset")
        .doc("A dataset of what `f` makes of each element.")
        .input("input_dataset: variant")
        .input("other_arguments: Targuments")
        .makes_dataset()
        .attr("f: func")
        .attr("Targuments: list(type) >= 0")
        .element_types()
        .attr("use_inter_op_parallelism: bool = true")
        .attr("preserve_cardinality: bool = false")
        .newer_attr("force_synchronous: bool = false")
        .metadata_attr()
        .cpu(|init| {
            let f = Arc::new(init.function("f")?);
            let preserve_cardinality = init.bool("preserve_cardinality")?;
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                Ok(Map {
                    input: input(ctx, 0)?,
                    f: Captured::from_inputs(&f, ctx, 1..n)?,
                    preserve_cardinality,
                })
            })
        });
}
