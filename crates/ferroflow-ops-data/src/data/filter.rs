//! Datasets that drop elements by a predicate: FilterDataset, TakeWhileDataset.

use super::dataset::*;
use super::function::Captured;
use super::scope::Scope;
use crate::prelude::*;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Elements that pass.
    Filter,
    /// Elements before the first that does not pass.
    TakeWhile,
}

struct Filter {
    input: DatasetRef,
    predicate: Captured,
    kind: Kind,
}

struct Filtering {
    input: Elements,
    predicate: Captured,
    scope: Scope,
    kind: Kind,
}

impl Dataset for Filter {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Filtering {
            input: self.input.iterate(scope)?,
            predicate: self.predicate.clone(),
            scope: scope.clone(),
            kind: self.kind,
        }))
    }
}

impl Produce for Filtering {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let name = if self.kind == Kind::Filter { "Filter" } else { "TakeWhile" };
            while let Some(element) = self.input.next().await? {
                if self.predicate.test(&self.scope, element.clone(), name).await? {
                    return Ok(Some(element));
                }
                if self.kind == Kind::TakeWhile {
                    return Ok(None);
                }
            }
            Ok(None)
        })
    }
}

fn make(kind: Kind) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let predicate = Arc::new(init.function("predicate")?);
        makes(init, move |ctx| {
            let n = ctx.num_inputs();
            Ok(Filter {
                input: input(ctx, 0)?,
                predicate: Captured::from_inputs(&predicate, ctx, 1..n)?,
                kind,
            })
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    let all = [
        ("FilterDataset", Kind::Filter, "A dataset of the elements for which `predicate` is true."),
        (
            "TakeWhileDataset",
            Kind::TakeWhile,
            "A dataset of the elements before the first for which `predicate` is false.",
        ),
        (
            "ExperimentalTakeWhileDataset",
            Kind::TakeWhile,
            "A dataset of the elements before the first for which `predicate` is false.",
        ),
    ];
    for (op, kind, doc) in all {
        let b = c
            .op(op)
            .doc(doc)
            .input("input_dataset: variant")
            .input("other_arguments: Targuments")
            .makes_dataset()
            .attr("predicate: func")
            .attr("Targuments: list(type) >= 0")
            .element_types()
            .cpu(make(kind));
        if !op.starts_with("Experimental") {
            drop(b.metadata_attr());
        }
    }
}
