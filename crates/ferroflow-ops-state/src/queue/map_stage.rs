//! Staging areas whose elements have keys and may be assembled component by component.

use super::monitor::{Attempt, Monitor, Order, Progress};
use super::stage::{Limits, StageOps, bytes_of};
use crate::prelude::*;
use ferroflow_graph::OpBuilder;
use std::collections::BTreeMap;

const PUT: usize = 0;
const TAKE: usize = 1;

/// The components of an element that are present.
type Parts = Vec<Option<Tensor>>;

struct Area {
    monitor: Monitor<State>,
}

struct State {
    /// Elements that wait for components.
    incomplete: BTreeMap<i64, Parts>,
    complete: BTreeMap<i64, Parts>,
    bytes: usize,
    limits: Limits,
    dtypes: Vec<DType>,
}

impl Resource for Area {
    fn describe(&self) -> String {
        "a staging area by key".into()
    }

    fn close(&self) {
        self.monitor.close(&[PUT, TAKE], |_| ());
    }
}

impl State {
    /// Returns an error for component indices or values that do not fit the area.
    fn check(&self, indices: &[i64], values: &[Tensor]) -> Result<()> {
        ensure!(
            indices.len() == values.len(),
            InvalidArgument,
            "Number of stored values ({}) does not match number of indices ({})",
            values.len(),
            indices.len()
        );
        for (&i, value) in indices.iter().zip(values) {
            let dtype = self.component(i)?;
            ensure!(
                value.dtype() == dtype,
                InvalidArgument,
                "DataType at index '{i}' is {} but should be {dtype}",
                value.dtype()
            );
        }
        self.limits.check(bytes_of(values))
    }

    fn component(&self, i: i64) -> Result<DType> {
        let dtype = usize::try_from(i).ok().and_then(|i| self.dtypes.get(i));
        dtype.copied().ok_or_else(|| {
            err!(InvalidArgument, "Index '{i}' is out of bounds '{}'", self.dtypes.len())
        })
    }

    /// Adds components to the element `key`, which is complete when it has all.
    fn put(&mut self, key: i64, indices: &[i64], values: &[Tensor]) -> Result<()> {
        ensure!(
            !self.complete.contains_key(&key),
            InvalidArgument,
            "The element with key '{key}' is complete already"
        );
        let n = self.dtypes.len();
        let parts = self.incomplete.entry(key).or_insert_with(|| vec![None; n]);
        for (&i, value) in indices.iter().zip(values) {
            let slot = &mut parts[i as usize];
            if slot.is_some() {
                bail!(
                    InvalidArgument,
                    "The tensor for index '{i}' for key '{key}' was already initialized '{n}'."
                );
            }
            *slot = Some(value.clone());
        }
        if parts.iter().all(Option::is_some)
            && let Some(parts) = self.incomplete.remove(&key)
        {
            self.complete.insert(key, parts);
        }
        self.bytes += bytes_of(values);
        Ok(())
    }

    /// Components of a complete element. With `remove` they are taken out; the element is removed
    /// with the last one.
    fn get(&mut self, key: i64, indices: &[i64], remove: bool) -> Result<Vec<Tensor>> {
        for &i in indices {
            self.component(i)?;
        }
        let parts = self.complete.get_mut(&key).expect("the caller saw the key");
        let mut out = Vec::with_capacity(indices.len());
        for &i in indices {
            match &parts[i as usize] {
                Some(t) => out.push(t.clone()),
                None => bail!(
                    InvalidArgument,
                    "Tensor at index '{i}' for key '{key}' has already been removed."
                ),
            }
        }
        if remove {
            indices.iter().for_each(|&i| parts[i as usize] = None);
            self.bytes = self.bytes.saturating_sub(bytes_of(&out));
            if parts.iter().all(Option::is_none) {
                self.complete.remove(&key);
            }
        }
        Ok(out)
    }
}

struct Put {
    key: i64,
    indices: Vec<i64>,
    values: Vec<Tensor>,
}

impl Attempt<State> for Put {
    fn advance(&mut self, state: &mut State) -> Progress {
        if let Err(e) = state.check(&self.indices, &self.values) {
            return Progress::fail(e);
        }
        if state.complete.len() >= state.limits.capacity
            || state.bytes + bytes_of(&self.values) > state.limits.memory
        {
            return Progress::Stuck;
        }
        match state.put(self.key, &self.indices, &self.values) {
            Ok(()) => Progress::finish(vec![]),
            Err(e) => Progress::fail(e),
        }
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "MapStage operation was cancelled")
    }
}

struct Get {
    /// `None` takes the element with the lowest key.
    key: Option<i64>,
    indices: Vec<i64>,
    remove: bool,
    types: Vec<DType>,
}

