//! Unbatch and UnbatchGrad: distribute the rows of a batch to the calls that it was made of.

use crate::prelude::*;
use ferroflow_op_kit::handle::Anchor;
use ferroflow_ops_array::array::concat::concat;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The calls that wait for rows, by the numbers that Batch gave them.
#[derive(Default)]
struct Exchange {
    state: Mutex<ExchangeState>,
    changed: Condvar,
}

#[derive(Default)]
struct ExchangeState {
    /// Rows that have arrived before their call.
    ready: HashMap<i64, Tensor>,
    /// Calls that have arrived before their rows.
    waiting: HashMap<i64, Done>,
    /// Calls that collect the rows of several.
    collecting: Vec<(Vec<i64>, Done)>,
}

impl Resource for Exchange {
    fn describe(&self) -> String {
        "an exchange of batches".into()
    }

    fn close(&self) {
        let state = std::mem::take(&mut *self.state.lock());
        self.changed.notify_all();
        let collecting = state.collecting.into_iter().map(|(_, done)| done);
        for done in state.waiting.into_values().chain(collecting) {
            done.fail(err!(Cancelled, "the batch was closed"));
        }
    }
}

/// The parts of a batch: the number of a call, and its first and last row.
fn parts(index: &Tensor) -> Result<Vec<(i64, usize, usize)>> {
    ensure!(
        index.rank() == 2 && index.shape()[1] == 3,
        InvalidArgument,
        "batch_index must be a matrix with three columns, got shape {}",
        index.shape()
    );
    let rows = index.as_slice::<i64>()?.chunks_exact(3);
    rows.map(|row| match (usize::try_from(row[1]), usize::try_from(row[2])) {
        (Ok(from), Ok(to)) if from <= to => Ok((row[0], from, to)),
        _ => bail!(InvalidArgument, "batch_index has the invalid range {} to {}", row[1], row[2]),
    })
    .collect()
}

struct Unbatch {
    anchor: Anchor<Exchange>,
    timeout: Duration,
}

impl AsyncKernel for Unbatch {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let prepared = (|| {
            let (batch, id) = (ctx.input(0)?, ctx.input(2)?.scalar_index()?);
            let mut pieces = Vec::new();
            for (of, from, to) in parts(ctx.input(1)?)? {
                let rows = batch.shape().first().copied().unwrap_or(0);
                ensure!(
                    to <= rows,
                    InvalidArgument,
                    "batch_index ends at row {to}, but the batch has {rows}"
                );
                pieces.push((of, batch.rows(from, to - from)?));
            }
            let exchange =
                self.anchor.get(&ctx.step.resources, |_| Ok(Exchange::default()), |_| Ok(()))?;
            Ok((exchange, id, pieces))
        })();
        let (exchange, id, pieces) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return done.fail(e),
        };
        let mut finished = Vec::new();
        let waits = {
            let mut state = exchange.state.lock();
            for (of, rows) in pieces {
                match state.waiting.remove(&of) {
                    Some(done) => finished.push((done, rows)),
                    None => drop(state.ready.insert(of, rows)),
                }
            }
            match state.ready.remove(&id) {
                Some(rows) => {
                    finished.push((done, rows));
                    false
                }
                None => {
                    state.waiting.insert(id, done);
                    true
                }
            }
        };
        exchange.changed.notify_all();
        for (done, rows) in finished {
            done.finish_tensors_in(scope, Ok(vec![rows]));
        }
        if waits {
            let deadline = Instant::now() + self.timeout;
            ctx.step.threads.spawn_blocking(Box::new(move || exchange.fail_at(id, deadline)));
        }
    }
}

impl Exchange {
    /// Fails a call whose rows have not arrived by the deadline.
    fn fail_at(&self, id: i64, deadline: Instant) {
        let late = {
            let mut state = self.state.lock();
            while state.waiting.contains_key(&id) {
                if self.changed.wait_until(&mut state, deadline).timed_out() {
                    break;
                }
            }
            state.waiting.remove(&id)
        };
        if let Some(done) = late {
            done.fail(err!(
                DeadlineExceeded,
                "Batched tensor was not delivered to Unbatch before its timeout"
            ));
        }
    }
}

struct UnbatchGrad {
    anchor: Anchor<Exchange>,
}

impl AsyncKernel for UnbatchGrad {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let prepared = (|| {
            let (grad, id) = (ctx.input(2)?.clone(), ctx.input(3)?.scalar_index()?);
            let ids: Vec<i64> = parts(ctx.input(1)?)?.into_iter().map(|part| part.0).collect();
            let empty = grad.rows(0, 0)?;
            let exchange =
                self.anchor.get(&ctx.step.resources, |_| Ok(Exchange::default()), |_| Ok(()))?;
            Ok((exchange, id, ids, grad, empty))
        })();
        let (exchange, id, ids, grad, empty) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return done.fail(e),
        };
        let mut finished = Vec::new();
        {
            let mut guard = exchange.state.lock();
            let state = &mut *guard;
            state.ready.insert(id, grad);
            match ids.is_empty() {
                true => finished.push((done, Ok(vec![empty]))),
                false => state.collecting.push((ids, done)),
            }
            let ready = &mut state.ready;
            for (ids, done) in std::mem::take(&mut state.collecting) {
                if !ids.iter().all(|id| ready.contains_key(id)) {
                    state.collecting.push((ids, done));
                    continue;
                }
                let all: Vec<Tensor> = ids.iter().filter_map(|id| ready.remove(id)).collect();
                let all: Vec<&Tensor> = all.iter().collect();
                finished.push((done, concat(&all, 0).map(|whole| vec![whole])));
            }
        }
        for (done, result) in finished {
            done.finish_tensors_in(scope, result);
        }
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Unbatch")
        .work(work::any)
        .doc("The rows of a batch that belong to this call.")
        .input("batched_tensor: T")
        .input("batch_index: int64")
        .input("id: int64")
        .output("unbatched_tensor: T")
        .attr("timeout_micros: int")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("T: type")
        .role(OpRole::Outside)
        .shape(shape::unknown)
        .waits()
        .cpu(|init| {
            let micros = u64::try_from(init.int("timeout_micros")?).unwrap_or(0);
            Ok(KernelBox::new_async(Unbatch {
                anchor: Anchor::new(init, true, "tensorflow::UnbatchResource")?,
                timeout: Duration::from_micros(micros),
            }))
        });
    c.op("UnbatchGrad")
        .work(work::any)
        .doc("The gradient of Unbatch: collects the gradients of all calls of a batch.")
        .input("original_input: T")
        .input("batch_index: int64")
        .input("grad: T")
        .input("id: int64")
        .output("batched_grad: T")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("T: type")
        .role(OpRole::Outside)
        .shape(shape::unknown)
        .waits()
        .cpu(|init| {
            let anchor = Anchor::new(init, true, "tensorflow::UnbatchGradResource")?;
            Ok(KernelBox::new_async(UnbatchGrad { anchor }))
        });
}
