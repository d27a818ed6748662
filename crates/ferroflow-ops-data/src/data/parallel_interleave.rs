//! Interleaves datasets that are iterated over in the background, several at a time:
//! ParallelInterleaveDataset in all versions.

use super::dataset::*;
use super::function::Captured;
use super::interleave::{positive, returned_dataset};
use super::parallel_map::{calls_for, in_order};
use super::scope::Scope;
use super::task::Background;
use super::wait::{Buffer, Permits};
use crate::prelude::*;
use ferroflow_core::ComputePool;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

/// Upper limit on prefetched elements per dataset.
const MOST_READY: i64 = 1 << 16;

#[derive(Clone, Copy)]
struct Shape {
    cycle: usize,
    block: u64,
    /// Elements prefetched from each dataset.
    ready: usize,
    /// Datasets that are started ahead.
    begun: usize,
    calls: usize,
    in_order: bool,
    /// Whether the next dataset gives the rest of the block of a dataset that has ended and is not
    /// replaced.
    shares_blocks: bool,
}

struct ParallelInterleave {
    input: DatasetRef,
    f: Captured,
    shape: Shape,
}

impl Dataset for ParallelInterleave {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Interleaving {
            input: Some(self.input.iterate(scope)?),
            f: self.f.clone(),
            scope: scope.clone(),
            shape: self.shape,
            permits: Permits::new(self.shape.calls),
            places: Vec::new(),
            waiting: VecDeque::new(),
            failed: VecDeque::new(),
            at: 0,
            taken: 0,
        }))
    }
}

/// Each open dataset takes memory from its start.
fn check_cycle(cycle: usize) -> Result<()> {
    const MOST: usize = 1 << 16;
    ensure!(
        cycle <= MOST,
        ResourceExhausted,
        "`cycle_length` {cycle} is more than {MOST} datasets at a time"
    );
    Ok(())
}

/// One of the datasets, whose elements a task prefetches.
struct Source {
    buffer: Arc<Buffer<Result<Tuple>>>,
    _work: Background,
}

struct Interleaving {
    /// `None` after the end of the input.
    input: Option<Elements>,
    f: Captured,
    scope: Scope,
    shape: Shape,
    permits: Arc<Permits>,
    /// The datasets in the cycle; `None` where one has ended and none is left to replace it.
    places: Vec<Option<Source>>,
    /// Datasets that were started ahead, for the next free places.
    waiting: VecDeque<Source>,
    /// Errors of the input, to be returned before the next element is requested.
    failed: VecDeque<Error>,
    at: usize,
    taken: u64,
}

impl Interleaving {
    /// Starts datasets ahead, up to the requested number.
    async fn begin(&mut self) {
        loop {
            let empty = self.shape.cycle - self.places.iter().flatten().count();
            let wanted = self.shape.begun + empty;
            let Some(input) = &mut self.input else { return };
            if self.waiting.len() >= wanted || !self.failed.is_empty() {
                return;
            }
            match input.next().await {
                Ok(Some(element)) => {
                    let source = self.source(element);
                    if self.places.len() < self.shape.cycle {
                        self.places.push(Some(source));
                    } else {
                        self.waiting.push_back(source);
                    }
                }
                Ok(None) => self.input = None,
                Err(e) => self.failed.push_back(e),
            }
        }
    }

    fn source(&self, element: Tuple) -> Source {
        let buffer = Buffer::new(self.shape.ready);
        let (f, scope, permits) = (self.f.clone(), self.scope.clone(), self.permits.clone());
        let work = produce(f, scope, permits, element, buffer.clone());
        Source { buffer, _work: Background::start(self.scope.threads(), self.scope.memory(), work) }
    }

    fn next_place(&mut self) {
        self.at = (self.at + 1) % Ord::max(self.places.len(), 1);
    }

    /// The next element of the current place, or of any place with an element if order does not
    /// matter.
    async fn pop(&mut self) -> Option<Result<Tuple>> {
        let (places, in_order, n) = (&self.places, self.shape.in_order, self.places.len());
        let from = self.at;
        let (at, popped) = poll_fn(|cx| {
            for i in 0..n {
                let at = (from + i) % n;
                let Some(source) = &places[at] else { continue };
                if let Poll::Ready(popped) = source.buffer.poll_pop(cx) {
                    return Poll::Ready((at, popped));
                }
                if in_order {
                    break;
                }
            }
            Poll::Pending
        })
        .await;
        if at != self.at {
            (self.at, self.taken) = (at, 0);
        }
        popped
    }
}

