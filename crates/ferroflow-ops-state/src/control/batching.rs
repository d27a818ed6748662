//! Batch and BatchFunction: the inputs of calls that come at about the same time, as one batch.

use crate::prelude::*;
use ferroflow_core::{Reservation, StepCtx, ThreadKind};
use ferroflow_op_kit::handle::Anchor;
use ferroflow_ops_array::array::concat::concat;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// Receives the results of one task of a batch.
type Reply = Box<dyn FnOnce(Result<Vec<Tensor>>, &InlineScope) + Send>;
/// Runs a batch.
type RunBatch = Arc<dyn Fn(Vec<BatchTask>, &InlineScope) + Send + Sync>;

/// The inputs of one call, or a part of them.
struct BatchTask {
    inputs: Vec<Tensor>,
    rows: usize,
    id: i64,
    step: Arc<StepCtx>,
    reply: Reply,
}

/// How batches are made up.
#[derive(Clone, Debug)]
struct BatchRules {
    /// Most rows of a batch.
    most: usize,
    /// Most rows of a call. A call of more than `most` rows is cut into several batches.
    most_of_call: usize,
    timeout: Duration,
    /// The sizes to which batches are padded, in ascending order. Empty: batches are not padded.
    allowed: Vec<usize>,
}

impl BatchRules {
    fn new(init: &KernelInit<'_>) -> Result<BatchRules> {
        let most_of_call = init.int("max_batch_size")?;
        let Some(most_of_call) = usize::try_from(most_of_call).ok().filter(|n| *n > 0) else {
            bail!(InvalidArgument, "max_batch_size must be positive, got {most_of_call}");
        };
        let micros = u64::try_from(init.int("batch_timeout_micros")?).unwrap_or(0);
        let mut allowed = Vec::new();
        for size in init.ints("allowed_batch_sizes")? {
            let size = usize::try_from(size).unwrap_or(0);
            ensure!(
                allowed.last().is_none_or(|last| *last < size),
                InvalidArgument,
                "allowed_batch_sizes entries must be monotonically increasing"
            );
            allowed.push(size);
        }
        let name = "enable_large_batch_splitting";
        let splits = init.contains(name) && init.bool(name)?;
        let most = match allowed.last() {
            Some(last) if splits => *last,
            _ => most_of_call,
        };
        ensure!(
            most <= most_of_call && allowed.last().is_none_or(|last| *last == most),
            InvalidArgument,
            "final entry in allowed_batch_sizes must equal max_batch_size when \
             enable_large_batch_splitting is False"
        );
        Ok(BatchRules { most, most_of_call, timeout: Duration::from_micros(micros), allowed })
    }

    /// The size to which a batch of `rows` rows is padded.
    fn padded(&self, rows: usize) -> usize {
        self.allowed.iter().copied().find(|size| *size >= rows).unwrap_or(rows)
    }
}

/// The batch that tasks are being added to. Calls of all steps share it by name.
struct Batcher {
    rules: BatchRules,
    open: Mutex<Open>,
    /// Wakes the thread that waits for the open batch's timeout.
    closed: Condvar,
}

#[derive(Default)]
struct Open {
    tasks: Vec<BatchTask>,
    rows: usize,
    /// The number of batches so far.
    number: u64,
}

impl Open {
    fn close(&mut self) -> Vec<BatchTask> {
        self.rows = 0;
        self.number += 1;
        std::mem::take(&mut self.tasks)
    }
}

impl Resource for Batcher {
    fn describe(&self) -> String {
        "a batch".into()
    }

    fn close(&self) {
        let tasks = self.open.lock().close();
        self.closed.notify_all();
        for task in tasks {
            (task.reply)(Err(err!(Cancelled, "the batch was closed")), &InlineScope::unknown());
        }
    }
}

impl Batcher {
    fn new(rules: BatchRules) -> Batcher {
        Batcher { rules, open: Mutex::default(), closed: Condvar::new() }
    }