impl Get {
    fn get(&self, key: i64, state: &mut State) -> Result<Vec<Tensor>> {
        ensure!(
            self.indices.len() == self.types.len(),
            InvalidArgument,
            "Mismatch stage/unstage: {} vs. {}",
            self.indices.len(),
            self.types.len()
        );
        for (&i, dtype) in self.indices.iter().zip(&self.types) {
            ensure!(
                state.component(i)? == *dtype,
                InvalidArgument,
                "component {i} is not of type {dtype}"
            );
        }
        let values = state.get(key, &self.indices, self.remove)?;
        let key = self.key.is_none().then(|| Tensor::scalar(key));
        Ok(key.into_iter().chain(values).collect())
    }
}

impl Attempt<State> for Get {
    fn advance(&mut self, state: &mut State) -> Progress {
        let key = match self.key {
            Some(key) => Some(key).filter(|key| state.complete.contains_key(key)),
            None => state.complete.keys().next().copied(),
        };
        let Some(key) = key else { return Progress::Stuck };
        match self.get(key, state) {
            Ok(outputs) => Progress::finish(outputs),
            Err(e) => Progress::fail(e),
        }
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "MapUnstage operation was cancelled")
    }
}

type Shared = StageOps<Area>;

const KIND: &str = "tensorflow::StagingMap";

impl Shared {
    fn area(&self, resources: &Arc<Resources>) -> Result<Arc<Area>> {
        let make = |_: &str| {
            let state = State {
                incomplete: BTreeMap::new(),
                complete: BTreeMap::new(),
                bytes: 0,
                limits: self.limits,
                dtypes: self.dtypes.clone(),
            };
            Ok(Area { monitor: Monitor::new(state, &[Order::Any, Order::Any]) })
        };
        self.anchor.get(resources, make, |_| Ok(()))
    }
}

/// The request of an op to an area, read from its inputs.
enum Request {
    Put(Put),
    Get(Get),
}

fn waits(
    ask: fn(&Shared, &mut AsyncCtx) -> Result<Request>,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let shared = Shared::new(init, KIND)?;
        Ok(KernelBox::new_async(move |mut ctx: AsyncCtx, done: Done, scope: &InlineScope| {
            let area = shared.area(&ctx.step.resources);
            match area.and_then(|area| Ok((area, ask(&shared, &mut ctx)?))) {
                Ok((area, Request::Put(put))) => {
                    area.monitor.start(&ctx.step.cancel, PUT, put, scope, done)
                }
                Ok((area, Request::Get(get))) => {
                    area.monitor.start(&ctx.step.cancel, TAKE, get, scope, done)
                }
                Err(e) => done.fail(e),
            }
        }))
    }
}

fn stage(_: &Shared, ctx: &mut AsyncCtx) -> Result<Request> {
    let (key, indices) = (ctx.input(0)?.scalar_index()?, ctx.input(1)?.to_indices()?);
    let values = ctx.take_inputs(2..ctx.inputs.len())?;
    Ok(Request::Put(Put { key, indices, values }))
}

fn by_key(shared: &Shared, ctx: &mut AsyncCtx, remove: bool) -> Result<Request> {
    let (key, indices) = (ctx.input(0)?.scalar_index()?, ctx.input(1)?.to_indices()?);
    Ok(Request::Get(Get { key: Some(key), indices, remove, types: shared.dtypes.clone() }))
}

fn unstage(shared: &Shared, ctx: &mut AsyncCtx) -> Result<Request> {
    by_key(shared, ctx, true)
}

fn peek(shared: &Shared, ctx: &mut AsyncCtx) -> Result<Request> {
    by_key(shared, ctx, false)
}

fn unstage_any(shared: &Shared, ctx: &mut AsyncCtx) -> Result<Request> {
    let indices = ctx.input(0)?.to_indices()?;
    Ok(Request::Get(Get { key: None, indices, remove: true, types: shared.dtypes.clone() }))
}

fn asks(answer: fn(&State) -> usize) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let shared = Shared::new(init, KIND)?;
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let n = shared.area(&ctx.step().resources)?.monitor.read(answer);
            ctx.set(0, Tensor::scalar(n as i32))
        }))
    }
}