/// Calls the function and prepares the elements of the dataset that it returns.
async fn produce(
    f: Captured,
    scope: Scope,
    permits: Arc<Permits>,
    element: Tuple,
    to: Arc<Buffer<Result<Tuple>>>,
) {
    to.reserve().await;
    let opened = {
        let _permit = permits.take().await;
        returned_dataset(&f, &scope, element).await.and_then(|d| d.iterate(&scope))
    };
    let mut elements = match opened {
        Ok(elements) => elements,
        Err(e) => {
            to.push(Err(e));
            return to.end();
        }
    };
    loop {
        let next = {
            let _permit = permits.take().await;
            elements.next().await.transpose()
        };
        match next {
            Some(next) => to.push_element(next).await,
            None => break,
        }
        to.reserve().await;
    }
    to.give_up();
    to.end();
}

impl Produce for Interleaving {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            loop {
                self.begin().await;
                if let Some(error) = self.failed.pop_front() {
                    return Err(error);
                }
                if self.places.iter().all(Option::is_none) {
                    return Ok(None);
                }
                if self.places[self.at].is_none() {
                    self.next_place();
                    continue;
                }
                match self.pop().await {
                    Some(next) => {
                        self.taken += 1;
                        if self.taken == self.shape.block {
                            self.taken = 0;
                            self.next_place();
                        }
                        return next.map(Some);
                    }
                    None => {
                        // The next dataset takes this place, and gives its elements when the place
                        // comes round again.
                        self.places[self.at] = None;
                        self.begin().await;
                        self.places[self.at] = self.waiting.pop_front();
                        if self.places[self.at].is_some() || !self.shape.shares_blocks {
                            self.taken = 0;
                        }
                        self.next_place();
                    }
                }
            }
        })
    }
}

/// The values of the inputs after the captured ones, in order.
struct Inputs<'a, 'c> {
    ctx: &'a Ctx<'c>,
    at: usize,
}

impl Inputs<'_, '_> {
    fn cycle(&self) -> Result<usize> {
        let cycle: i64 = scalar(self.ctx, self.at, "cycle_length")?;
        let cycle = if cycle == -1 { ComputePool::threads() as i64 } else { cycle };
        ensure!(
            cycle > 0,
            InvalidArgument,
            "`cycle_length` must be `tf.data.AUTOTUNE` or greater than 0 but is {cycle}"
        );
        Ok(cycle as usize)
    }

    fn block(&self) -> Result<u64> {
        let block: i64 = scalar(self.ctx, self.at + 1, "block_length")?;
        ensure!(block > 0, InvalidArgument, "`block_length` must be > 0");
        Ok(block as u64)
    }

    /// A number of elements to prefetch; -1 and -2 mean our default.
    fn ahead(&self, i: usize, name: &str, own: usize, least: i64) -> Result<usize> {
        match scalar::<i64>(self.ctx, self.at + i, name)? {
            -1 | -2 => Ok(own),
            n => {
                ensure!(n >= least, InvalidArgument, "`{name}` must be >= {least} but is {n}.");
                Ok(Ord::min(n, MOST_READY) as usize)
            }
        }
    }
}

fn own_ready(block: u64) -> usize {
    Ord::min(block, 16) as usize
}