    /// Adds a task. A batch runs as soon as it is full, or at its timeout.
    fn add(self: &Arc<Self>, task: BatchTask, run: &RunBatch, scope: &InlineScope) {
        let threads = task.step.threads.clone();
        let (mut full, mut begun) = (Vec::new(), None);
        {
            let mut open = self.open.lock();
            if open.rows + task.rows > self.rules.most && !open.tasks.is_empty() {
                full.push(open.close());
            }
            open.rows += task.rows;
            open.tasks.push(task);
            if open.rows >= self.rules.most || self.rules.timeout.is_zero() {
                full.push(open.close());
            } else if open.tasks.len() == 1 {
                begun = Some(open.number);
            }
        }
        if !full.is_empty() {
            self.closed.notify_all();
        }
        for tasks in full {
            run(tasks, scope);
        }
        if let Some(number) = begun {
            let (batcher, run) = (self.clone(), run.clone());
            threads.spawn_blocking(Box::new(move || batcher.close_in_time(number, &run)));
        }
    }

    /// Waits until a batch is closed, or until its timeout, and then runs it.
    fn close_in_time(&self, number: u64, run: &RunBatch) {
        let deadline = Instant::now() + self.rules.timeout;
        let tasks = {
            let mut open = self.open.lock();
            while open.number == number {
                if self.closed.wait_until(&mut open, deadline).timed_out() {
                    break;
                }
            }
            if open.number == number { open.close() } else { Vec::new() }
        };
        if !tasks.is_empty() {
            run(tasks, &InlineScope::new(ThreadKind::Blocking));
        }
    }
}

/// The rows that the inputs of a call have.
fn rows_of(inputs: &[Tensor]) -> Result<usize> {
    let mut rows = None;
    for t in inputs {
        let Some(&n) = t.shape().first() else {
            bail!(InvalidArgument, "Batching input tensors must have at least one dimension");
        };
        ensure!(
            *rows.get_or_insert(n) == n,
            InvalidArgument,
            "Batching input tensors supplied in a given op invocation must have equal \
             0th-dimension size"
        );
    }
    Ok(rows.unwrap_or(0))
}

/// The inputs of all tasks, concatenated. Copies of the first row fill the batch up to `size` rows.
fn joined(tasks: &[BatchTask], size: usize) -> Result<Vec<Tensor>> {
    let rows: usize = tasks.iter().map(|task| task.rows).sum();
    let count = tasks.first().map_or(0, |task| task.inputs.len());
    (0..count)
        .map(|i| {
            let mut parts = Vec::new();
            for task in tasks {
                let part = task.inputs.get(i);
                parts.push(part.ok_or_else(|| err!(Internal, "a task has too few inputs"))?);
            }
            let same = parts
                .windows(2)
                .all(|w| w[0].dtype() == w[1].dtype() && w[0].shape()[1..] == w[1].shape()[1..]);
            ensure!(
                same,
                InvalidArgument,
                "the inputs of a batch do not have the same types and shapes"
            );
            let first = match size > rows {
                true => Some(parts[0].rows(0, 1)?),
                false => None,
            };
            let missing = size.saturating_sub(rows);
            let _counted = Reservation::new(missing.saturating_mul(size_of::<&Tensor>()))?;
            parts.extend(first.iter().cycle().take(missing));
            if let [one] = parts[..] { Ok(one.clone()) } else { concat(&parts, 0) }
        })
        .collect()
}

/// Gives each task its rows of the results.
fn reply_rows(tasks: Vec<BatchTask>, result: Result<Vec<Tensor>>, scope: &InlineScope) {
    let size: usize = tasks.iter().map(|task| task.rows).sum();
    let result = result.and_then(|outputs| {
        let is_whole = |t: &Tensor| t.shape().first().is_some_and(|rows| *rows >= size);
        ensure!(
            outputs.iter().all(is_whole),
            FailedPrecondition,
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension \
             sizes of the input tensors"
        );
        Ok(outputs)
    });
    let mut from = 0;
    for task in tasks {
        let rows = |t: &Tensor| t.rows(from, task.rows);
        let own = match &result {
            Ok(outputs) => outputs.iter().map(rows).collect(),
            Err(e) => Err(e.clone()),
        };
        from += task.rows;
        (task.reply)(own, scope);
    }
}

/// Calls a function once for several calls.
struct BatchFunction {
    anchor: Anchor<Batcher>,
    rules: BatchRules,
    function: Arc<FunctionHandle>,
    batched: usize,
}

