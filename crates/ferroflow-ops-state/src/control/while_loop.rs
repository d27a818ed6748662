//! While and For as functions of a condition and a body.

use super::branch::is_true;
use crate::prelude::*;
use ferroflow_core::{InstantiatedFunction, StepCtx};
use parking_lot::Mutex;

/// Calls `body` on its own results as long as `cond` of them is true.
struct While {
    cond: FunctionHandle,
    body: FunctionHandle,
}

impl AsyncKernel for While {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        let parts = (|| Ok((self.cond.get()?, self.body.get()?, ctx.take_inputs(0..n)?)))();
        match parts {
            Ok((cond, body, values)) => {
                let looping =
                    Arc::new(Looping { cond, body, step: ctx.step, done: Mutex::new(Some(done)) });
                Looping::go(looping, Stage::Test(values), scope);
            }
            Err(e) => done.fail(e),
        }
    }
}

/// The state of a running loop.
struct Looping {
    cond: Arc<dyn InstantiatedFunction>,
    body: Arc<dyn InstantiatedFunction>,
    step: Arc<StepCtx>,
    done: Mutex<Option<Done>>,
}

/// The next stage of a loop.
enum Stage {
    Test(Vec<Tensor>),
    Body(Vec<Tensor>),
    End(Result<Vec<Tensor>>),
}

impl Looping {
    /// Continues from `stage`. A call that finishes before it returns is continued here, in a loop.
    /// A continuation in its callback would nest iterations without limit.
    fn go(self: Arc<Self>, mut stage: Stage, scope: &InlineScope) {
        loop {
            if let Some(e) = self.step.cancel.error() {
                stage = Stage::End(Err(e));
            }
            let handoff = Arc::new(Mutex::new(Handoff::Starting));
            match stage {
                Stage::End(result) => {
                    if let Some(done) = self.done.lock().take() {
                        done.finish_tensors_in(scope, result);
                    }
                    return;
                }
                Stage::Test(values) => {
                    let next = self.clone().follow(&handoff, {
                        let values = values.clone();
                        move |result: Result<Vec<Tensor>>| match result.and_then(|r| test(&r)) {
                            Ok(true) => Stage::Body(values),
                            Ok(false) => Stage::End(Ok(values)),
                            Err(e) => Stage::End(Err(e)),
                        }
                    });
                    self.cond.call(values, &self.step, scope, next);
                }
                Stage::Body(values) => {
                    let next = self.clone().follow(&handoff, |result| match result {
                        Ok(values) => Stage::Test(values),
                        Err(e) => Stage::End(Err(e)),
                    });
                    self.body.call(values, &self.step, scope, next);
                }
            }
            let mut state = handoff.lock();
            match std::mem::replace(&mut *state, Handoff::Left) {
                Handoff::Finished(next) => stage = next,
                _ => return, // the callback will go on
            }
        }
    }

    /// A callback that leaves the next stage to [`Looping::go`] if that is still waiting, and
    /// continues by itself otherwise.
    fn follow(
        self: Arc<Self>,
        handoff: &Arc<Mutex<Handoff>>,
        next: impl FnOnce(Result<Vec<Tensor>>) -> Stage + Send + 'static,
    ) -> ferroflow_core::CallDone {
        let handoff = handoff.clone();
        Box::new(move |result, scope: &InlineScope| {
            let stage = next(result);
            let mut state = handoff.lock();
            if matches!(*state, Handoff::Left) {
                drop(state);
                self.go(stage, scope);
            } else {
                *state = Handoff::Finished(stage);
            }
        })
    }
}

/// Whether a call finished before it returned.
enum Handoff {
    Starting,
    Finished(Stage),
    Left,
}

fn test(result: &[Tensor]) -> Result<bool> {
    match result {
        [t] => is_true(t),
        other => bail!(InvalidArgument, "cond gave {} results, expected one", other.len()),
    }
}

fn make_while(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new_async(While { cond: init.function("cond")?, body: init.function("body")? }))
}

/// Calls `body(i, values…)` for i in start..limit.
struct For {
    body: FunctionHandle,
}

impl AsyncKernel for For {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        let bounds = (|| {
            let at = |i: usize| {
                let bound = ctx.input(i)?;
                let name = ["start", "limit", "delta"][i];
                ensure!(
                    bound.rank() == 0,
                    InvalidArgument,
                    "{name} must be a scalar, but {}",
                    bound.shape()
                );
                bound.scalar_value::<i32>()
            };
            Ok((at(0)?, at(1)?, at(2)?))
        })();
        let parts = bounds.and_then(|b| Ok((b, self.body.get()?, ctx.take_inputs(3..n)?)));
        match parts {
            Ok(((start, limit, delta), body, values)) => {
                if delta == 0 || (delta > 0 && start > limit) || (delta < 0 && start < limit) {
                    return done.fail(err!(
                        InvalidArgument,
                        "For: start {start}, limit {limit} and delta {delta} make no range"
                    ));
                }
                let count = CountedLoop { at: start, limit, delta };
                count_loop(count, body, ctx.step, values, scope, done);
            }
            Err(e) => done.fail(e),
        }
    }
}