/// V2, V3 and V4: with a number of calls.
fn with_calls(init: &KernelInit<'_>) -> Result<KernelBox> {
    let f = Arc::new(init.function("f")?);
    let in_order = if init.contains("sloppy") { !init.bool("sloppy")? } else { in_order(init)? };
    let (has_ahead, behind) = if init.node.op.ends_with("V4") { (true, 5) } else { (false, 3) };
    makes(init, move |ctx| {
        let at = ctx.num_inputs() - behind;
        let inputs = Inputs { ctx, at };
        let (cycle, block) = (inputs.cycle()?, inputs.block()?);
        check_cycle(cycle)?;
        let own = own_ready(block);
        let asked: i64 = scalar(ctx, ctx.num_inputs() - 1, "num_parallel_calls")?;
        let calls = calls_for(asked)?;
        ensure!(
            asked <= cycle as i64,
            InvalidArgument,
            "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either \
             `tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. However, \
             `num_parallel_calls` is {asked} and `cycle_length` is {cycle}"
        );
        let shape = Shape {
            cycle,
            block,
            ready: if has_ahead { inputs.ahead(2, "buffer_output_elements", own, 1)? } else { own },
            begun: if has_ahead { inputs.ahead(3, "prefetch_input_elements", 1, 0)? } else { 1 },
            calls,
            in_order,
            shares_blocks: false,
        };
        Ok(ParallelInterleave {
            input: input(ctx, 0)?,
            f: Captured::from_inputs(&f, ctx, 1..at)?,
            shape,
        })
    })
}

/// The first version, and its successor: one call for each dataset.
fn legacy(init: &KernelInit<'_>) -> Result<KernelBox> {
    let f = Arc::new(init.function("f")?);
    let by_attr = init.contains("deterministic");
    let always_in_order = by_attr && in_order(init)?;
    makes(init, move |ctx| {
        let behind = if by_attr { 4 } else { 5 };
        let at = ctx.num_inputs() - behind;
        let inputs = Inputs { ctx, at };
        let (cycle, block) = (positive(ctx, at, "cycle_length")? as usize, inputs.block()?);
        check_cycle(cycle)?;
        let in_order =
            if by_attr { always_in_order } else { !scalar::<bool>(ctx, at + 2, "sloppy")? };
        let first = behind - 2;
        let begun = inputs.ahead(first + 1, "prefetch_input_elements", 1, 0)?;
        let shape = Shape {
            cycle,
            block,
            ready: inputs.ahead(first, "buffer_output_elements", own_ready(block), 1)?,
            begun,
            calls: cycle.saturating_add(begun),
            in_order,
            shares_blocks: true,
        };
        Ok(ParallelInterleave {
            input: input(ctx, 0)?,
            f: Captured::from_inputs(&f, ctx, 1..at)?,
            shape,
        })
    })
}

pub(crate) fn register(c: &mut Catalog) {
    const DOC: &str = "A dataset of the elements of the datasets that `f` makes, several in turns, \
                       which are gone through in the background.";
    let extra: [(&str, &[&str], &[&str]); 6] = [
        (
            "ParallelInterleaveDataset",
            &["sloppy: bool", "buffer_output_elements: int64", "prefetch_input_elements: int64"],
            &["metadata: string = ''"],
        ),
        (
            "ExperimentalParallelInterleaveDataset",
            &["sloppy: bool", "buffer_output_elements: int64", "prefetch_input_elements: int64"],
            &[],
        ),
        (
            "LegacyParallelInterleaveDatasetV2",
            &["buffer_output_elements: int64", "prefetch_input_elements: int64"],
            &["deterministic: string = 'default'", "metadata: string = ''"],
        ),
        (
            "ParallelInterleaveDatasetV2",
            &["num_parallel_calls: int64"],
            &["sloppy: bool = false", "metadata: string = ''"],
        ),
        (
            "ParallelInterleaveDatasetV3",
            &["num_parallel_calls: int64"],
            &["deterministic: string = 'default'", "metadata: string = ''"],
        ),
        (
            "ParallelInterleaveDatasetV4",
            &[
                "buffer_output_elements: int64",
                "prefetch_input_elements: int64",
                "num_parallel_calls: int64",
            ],
            &["deterministic: string = 'default'", "metadata: string = ''"],
        ),
    ];
    for (op, inputs, attrs) in extra {
        let mut b = c
            .op(op)
            .doc(DOC)
            .input("input_dataset: variant")
            .input("other_arguments: Targuments")
            .input("cycle_length: int64")
            .input("block_length: int64");
        for input in inputs {
            b = b.input(input);
        }
        b = b.makes_dataset().attr("f: func").attr("Targuments: list(type) >= 0").element_types();
        for attr in attrs {
            b = b.attr(attr);
        }
        let has_calls = inputs.contains(&"num_parallel_calls: int64");
        drop(b.cpu(if has_calls { with_calls } else { legacy }));
    }
}
