//! Staging areas: queues that ops share by name.

use super::monitor::{Attempt, Monitor, Order, Progress};
use super::store::Tuple;
use crate::prelude::*;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::Anchor;
use std::collections::VecDeque;

const PUT: usize = 0;
const TAKE: usize = 1;
const PEEK: usize = 2;

struct Area {
    monitor: Monitor<State>,
}

struct State {
    items: VecDeque<Tuple>,
    bytes: usize,
    limits: Limits,
}

/// The capacity of an area; `usize::MAX` means no limit.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) capacity: usize,
    pub(crate) memory: usize,
}

impl Limits {
    pub(crate) fn new(init: &KernelInit<'_>) -> Result<Limits> {
        let limit = |name: &str| -> Result<usize> {
            Ok(usize::try_from(init.int(name)?).ok().filter(|&n| n > 0).unwrap_or(usize::MAX))
        };
        Ok(Limits { capacity: limit("capacity")?, memory: limit("memory_limit")? })
    }

    /// Returns an error for elements that would never fit.
    pub(crate) fn check(&self, bytes: usize) -> Result<()> {
        ensure!(
            bytes <= self.memory,
            ResourceExhausted,
            "Attempted to insert tensors with combined size of '{bytes}' bytes into Staging Area \
             with a memory limit of '{}'.",
            self.memory
        );
        Ok(())
    }
}

pub(crate) fn bytes_of(tuple: &[Tensor]) -> usize {
    tuple.iter().map(Tensor::byte_len).sum()
}

impl Resource for Area {
    fn describe(&self) -> String {
        "a staging area".into()
    }

    fn close(&self) {
        self.monitor.close(&[PUT, TAKE, PEEK], |_| ());
    }
}

struct Put(Option<Tuple>);

impl Attempt<State> for Put {
    fn advance(&mut self, state: &mut State) -> Progress {
        let bytes = bytes_of(self.0.as_deref().unwrap_or_default());
        if let Err(e) = state.limits.check(bytes) {
            return Progress::fail(e);
        }
        if state.items.len() >= state.limits.capacity || state.bytes + bytes > state.limits.memory {
            return Progress::Stuck;
        }
        state.items.extend(self.0.take());
        state.bytes += bytes;
        Progress::finish(vec![])
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Stage operation was cancelled")
    }
}

struct Take(Vec<DType>);

impl Attempt<State> for Take {
    fn advance(&mut self, state: &mut State) -> Progress {
        let Some(front) = state.items.front() else { return Progress::Stuck };
        if let Err(e) = check_types(front, &self.0) {
            return Progress::fail(e);
        }
        let tuple = state.items.pop_front().unwrap_or_default();
        state.bytes -= bytes_of(&tuple);
        Progress::finish(tuple)
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Unstage operation was cancelled")
    }
}

struct Peek(usize, Vec<DType>);

impl Attempt<State> for Peek {
    fn advance(&mut self, state: &mut State) -> Progress {
        match state.items.get(self.0) {
            Some(tuple) => match check_types(tuple, &self.1) {
                Ok(()) => Progress::finish(tuple.clone()),
                Err(e) => Progress::fail(e),
            },
            None => Progress::Stuck,
        }
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "StagePeek operation was cancelled")
    }
}

fn check_types(tuple: &[Tensor], types: &[DType]) -> Result<()> {
    ensure!(
        tuple.len() == types.len(),
        InvalidArgument,
        "Mismatch stage/unstage: {} vs. {}",
        tuple.len(),
        types.len()
    );
    for (i, (t, dtype)) in tuple.iter().zip(types).enumerate() {
        ensure!(
            t.dtype() == *dtype,
            InvalidArgument,
            "Output {i} of type {} does not match declared output type {dtype}",
            t.dtype()
        );
    }
    Ok(())
}

/// Shared by the kernels of all ops on one kind of staging area.
pub(super) struct StageOps<A: Resource> {
    pub(super) anchor: Anchor<A>,
    pub(super) limits: Limits,
    pub(super) dtypes: Vec<DType>,
}

impl<A: Resource> StageOps<A> {
    pub(super) fn new(init: &KernelInit<'_>, kind: &'static str) -> Result<StageOps<A>> {
        Ok(StageOps {
            anchor: Anchor::new(init, true, kind)?,
            limits: Limits::new(init)?,
            dtypes: init.dtypes("dtypes")?,
        })
    }
}

type Shared = StageOps<Area>;

const KIND: &str = "tensorflow::StagingArea";

impl Shared {
    fn area(&self, resources: &Arc<Resources>) -> Result<Arc<Area>> {
        let make = |_: &str| {
            let state = State { items: VecDeque::new(), bytes: 0, limits: self.limits };
            let lanes = [Order::FirstCome, Order::FirstCome, Order::Any];
            Ok(Area { monitor: Monitor::new(state, &lanes) })
        };
        self.anchor.get(resources, make, |_| Ok(()))
    }
}

/// The kernel of an op that may wait.
fn waits(act: Act) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let shared = Shared::new(init, KIND)?;
        Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, scope: &InlineScope| match shared
            .area(&ctx.step.resources)
        {
            Ok(area) => act(&shared, &area, ctx, done, scope),
            Err(e) => done.fail(e),
        }))
    }
}

fn stage(_: &Shared, area: &Area, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    match ctx.take_inputs(0..ctx.inputs.len()) {
        Ok(tuple) => area.monitor.start(&ctx.step.cancel, PUT, Put(Some(tuple)), scope, done),
        Err(e) => done.fail(e),
    }
}

