//! Small ops for tests of executors: arithmetic on scalars, and kernels that misbehave.

use ferroflow_core::{AsyncCtx, Ctx, DType, Done, InlineScope, KernelBox, Tensor, Value, err};
use ferroflow_graph::{Catalog, KernelInit};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Adds the test ops to a catalog. Their names begin with `Test`.
pub fn register_test_ops(c: &mut Catalog) {
    for op in ["TestAdd", "TestSub"] {
        c.op(op)
            .input("x: int32")
            .input("y: int32")
            .output("z: int32")
            .cpu_fn(if op == "TestAdd" { add } else { subtract });
    }
    c.op("TestLess").input("x: int32").input("y: int32").output("z: bool").cpu_fn(|ctx| {
        let (x, y) = (scalar(ctx, 0)?, scalar(ctx, 1)?);
        ctx.set(0, Tensor::scalar(x < y))
    });
    // Depends on every input and its position, so that a wrong edge changes the result.
    for op in ["TestMix", "TestDearMix"] {
        let b = c
            .op(op)
            .input("x: N * int32")
            .output("a: int32")
            .output("b: int32")
            .attr("N: int >= 0")
            .attr("salt: int = 0")
            .cpu(mix_kernel);
        if op == "TestDearMix" {
            drop(b.expensive());
        }
    }
    c.op("TestCount").doc("How often this node has run.").output("n: int32").stateful().cpu(|_| {
        let count = AtomicI32::new(0);
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            ctx.set(0, Tensor::scalar(count.fetch_add(1, Ordering::SeqCst) + 1))
        }))
    });
    c.op("TestFail").doc("Fails.").output("x: int32").attr("message: string = 'no'").cpu(|init| {
        let message = init.string("message")?;
        Ok(KernelBox::new(move |_: &mut Ctx<'_>| Err(err!(OutOfRange, "{message}"))))
    });
    c.op("TestPanic").doc("Panics.").output("x: int32").cpu_fn(|_| panic!("the kernel's words"));
    misbehaving_async(c);
}

/// Adds `TestBlock`, an async op that waits until its step is cancelled. It sends to `started` when
/// it begins to wait.
pub fn register_blocking_op(c: &mut Catalog, started: std::sync::mpsc::Sender<()>) {
    let started = Mutex::new(started);
    c.op("TestBlock").input("x: N * int32").attr("N: int = 0").output("y: int32").waits().cpu(
        move |_| {
            let started = started.lock().clone();
            let started = Mutex::new(started);
            Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, _: &InlineScope| {
                let done = Mutex::new(Some(done));
                let kept = Arc::new(Mutex::new(None));
                let mine = kept.clone();
                let registered = ctx.step.cancel.on_cancel(move |_| {
                    if let Some(done) = done.lock().take() {
                        done.fail(err!(Cancelled, "the wait was cancelled").derived());
                    }
                    drop(mine.lock().take());
                });
                if !ctx.step.cancel.is_cancelled() {
                    *kept.lock() = Some(registered);
                }
                // Ignore the error: the test has ended.
                let _ = started.lock().send(());
            }))
        },
    );
}

fn misbehaving_async(c: &mut Catalog) {
    c.op("TestLater")
        .doc("Its input, from another thread.")
        .input("x: int32")
        .output("y: int32")
        .waits()
        .cpu(|_| {
            Ok(KernelBox::new_async(|mut ctx: AsyncCtx, done: Done, _: &InlineScope| {
                let threads = ctx.step.threads.clone();
                threads.spawn_blocking(Box::new(move || done.finish_tensors(ctx.take_inputs(0..1))))
            }))
        });
    c.op("TestAtOnce")
        .doc("Async, but never waits.")
        .input("x: int32")
        .output("y: int32")
        .waits()
        .cpu(|_| {
            Ok(KernelBox::new_async(|mut ctx: AsyncCtx, done: Done, _: &InlineScope| {
                done.finish_tensors(ctx.take_inputs(0..1))
            }))
        });
    c.op("TestForget")
        .doc("Never finishes.")
        .output("x: int32")
        .waits()
        .cpu(|_| Ok(KernelBox::new_async(|_: AsyncCtx, done: Done, _: &InlineScope| drop(done))));
    c.op("TestPanicAsync").doc("Panics when started.").output("x: int32").waits().cpu(|_| {
        Ok(KernelBox::new_async(|_: AsyncCtx, _: Done, _: &InlineScope| {
            panic!("the async kernel's words")
        }))
    });
    c.op("TestTooMany").doc("Puts out two values instead of one.").output("x: int32").waits().cpu(
        |_| {
            Ok(KernelBox::new_async(|_: AsyncCtx, done: Done, _: &InlineScope| {
                done.finish(Ok([1i32, 2]
                    .iter()
                    .map(|x| Value::Tensor(Tensor::scalar(*x)))
                    .collect()))
            }))
        },
    );
}

/// The outputs `a` and `b` of `TestMix` for these inputs.
pub fn mix(salt: i64, inputs: &[i32]) -> (i32, i32) {
    let mut h = salt as i32 ^ 0x5bd1_e995;
    for x in inputs {
        h = (h ^ x).wrapping_mul(0x0100_0193).rotate_left(7);
    }
    (h, !h)
}

fn mix_kernel(init: &KernelInit<'_>) -> ferroflow_core::Result<KernelBox> {
    let salt = init.int("salt")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let inputs = (0..ctx.num_inputs()).map(|i| scalar(ctx, i));
        let inputs = inputs.collect::<ferroflow_core::Result<Vec<i32>>>()?;
        let (a, b) = mix(salt, &inputs);
        ctx.set(0, Tensor::scalar(a))?;
        ctx.set(1, Tensor::scalar(b))
    }))
}

fn add(ctx: &mut Ctx<'_>) -> ferroflow_core::Result<()> {
    let (x, y) = (scalar(ctx, 0)?, scalar(ctx, 1)?);
    ctx.set(0, Tensor::scalar(x.wrapping_add(y)))
}

fn subtract(ctx: &mut Ctx<'_>) -> ferroflow_core::Result<()> {
    let (x, y) = (scalar(ctx, 0)?, scalar(ctx, 1)?);
    ctx.set(0, Tensor::scalar(x.wrapping_sub(y)))
}

fn scalar(ctx: &Ctx<'_>, i: usize) -> ferroflow_core::Result<i32> {
    debug_assert_eq!(ctx.input(i)?.dtype(), DType::Int32);
    ctx.input(i)?.scalar_value::<i32>()
}