impl BatchFunction {
    /// Runs a batch: the function, with the values that the first task's call captured.
    fn runner(&self, captured: Vec<Tensor>) -> RunBatch {
        let (function, rules) = (self.function.clone(), self.rules.clone());
        Arc::new(move |tasks: Vec<BatchTask>, scope: &InlineScope| {
            let Some(step) = tasks.first().map(|task| task.step.clone()) else { return };
            let rows = tasks.iter().map(|task| task.rows).sum();
            let prepared = joined(&tasks, rules.padded(rows)).and_then(|mut args| {
                args.extend(captured.iter().cloned());
                Ok((function.get()?, args))
            });
            match prepared {
                Ok((f, args)) => {
                    let finish = move |result: Result<Vec<Tensor>>, scope: &InlineScope| {
                        reply_rows(tasks, result, scope);
                    };
                    f.call(args, &step, scope, Box::new(finish));
                }
                Err(e) => reply_rows(tasks, Err(e), scope),
            }
        })
    }
}

/// Concatenates the results of the parts of one call.
struct Pieces {
    results: Vec<Option<Vec<Tensor>>>,
    missing: usize,
    done: Option<Done>,
}

impl AsyncKernel for BatchFunction {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let prepared = (|| {
            let n = ctx.inputs.len();
            let captured = ctx.take_inputs(self.batched..n)?;
            let inputs = ctx.take_inputs(0..self.batched)?;
            let rows = rows_of(&inputs)?;
            ensure!(rows > 0, InvalidArgument, "Batching Input tensor must have at least one row");
            ensure!(
                rows <= self.rules.most_of_call,
                InvalidArgument,
                "Task size {rows} is larger than maximum input batch size {}",
                self.rules.most_of_call
            );
            let make = |_: &str| Ok(Batcher::new(self.rules.clone()));
            let batcher = self.anchor.get(&ctx.step.resources, make, |_| Ok(()))?;
            let part = size_of::<BatchTask>() + inputs.len() * size_of::<Tensor>();
            drop(Reservation::new(rows.div_ceil(self.rules.most).saturating_mul(part))?);
            let mut parts = Vec::new();
            for from in (0..rows).step_by(self.rules.most) {
                let count = self.rules.most.min(rows - from);
                let part = inputs.iter().map(|t| t.rows(from, count));
                parts.push((count, part.collect::<Result<Vec<_>>>()?));
            }
            Ok((batcher, captured, parts))
        })();
        let (batcher, captured, parts) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return done.fail(e),
        };
        let run = self.runner(captured);
        let pieces = Arc::new(Mutex::new(Pieces {
            results: vec![None; parts.len()],
            missing: parts.len(),
            done: Some(done),
        }));
        for (i, (rows, inputs)) in parts.into_iter().enumerate() {
            let pieces = pieces.clone();
            let reply: Reply =
                Box::new(move |result, scope| finish_piece(&pieces, i, result, scope));
            let task = BatchTask { inputs, rows, id: 0, step: ctx.step.clone(), reply };
            batcher.add(task, &run, scope);
        }
    }
}

fn finish_piece(
    pieces: &Mutex<Pieces>,
    i: usize,
    result: Result<Vec<Tensor>>,
    scope: &InlineScope,
) {
    let (done, result) = {
        let mut pieces = pieces.lock();
        pieces.missing -= 1;
        let result = match result {
            Err(e) => Err(e),
            Ok(outputs) => {
                pieces.results[i] = Some(outputs);
                if pieces.missing > 0 {
                    return;
                }
                Ok(pieces.results.iter_mut().filter_map(Option::take).collect::<Vec<_>>())
            }
        };
        (pieces.done.take(), result)
    };
    let Some(done) = done else { return };
    let whole = result.and_then(|parts| {
        let outputs = parts.first().map_or(0, Vec::len);
        let of = |k: usize| parts.iter().map(|part| &part[k]).collect::<Vec<_>>();
        (0..outputs)
            .map(|k| match of(k)[..] {
                [one] => Ok(one.clone()),
                ref several => concat(several, 0),
            })
            .collect()
    });
    done.finish_tensors_in(scope, whole);
}

/// Numbers the calls of Batch.
static NEXT_ID: AtomicI64 = AtomicI64::new(1);

/// Gives the whole batch to its first task and nothing to the others.
fn hand_out(tasks: Vec<BatchTask>, rules: &BatchRules, scope: &InlineScope) {
    let rows: usize = tasks.iter().map(|task| task.rows).sum();
    let batch = joined(&tasks, rules.padded(rows));
    let (mut index, mut from) = (Vec::new(), 0);
    for task in &tasks {
        index.extend([task.id, from as i64, (from + task.rows) as i64]);
        from += task.rows;
    }
    for (i, task) in tasks.into_iter().enumerate() {
        let outputs = (|| {
            let mut outputs = match &batch {
                Ok(batch) if i == 0 => batch.clone(),
                Ok(batch) => batch.iter().map(|t| t.rows(0, 0)).collect::<Result<Vec<_>>>()?,
                Err(e) => return Err(e.clone()),
            };
            let own: &[i64] = if i == 0 { &index } else { &[] };
            outputs.push(Tensor::from_slice([own.len() / 3, 3], own)?);
            outputs.push(Tensor::scalar(task.id));
            Ok(outputs)
        })();
        (task.reply)(outputs, scope);
    }
}

