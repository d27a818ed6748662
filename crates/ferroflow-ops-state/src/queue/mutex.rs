//! Mutexes. A step that acquires one holds it until it drops a value.

use super::monitor::{Attempt, Monitor, Order, Progress};
use crate::prelude::*;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_op_kit::handle::{Anchor, Seen};

struct Mutex {
    /// Whether it is in use.
    monitor: Monitor<bool>,
}

impl Resource for Mutex {
    fn describe(&self) -> String {
        "a mutex".into()
    }

    fn close(&self) {
        self.monitor.close(&[0], |_| ());
    }
}

/// Holds the mutex; dropping the last copy releases it.
struct Lock(Arc<Mutex>);

impl VariantObject for Lock {
    fn type_name(&self) -> &str {
        "tensorflow::Mutex::LockReleaser"
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.monitor.change(&InlineScope::unknown(), |held| *held = false);
    }
}

struct Acquire(Arc<Mutex>);

impl Attempt<bool> for Acquire {
    fn advance(&mut self, held: &mut bool) -> Progress {
        if *held {
            return Progress::Stuck;
        }
        *held = true;
        Progress::finish(vec![Tensor::variant(Variant::new(Lock(self.0.clone())))])
    }

    fn cancelled(&self) -> Error {
        err!(Cancelled, "Lock acquisition cancelled.")
    }
}

fn mutex(init: &KernelInit<'_>) -> Result<KernelBox> {
    let anchor = Anchor::<Mutex>::new(init, true, "tensorflow::Mutex")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let make = |_: &str| Ok(Mutex { monitor: Monitor::new(false, &[Order::FirstCome]) });
        anchor.output(ctx, make, |_| Ok(()))
    }))
}

fn lock(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<Mutex>::new();
    Ok(KernelBox::new_async(move |ctx: AsyncCtx, done: Done, scope: &InlineScope| {
        let handle = ctx.inputs.first().cloned().unwrap_or_default();
        match seen.find(&ctx.step.resources, &handle) {
            Ok(mutex) => {
                mutex.monitor.start(&ctx.step.cancel, 0, Acquire(mutex.clone()), scope, done);
            }
            Err(e) => done.fail(e),
        }
    }))
}

fn consume(ctx: &mut Ctx<'_>) -> Result<()> {
    let lock = ctx.take(0)?;
    match lock.variants()? {
        [one] if one.get::<Lock>().is_some() => Ok(()),
        _ => bail!(
            InvalidArgument,
            "Expected input to contain a SharedLockReleaser object, but saw variant: '{:?}'",
            lock.variants()?
        ),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MutexV2")
        .doc("A mutex.")
        .output("resource: resource")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(shape::scalar)
        .cpu(mutex);
    c.op("MutexLock")
        .doc("Waits for a mutex; it is held as long as the output lives.")
        .input("mutex: resource")
        .output("mutex_lock: variant")
        .stateful()
        .shape(shape::scalar)
        .waits()
        .cpu(lock);
    c.op("ConsumeMutexLock")
        .doc("The end of a lock's life, for steps that need it for nothing else.")
        .input("mutex_lock: variant")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(consume);
}

#[cfg(test)]
mod tests {
    use super::super::testing::Pending;
    use super::*;
    use crate::testing::check;
    use ferroflow_core::CancelToken;

    #[test]
    fn one_holder_at_a_time_and_waiters_in_order() {
        let mutex = Arc::new(Mutex { monitor: Monitor::new(false, &[Order::FirstCome]) });
        let acquire = |token: &CancelToken| {
            let (pending, done) = Pending::new();
            mutex.monitor.start(token, 0, Acquire(mutex.clone()), &InlineScope::unknown(), done);
            pending
        };
        let (token, live) = (CancelToken::new(), CancelToken::new());
        let first = acquire(&live).wait().unwrap();
        let (cancelled, second, third) = (acquire(&token), acquire(&live), acquire(&live));
        token.cancel(err!(Cancelled, "stop"));
        assert_eq!(cancelled.wait().unwrap_err().message(), "Lock acquisition cancelled.");
        let copy = first[0].clone();
        drop(first);
        assert!(!second.is_finished());
        drop(copy);
        let second = second.wait().unwrap();
        assert!(!third.is_finished());
        drop(second);
        third.wait().unwrap();
    }

    #[test]
    fn the_ops_lock_and_unlock() {
        let resources = Arc::new(Resources::new());
        let m = check("MutexV2").resources(&resources).run().unwrap().remove(0);
        for _ in 0..3 {
            let lock = check("MutexLock").resources(&resources).input(m.clone()).run().unwrap();
            check("ConsumeMutexLock").input(lock[0].clone()).run().unwrap();
        }
        let other = Tensor::variant(Variant::default());
        check("ConsumeMutexLock").input(other).fails(Code::InvalidArgument, "SharedLockReleaser");
    }
}
