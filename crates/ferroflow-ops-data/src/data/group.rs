//! Elements grouped by a key: GroupByWindowDataset, GroupByReducerDataset.

use super::dataset::*;
use super::function::Captured;
use super::interleave::returned_dataset;
use super::scope::Scope;
use super::window::Kept;
use crate::prelude::*;
use std::collections::BTreeMap;

/// The key that a function gives an element.
async fn key_of(key: &Captured, scope: &Scope, element: &Tuple) -> Result<i64> {
    let result = key.call(scope, element.clone()).await?;
    match &result[..] {
        [t] if t.dtype() == DType::Int64 && t.rank() == 0 => t.scalar_value(),
        _ => bail!(InvalidArgument, "`key_func` must return a scalar int64."),
    }
}

struct GroupByWindow {
    input: DatasetRef,
    key: Captured,
    reduce: Captured,
    window_size: Captured,
}

impl Dataset for GroupByWindow {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(GroupingByWindow {
            input: Some(self.input.iterate(scope)?),
            types: self.input.types().clone(),
            key: self.key.clone(),
            reduce: self.reduce.clone(),
            window_size: self.window_size.clone(),
            scope: scope.clone(),
            groups: BTreeMap::new(),
            sizes: BTreeMap::new(),
            current: None,
        }))
    }
}

struct GroupingByWindow {
    /// `None` after the end of the input.
    input: Option<Elements>,
    types: ElementTypes,
    key: Captured,
    reduce: Captured,
    window_size: Captured,
    scope: Scope,
    groups: BTreeMap<i64, Vec<Tuple>>,
    /// How large the windows of each key are.
    sizes: BTreeMap<i64, i64>,
    /// The reduction of the last full window.
    current: Option<Elements>,
}

impl GroupingByWindow {
    async fn size(&mut self, key: i64) -> Result<i64> {
        if let Some(&size) = self.sizes.get(&key) {
            return Ok(size);
        }
        let result = self.window_size.call(&self.scope, vec![Tensor::scalar(key)]).await?;
        let size = match &result[..] {
            [t] if t.dtype() == DType::Int64 && t.rank() == 0 => t.scalar_value::<i64>()?,
            _ => bail!(InvalidArgument, "`window_size_func` must return a scalar int64."),
        };
        ensure!(
            size > 0,
            InvalidArgument,
            "Window size must be greater than zero, but got {size}."
        );
        self.sizes.insert(key, size);
        Ok(size)
    }

    /// Adds the next element to its group. Reduces a group when it is full, and all groups after
    /// the last element.
    async fn advance(&mut self) -> Result<()> {
        if let Some(input) = &mut self.input {
            let Some(element) = input.next().await? else {
                self.input = None;
                return Ok(());
            };
            let key = key_of(&self.key, &self.scope, &element).await?;
            let size = self.size(key).await?;
            let group = self.groups.entry(key).or_default();
            group.push(element);
            if group.len() as i64 == size {
                let group = std::mem::take(group);
                self.groups.remove(&key);
                self.reduce(key, group).await?;
            }
        } else if let Some((key, group)) = self.groups.pop_first() {
            self.reduce(key, group).await?;
        }
        Ok(())
    }

    async fn reduce(&mut self, key: i64, group: Vec<Tuple>) -> Result<()> {
        let window = DatasetRef::new(Kept(Arc::new(group)), self.types.clone(), &[])?;
        let args = vec![Tensor::scalar(key), window.into_tensor()];
        let dataset = returned_dataset(&self.reduce, &self.scope, args).await?;
        self.current = Some(dataset.iterate(&self.scope)?);
        Ok(())
    }
}

impl Produce for GroupingByWindow {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                if let Some(current) = &mut self.current {
                    if let Some(element) = current.next().await? {
                        return Ok(Some(element));
                    }
                    self.current = None;
                } else if self.input.is_some() || !self.groups.is_empty() {
                    self.advance().await?;
                } else {
                    return Ok(None);
                }
            }
        })
    }
}

struct GroupByReducer {
    input: DatasetRef,
    key: Captured,
    init: Captured,
    reduce: Captured,
    finalize: Captured,
}

impl Dataset for GroupByReducer {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(GroupingByReducer {
            input: Some(self.input.iterate(scope)?),
            key: self.key.clone(),
            init: self.init.clone(),
            reduce: self.reduce.clone(),
            finalize: self.finalize.clone(),
            scope: scope.clone(),
            states: BTreeMap::new(),
        }))
    }
}