struct Batch {
    anchor: Anchor<Batcher>,
    rules: BatchRules,
}

impl AsyncKernel for Batch {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let prepared = (|| {
            let n = ctx.inputs.len();
            let inputs = ctx.take_inputs(0..n)?;
            let rows = rows_of(&inputs)?;
            ensure!(
                rows > 0 && rows <= self.rules.most,
                InvalidArgument,
                "Task size {rows} is not between 1 and the maximum batch size {}",
                self.rules.most
            );
            let make = |_: &str| Ok(Batcher::new(self.rules.clone()));
            Ok((self.anchor.get(&ctx.step.resources, make, |_| Ok(()))?, inputs, rows))
        })();
        let (batcher, inputs, rows) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return done.fail(e),
        };
        let rules = self.rules.clone();
        let run: RunBatch = Arc::new(move |tasks, scope| hand_out(tasks, &rules, scope));
        let reply: Reply = Box::new(move |result, scope| done.finish_tensors_in(scope, result));
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        batcher.add(BatchTask { inputs, rows, id, step: ctx.step.clone(), reply }, &run, scope);
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Batch")
        .work(work::any)
        .doc("Joins the inputs of calls that come at about the same time; the first call gets all.")
        .input("in_tensors: T")
        .output("batched_tensors: T")
        .output("batch_index: int64")
        .output("id: int64")
        .attr("num_batch_threads: int")
        .attr("max_batch_size: int")
        .attr("max_enqueued_batches: int = 10")
        .attr("batch_timeout_micros: int")
        .attr("allowed_batch_sizes: list(int) = []")
        .attr("grad_timeout_micros: int")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("batching_queue: string = ''")
        .attr("T: list(type) >= 1")
        .role(OpRole::Outside)
        .shape(|c| {
            let tensors = c.outputs - 2;
            let mut shapes = vec![PartialShape::unknown(); tensors];
            shapes.extend([PartialShape::new([None, Some(3)]), PartialShape::scalar()]);
            Ok(shapes)
        })
        .waits()
        .cpu(|init| {
            let anchor = Anchor::new(init, true, "tensorflow::serving::BatchResource")?;
            Ok(KernelBox::new_async(Batch { anchor, rules: BatchRules::new(init)? }))
        });
    c.op("BatchFunction")
        .doc("Calls `f` once for the inputs of calls that come at about the same time.")
        .input("in_tensors: Tin")
        .input("captured_tensors: Tcaptured")
        .output("out_tensors: Tout")
        .attr("f: func")
        .attr("num_batch_threads: int")
        .attr("max_batch_size: int")
        .attr("batch_timeout_micros: int")
        .attr("max_enqueued_batches: int = 10")
        .attr("allowed_batch_sizes: list(int) = []")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("batching_queue: string = ''")
        .attr("low_priority_max_batch_size: int = 0")
        .attr("low_priority_batch_timeout_micros: int = 0")
        .attr("low_priority_allowed_batch_sizes: list(int) = []")
        .attr("low_priority_max_enqueued_batches: int = 0")
        .attr("Tin: list(type) >= 1")
        .attr("Tcaptured: list(type) >= 0")
        .attr("Tout: list(type) >= 1")
        .attr("enable_large_batch_splitting: bool = false")
        .newer_attr("mixed_priority_policy: string = 'low_priority_padding_with_max_batch_size'")
        .newer_attr("batch_padding_policy: string = 'PAD_UP'")
        .role(OpRole::Outside)
        .expensive()
        .shape(shape::unknown)
        .waits()
        .cpu(|init| {
            Ok(KernelBox::new_async(BatchFunction {
                anchor: Anchor::new(init, true, "tensorflow::serving::BatchResource")?,
                rules: BatchRules::new(init)?,
                function: Arc::new(init.function("f")?),
                batched: init.dtypes("Tin")?.len(),
            }))
        });
}
