//! Several datasets as one: ZipDataset, ConcatenateDataset, DirectedInterleaveDataset.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;

/// Tuples of elements, one of each dataset, until one of them ends.
struct Zip(Vec<DatasetRef>);

impl Dataset for Zip {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let all: Result<Vec<Elements>> = self.0.iter().map(|d| d.iterate(scope)).collect();
        Ok(Elements::new(Zipping(all?)))
    }

    fn cardinality(&self) -> i64 {
        self.0.iter().fold(INFINITE, |least, d| match (least, d.cardinality()) {
            (INFINITE, n) => n,
            (n, INFINITE) => n,
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            (a, b) => Ord::min(a, b),
        })
    }
}

struct Zipping(Vec<Elements>);

impl Produce for Zipping {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            // An error in one input must not shift the others: pull from every input.
            let (mut all, mut error, mut ended) = (Tuple::new(), None, false);
            for elements in &mut self.0 {
                match elements.next().await {
                    Ok(Some(element)) => all.extend(element),
                    Ok(None) => {
                        ended = true;
                        break;
                    }
                    Err(e) => error = error.or(Some(e)),
                }
            }
            match error {
                _ if ended => Ok(None),
                Some(e) => Err(e),
                None => Ok(Some(all)),
            }
        })
    }
}

/// One after the other.
struct Concatenate([DatasetRef; 2]);

impl Dataset for Concatenate {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Concatenating {
            current: self.0[0].iterate(scope)?,
            then: Some(self.0[1].clone()),
            scope: scope.clone(),
        }))
    }

    fn cardinality(&self) -> i64 {
        match (self.0[0].cardinality(), self.0[1].cardinality()) {
            (INFINITE, _) | (_, INFINITE) => INFINITE,
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            (a, b) => a.saturating_add(b),
        }
    }
}

struct Concatenating {
    current: Elements,
    then: Option<DatasetRef>,
    scope: Scope,
}

impl Produce for Concatenating {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                if let Some(element) = self.current.next().await? {
                    return Ok(Some(element));
                }
                match self.then.take() {
                    Some(then) => self.current = then.iterate(&self.scope)?,
                    None => return Ok(None),
                }
            }
        })
    }
}

/// Elements of several datasets, in the order given by a selector dataset.
struct Directed {
    selector: DatasetRef,
    from: Vec<DatasetRef>,
    stop_on_empty: bool,
}

impl Dataset for Directed {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let from: Result<Vec<Elements>> = self.from.iter().map(|d| d.iterate(scope)).collect();
        Ok(Elements::new(Directing {
            selector: self.selector.iterate(scope)?,
            from: from?.into_iter().map(Some).collect(),
            stop_on_empty: self.stop_on_empty,
        }))
    }

    fn cardinality(&self) -> i64 {
        let any_infinite = self.from.iter().any(|d| d.cardinality() == INFINITE);
        if any_infinite { INFINITE } else { UNKNOWN }
    }
}

struct Directing {
    selector: Elements,
    /// Datasets that have ended are removed.
    from: Vec<Option<Elements>>,
    stop_on_empty: bool,
}

impl Produce for Directing {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while self.from.iter().any(Option::is_some) {
                let Some(selected) = self.selector.next().await? else { return Ok(None) };
                let selected = match &selected[..] {
                    [t] if t.rank() == 0 => t.scalar_value::<i64>()?,
                    _ => bail!(InvalidArgument, "the selector must give scalars of type int64"),
                };
                let n = self.from.len();
                let place = usize::try_from(selected).ok().and_then(|i| self.from.get_mut(i));
                let Some(place) = place else {
                    bail!(InvalidArgument, "Selector index out of range: {selected} >= {n}");
                };
                let Some(elements) = place else { continue };
                if let Some(element) = elements.next().await? {
                    return Ok(Some(element));
                }
                *place = None;
                if self.stop_on_empty {
                    return Ok(None);
                }
            }
            Ok(None)
        })
    }
}

/// The shapes of elements of both datasets must agree with the declaration of the op.
fn concatenate(ctx: &mut Ctx<'_>) -> Result<Concatenate> {
    let (a, b) = (input(ctx, 0)?, input(ctx, 1)?);
    ensure!(
        a.types().dtypes == b.types().dtypes,
        InvalidArgument,
        "input dataset and dataset to concatenate have different output_types {:?} and {:?}",
        a.types().dtypes,
        b.types().dtypes
    );
    Ok(Concatenate([a, b]))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ZipDataset")
        .doc("A dataset of elements of several datasets, side by side.")
        .input("input_datasets: N * variant")
        .makes_dataset()
        .element_types()
        .attr("N: int >= 1")
        .metadata_attr()
        .cpu(|init| {
            makes(init, |ctx| {
                let all: Result<Vec<DatasetRef>> =
                    (0..ctx.num_inputs()).map(|i| input(ctx, i)).collect();
                all.map(Zip)
            })
        });
    c.op("ConcatenateDataset")
        .doc("A dataset of the elements of one dataset and then of another.")
        .input("input_dataset: variant")
        .input("another_dataset: variant")
        .makes_dataset()
        .element_types()
        .metadata_attr()
        .cpu(|init| makes(init, concatenate));
    for op in ["DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of elements of several datasets, in the order that another one says.")
            .input("selector_input_dataset: variant")
            .input("data_input_datasets: N * variant")
            .makes_dataset()
            .element_types()
            .attr("N: int >= 1")
            .cpu(|init| {
                let stop_on_empty =
                    init.contains("stop_on_empty_dataset") && init.bool("stop_on_empty_dataset")?;
                makes(init, move |ctx| {
                    let selector = input(ctx, 0)?;
                    let from: Result<Vec<DatasetRef>> =
                        (1..ctx.num_inputs()).map(|i| input(ctx, i)).collect();
                    Ok(Directed { selector, from: from?, stop_on_empty })
                })
            });
        if !op.starts_with("Experimental") {
            drop(b.attr("stop_on_empty_dataset: bool = false"));
        }
    }
}