struct GroupingByReducer {
    input: Option<Elements>,
    key: Captured,
    init: Captured,
    reduce: Captured,
    finalize: Captured,
    scope: Scope,
    states: BTreeMap<i64, Tuple>,
}

impl Produce for GroupingByReducer {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            while let Some(input) = &mut self.input {
                let Some(element) = input.next().await? else {
                    self.input = None;
                    break;
                };
                let key = key_of(&self.key, &self.scope, &element).await?;
                let mut args = match self.states.get(&key) {
                    Some(state) => state.clone(),
                    None => self.init.call(&self.scope, vec![Tensor::scalar(key)]).await?,
                };
                args.extend(element);
                let state = self.reduce.call(&self.scope, args).await?;
                self.states.insert(key, state);
            }
            match self.states.pop_first() {
                Some((_, state)) => self.finalize.call(&self.scope, state).await.map(Some),
                None => Ok(None),
            }
        })
    }
}

/// The functions that `names` name, each with as many of the inputs as its `T…` attribute lists.
fn functions(init: &KernelInit<'_>, names: &[&str]) -> Result<Vec<(Arc<FunctionHandle>, usize)>> {
    let one = |name: &&str| {
        let captured = init.dtypes(&format!("T{name}_other_arguments"))?.len();
        Ok((Arc::new(init.function(name)?), captured))
    };
    names.iter().map(one).collect()
}

fn capture(ctx: &mut Ctx<'_>, functions: &[(Arc<FunctionHandle>, usize)]) -> Result<Vec<Captured>> {
    let mut at = 1;
    let all = functions.iter().map(|(f, n)| {
        at += n;
        Captured::from_inputs(f, ctx, at - n..at)
    });
    all.collect()
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["GroupByWindowDataset", "ExperimentalGroupByWindowDataset"] {
        let b = c
            .op(op)
            .doc("A dataset of what `reduce_func` makes of windows of elements with equal keys.")
            .input("input_dataset: variant")
            .input("key_func_other_arguments: Tkey_func_other_arguments")
            .input("reduce_func_other_arguments: Treduce_func_other_arguments")
            .input("window_size_func_other_arguments: Twindow_size_func_other_arguments")
            .makes_dataset()
            .attr("key_func: func")
            .attr("reduce_func: func")
            .attr("window_size_func: func")
            .attr("Tkey_func_other_arguments: list(type) >= 0")
            .attr("Treduce_func_other_arguments: list(type) >= 0")
            .attr("Twindow_size_func_other_arguments: list(type) >= 0")
            .element_types()
            .cpu(|init| {
                let all = functions(init, &["key_func", "reduce_func", "window_size_func"])?;
                makes(init, move |ctx| {
                    let input = input(ctx, 0)?;
                    let Ok([key, reduce, window_size]) =
                        <[Captured; 3]>::try_from(capture(ctx, &all)?)
                    else {
                        bail!(Internal, "expected three functions");
                    };
                    Ok(GroupByWindow { input, key, reduce, window_size })
                })
            });
        if !op.starts_with("Experimental") {
            drop(b.metadata_attr());
        }
    }
    for op in ["GroupByReducerDataset", "ExperimentalGroupByReducerDataset"] {
        c.op(op)
            .doc("A dataset of one element per key, made of all elements with that key.")
            .input("input_dataset: variant")
            .input("key_func_other_arguments: Tkey_func_other_arguments")
            .input("init_func_other_arguments: Tinit_func_other_arguments")
            .input("reduce_func_other_arguments: Treduce_func_other_arguments")
            .input("finalize_func_other_arguments: Tfinalize_func_other_arguments")
            .makes_dataset()
            .attr("key_func: func")
            .attr("init_func: func")
            .attr("reduce_func: func")
            .attr("finalize_func: func")
            .attr("Tkey_func_other_arguments: list(type) >= 0")
            .attr("Tinit_func_other_arguments: list(type) >= 0")
            .attr("Treduce_func_other_arguments: list(type) >= 0")
            .attr("Tfinalize_func_other_arguments: list(type) >= 0")
            .element_types()
            .stateful()
            .cpu(|init| {
                let names = ["key_func", "init_func", "reduce_func", "finalize_func"];
                let all = functions(init, &names)?;
                makes(init, move |ctx| {
                    let input = input(ctx, 0)?;
                    let Ok([key, init, reduce, finalize]) =
                        <[Captured; 4]>::try_from(capture(ctx, &all)?)
                    else {
                        bail!(Internal, "expected four functions");
                    };
                    Ok(GroupByReducer { input, key, init, reduce, finalize })
                })
            });
    }
}