fn clear(init: &KernelInit<'_>) -> Result<KernelBox> {
    let shared = Shared::new(init, KIND)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let area = shared.area(&ctx.step().resources)?;
        let dropped = area.monitor.change(ctx.scope(), |state| {
            state.bytes = 0;
            (std::mem::take(&mut state.incomplete), std::mem::take(&mut state.complete))
        });
        drop(dropped);
        Ok(())
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    // Without a key, both kinds return the lowest key first, which the ordered one requires.
    for kind in ["Map", "OrderedMap"] {
        /// The attributes of all these ops; `dtypes` is not always determined by an output.
        fn common<'c>(op: OpBuilder<'c>, dtypes: &str) -> OpBuilder<'c> {
            op.attr("capacity: int >= 0 = 0").attr("memory_limit: int >= 0 = 0").attr(dtypes)
        }
        fn named(op: OpBuilder<'_>) -> OpBuilder<'_> {
            op.attr("container: string = ''").attr("shared_name: string = ''").stateful()
        }
        let any = "dtypes: list(type)";
        let some = "dtypes: list(type) >= 1";
        let op = c
            .op(&format!("{kind}Stage"))
            .doc("Adds components of the element with some key, when there is room.")
            .input("key: int64")
            .input("indices: int32")
            .input("values: fake_dtypes");
        named(common(op, any).attr("fake_dtypes: list(type) >= 1"))
            .shape(shape::unknown)
            .waits()
            .cpu(waits(stage));
        let op = c
            .op(&format!("{kind}Peek"))
            .doc("Looks at components of the element with some key, when it is complete.")
            .input("key: int64")
            .input("indices: int32")
            .output("values: dtypes");
        named(common(op, some)).shape(shape::unknown).waits().cpu(waits(peek));
        let op = c
            .op(&format!("{kind}Unstage"))
            .doc("Takes components of the element with some key, when it is complete.")
            .input("key: int64")
            .input("indices: int32")
            .output("values: dtypes");
        named(common(op, some)).shape(shape::unknown).waits().cpu(waits(unstage));
        let op = c
            .op(&format!("{kind}UnstageNoKey"))
            .doc("Takes components of the complete element with the lowest key.")
            .input("indices: int32")
            .output("key: int64")
            .output("values: dtypes");
        named(common(op, some)).shape(shape::unknown).waits().cpu(waits(unstage_any));
        let op = c
            .op(&format!("{kind}Size"))
            .doc("How many elements are complete.")
            .output("size: int32");
        named(common(op, any)).shape(shape::scalar).cpu(asks(|state| state.complete.len()));
        let op = c
            .op(&format!("{kind}IncompleteSize"))
            .doc("How many elements wait for components.")
            .output("size: int32");
        named(common(op, any)).shape(shape::scalar).cpu(asks(|state| state.incomplete.len()));
        let op = c.op(&format!("{kind}Clear")).doc("Drops all elements.");
        named(common(op, any)).shape(shape::unknown).cpu(clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    #[test]
    fn elements_are_completed_and_taken_by_key() {
        for kind in ["Map", "OrderedMap"] {
            let resources = Arc::new(Resources::new());
            let on = |op: &str| -> Check<'static> {
                check(&format!("{kind}{op}"))
                    .resources(&resources)
                    .attr("shared_name", "a")
                    .attr("dtypes", vec![DType::Float, DType::Int32])
            };
            let (key, at) = (|k: i64| Tensor::scalar(k), |i: &[i32]| Tensor::vector(i));
            on("Stage").input(key(7)).input(at(&[1])).input(Tensor::scalar(70i32)).run().unwrap();
            on("Size").gives(Tensor::scalar(0i32));
            on("IncompleteSize").gives(Tensor::scalar(1i32));
            on("Stage")
                .input(key(7))
                .input(at(&[1]))
                .input(Tensor::scalar(70i32))
                .fails(Code::InvalidArgument, "already initialized");
            on("Stage").input(key(7)).input(at(&[0])).input(Tensor::scalar(7.0f32)).run().unwrap();
            on("Stage")
                .input(key(3))
                .input(at(&[0, 1]))
                .input(Tensor::scalar(3.0f32))
                .input(Tensor::scalar(30i32))
                .run()
                .unwrap();
            on("Size").gives(Tensor::scalar(2i32));
            let got = on("UnstageNoKey").input(at(&[0, 1])).run().unwrap();
            assert_eq!(got[0], key(3));
            assert_eq!(got[2], Tensor::scalar(30i32));
            on("Peek").input(key(7)).input(at(&[0, 1])).gives(Tensor::scalar(7.0f32));
            on("Unstage")
                .attr("dtypes", vec![DType::Int32])
                .input(key(7))
                .input(at(&[1]))
                .gives(Tensor::scalar(70i32));
            on("Unstage")
                .attr("dtypes", vec![DType::Int32])
                .input(key(7))
                .input(at(&[1]))
                .fails(Code::InvalidArgument, "has already been removed");
            on("Size").gives(Tensor::scalar(1i32));
            on("Clear").run().unwrap();
            on("Size").gives(Tensor::scalar(0i32));
            on("Stage")
                .input(key(1))
                .input(at(&[5]))
                .input(Tensor::scalar(1i32))
                .fails(Code::InvalidArgument, "out of bounds");
        }
    }
}