#[derive(Clone, Copy)]
struct CountedLoop {
    at: i32,
    limit: i32,
    delta: i32,
}

impl CountedLoop {
    fn goes_on(self) -> bool {
        if self.delta > 0 { self.at < self.limit } else { self.at > self.limit }
    }
}

/// A For is a While whose condition is arithmetic.
fn count_loop(
    count: CountedLoop,
    body: Arc<dyn InstantiatedFunction>,
    step: Arc<StepCtx>,
    values: Vec<Tensor>,
    scope: &InlineScope,
    done: Done,
) {
    struct Test(CountedLoop);
    impl InstantiatedFunction for Test {
        fn call(
            &self,
            args: Vec<Tensor>,
            _: &Arc<StepCtx>,
            scope: &InlineScope,
            done: ferroflow_core::CallDone,
        ) {
            let at = args.first().map(|t| t.scalar_value::<i32>());
            let goes_on = match at {
                Some(Ok(at)) => Ok(vec![Tensor::scalar(CountedLoop { at, ..self.0 }.goes_on())]),
                Some(Err(e)) => Err(e),
                None => Err(err!(Internal, "a counted loop lost its count")),
            };
            done(goes_on, scope);
        }
        fn call_blocking(&self, _: Vec<Tensor>, _: &Arc<StepCtx>) -> Result<Vec<Tensor>> {
            bail!(Unimplemented, "the test of a counted loop is never waited for")
        }
    }
    struct Body(CountedLoop, Arc<dyn InstantiatedFunction>);
    impl InstantiatedFunction for Body {
        fn call(
            &self,
            args: Vec<Tensor>,
            step: &Arc<StepCtx>,
            scope: &InlineScope,
            done: ferroflow_core::CallDone,
        ) {
            let at = match args.first().map(|t| t.scalar_value::<i32>()) {
                Some(Ok(at)) => at,
                _ => return done(Err(err!(Internal, "a counted loop lost its count")), scope),
            };
            let next = at.saturating_add(self.0.delta);
            let finish = move |result: Result<Vec<Tensor>>, scope: &InlineScope| {
                let counted = |values| [Tensor::scalar(next)].into_iter().chain(values).collect();
                done(result.map(counted), scope);
            };
            self.1.call(args, step, scope, Box::new(finish));
        }
        fn call_blocking(&self, _: Vec<Tensor>, _: &Arc<StepCtx>) -> Result<Vec<Tensor>> {
            bail!(Unimplemented, "the body of a counted loop is never waited for")
        }
    }
    // The count is the first of the loop's values, and is dropped from the results.
    struct DropCount(Mutex<Option<Done>>);
    impl ferroflow_core::Completion for DropCount {
        fn complete(self: Arc<Self>, _: u64, result: Result<Outputs>, scope: &InlineScope) {
            if let Some(done) = self.0.lock().take() {
                let uncounted = result.map(|mut values| {
                    values.remove(0);
                    values
                });
                done.finish_in(scope, uncounted);
            }
        }
    }
    let done = Done::new(Arc::new(DropCount(Mutex::new(Some(done)))), 0);
    let values = [Tensor::scalar(count.at)].into_iter().chain(values).collect();
    let looping = Looping {
        cond: Arc::new(Test(count)),
        body: Arc::new(Body(count, body)),
        step,
        done: Mutex::new(Some(done)),
    };
    Looping::go(Arc::new(looping), Stage::Test(values), scope);
}

fn output_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let stated = c.attrs.shapes("output_shapes")?;
    Ok(if stated.len() == c.outputs { stated } else { vec![PartialShape::unknown(); c.outputs] })
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, stateful) in [("While", true), ("StatelessWhile", false)] {
        let b = c
            .op(op)
            .doc("Applies `body` to its input again and again, as long as `cond` of it is true.")
            .input("input: T")
            .output("output: T")
            .attr("T: list(type) >= 0")
            .attr("cond: func")
            .attr("body: func")
            .attr("output_shapes: list(shape) = []")
            .attr("parallel_iterations: int = 10")
            .expensive()
            .calls(CallKind::While)
            .shape(output_shapes)
            .cpu(make_while);
        if stateful {
            drop(b.stateful());
        }
    }
    for op in ["_While", "XlaWhile"] {
        c.op(op)
            .doc("Applies `body` to its input again and again, as long as `cond` of it is true.")
            .input("input: T")
            .output("output: T")
            .attr("T: list(type) >= 0")
            .attr("cond: func")
            .attr("body: func")
            .stateful()
            .expensive()
            .calls(CallKind::While)
            .shape(shape::unknown)
            .cpu(make_while);
    }
    c.op("For")
        .doc("Applies `body` to a counter and its input, from `start` to `limit` by `delta`.")
        .input("start: int32")
        .input("limit: int32")
        .input("delta: int32")
        .input("input: T")
        .output("output: T")
        .attr("T: list(type) >= 0")
        .attr("body: func")
        .expensive()
        .shape(shape::unknown)
        .waits()
        .cpu(|init| Ok(KernelBox::new_async(For { body: init.function("body")? })));
    for op in ["While", "StatelessWhile"] {
        c.gradient(op, |g, dy| g.while_gradient("cond", "body", ("While", "StatelessWhile"), dy));
    }
}