fn unstage(shared: &Shared, area: &Area, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    area.monitor.start(&ctx.step.cancel, TAKE, Take(shared.dtypes.clone()), scope, done);
}

fn peek(shared: &Shared, area: &Area, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
    let index = ctx.input(0).and_then(|index| {
        ensure!(index.rank() == 0, InvalidArgument, "index must be scalar");
        let i = index.scalar_index()?;
        usize::try_from(i).map_err(|_| err!(InvalidArgument, "index {i} is negative"))
    });
    match index {
        Ok(i) => {
            area.monitor.start(&ctx.step.cancel, PEEK, Peek(i, shared.dtypes.clone()), scope, done)
        }
        Err(e) => done.fail(e),
    }
}

fn size(init: &KernelInit<'_>) -> Result<KernelBox> {
    let shared = Shared::new(init, KIND)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let area = shared.area(&ctx.step().resources)?;
        let n = area.monitor.read(|state| state.items.len());
        ctx.set(0, Tensor::scalar(n as i32))
    }))
}

fn clear(init: &KernelInit<'_>) -> Result<KernelBox> {
    let shared = Shared::new(init, KIND)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let area = shared.area(&ctx.step().resources)?;
        let dropped = area.monitor.change(ctx.scope(), |state| {
            state.bytes = 0;
            std::mem::take(&mut state.items)
        });
        drop(dropped);
        Ok(())
    }))
}

/// The action of an op on a staging area.
type Act = fn(&Shared, &Area, AsyncCtx, Done, &InlineScope);

/// An op on a staging area that may wait: its name, what it does, inputs, outputs, and its act.
type StageOp = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], Act);

const WAITING: [StageOp; 3] = [
    (
        "Stage",
        "Adds an element to a staging area, when there is room.",
        &["values: dtypes"],
        &[],
        stage,
    ),
    (
        "Unstage",
        "Takes the oldest element of a staging area, when there is one.",
        &[],
        &["values: dtypes"],
        unstage,
    ),
    (
        "StagePeek",
        "Looks at an element of a staging area, when it is there.",
        &["index: int32"],
        &["values: dtypes"],
        peek,
    ),
];

/// Starts the declaration of an op on a staging area.
fn declare<'c>(c: &'c mut Catalog, name: &str, doc: &str, dtypes: &str) -> OpBuilder<'c> {
    c.op(name)
        .doc(doc)
        .attr("capacity: int >= 0 = 0")
        .attr("memory_limit: int >= 0 = 0")
        .attr(dtypes)
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc, inputs, outputs, act) in WAITING {
        declare(c, name, doc, "dtypes: list(type) >= 1")
            .inputs(inputs)
            .outputs(outputs)
            .shape(shape::unknown)
            .waits()
            .cpu(waits(act));
    }
    declare(c, "StageSize", "How many elements a staging area holds.", "dtypes: list(type)")
        .output("size: int32")
        .shape(shape::scalar)
        .cpu(size);
    declare(c, "StageClear", "Drops all elements of a staging area.", "dtypes: list(type)")
        .shape(shape::unknown)
        .cpu(clear);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Pending;
    use super::*;
    use crate::testing::{Check, check};
    use ferroflow_core::CancelToken;

    #[test]
    fn elements_pass_through_an_area_in_order() {
        let resources = Arc::new(Resources::new());
        let types = || vec![DType::Float, DType::Int32];
        let on = |op: &str| -> Check<'static> {
            check(op).resources(&resources).attr("shared_name", "a").attr("dtypes", types())
        };
        for i in 1..=2 {
            on("Stage").input(Tensor::scalar(i as f32)).input(Tensor::scalar(i)).run().unwrap();
        }
        on("StageSize").gives(Tensor::scalar(2i32));
        on("StagePeek").input(Tensor::scalar(1i32)).gives(Tensor::scalar(2.0f32));
        on("Unstage").gives(Tensor::scalar(1.0f32));
        on("Unstage")
            .attr("dtypes", vec![DType::Float])
            .fails(Code::InvalidArgument, "Mismatch stage/unstage: 2 vs. 1");
        on("StageSize").gives(Tensor::scalar(1i32));
        on("StageClear").run().unwrap();
        on("StageSize").gives(Tensor::scalar(0i32));
    }

    #[test]
    fn limits_make_stages_wait_or_fail() {
        let limits = Limits { capacity: 2, memory: 8 };
        let state = State { items: VecDeque::new(), bytes: 0, limits };
        let lanes = [Order::FirstCome, Order::FirstCome, Order::Any];
        let area = Area { monitor: Monitor::new(state, &lanes) };
        let put = |n: usize| {
            let (pending, done) = Pending::new();
            let tuple = vec![Tensor::zeros(DType::UInt8, [n]).unwrap()];
            area.monitor.start(
                &CancelToken::new(),
                PUT,
                Put(Some(tuple)),
                &InlineScope::unknown(),
                done,
            );
            pending
        };
        let take = || {
            let (pending, done) = Pending::new();
            area.monitor.start(
                &CancelToken::new(),
                TAKE,
                Take(vec![DType::UInt8]),
                &InlineScope::unknown(),
                done,
            );
            pending
        };
        put(6).wait().unwrap();
        let large = put(3);
        assert!(!large.is_finished());
        take().wait().unwrap();
        large.wait().unwrap();
        put(1).wait().unwrap();
        let third = put(1);
        assert!(!third.is_finished());
        take().wait().unwrap();
        third.wait().unwrap();
        let e = put(9).wait().unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
    }
}
