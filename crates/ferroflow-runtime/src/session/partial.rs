//! Partial runs: one step whose feeds arrive, and whose fetches leave, in several calls. Feeds and
//! fetches pass through the step's rendezvous instead of being its arguments and results.

use crate::executor::{self, dead_fetch};
use crate::plan::Plan;
use crate::session::compiled::Signature;
use crate::session::running::StepGuard;
use crate::session::{DistributedPartialRun, DistributedStep, RunOutput, SessionDone, TaskSession};
use ferroflow_core::{
    CancelToken, Error, InlineScope, OnCancel, Received, RendezvousKey, Reservation, Result,
    StepCtx, Tensor, bail, count_heap, ensure, err, limits,
};
use ferroflow_graph::passes::{self, Pruned};
use ferroflow_graph::{GraphIr, NodeId};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The partial runs of a session, by handle.
#[derive(Default)]
pub(crate) struct PartialRuns {
    runs: Mutex<HashMap<String, Arc<PartialRun>>>,
    next: AtomicU64,
}

struct PartialRun {
    how: How,
    /// For each fetch, the feeds it needs.
    needs: Needs,
    /// Counts the memory of its plan for the session.
    _memory: Reservation,
    /// Counts a distributed run among the steps under way.
    guard: Mutex<Option<StepGuard>>,
    progress: Mutex<Progress>,
}

/// Where the run executes.
enum How {
    /// On the session's own task, where feeds and fetches have these keys.
    Here {
        step: Arc<StepCtx>,
        keys: HashMap<String, RendezvousKey>,
    },
    Distributed(Arc<dyn DistributedPartialRun>),
}

#[derive(Default)]
struct Progress {
    feeds: HashMap<String, bool>,
    fetches: HashMap<String, bool>,
    /// The outcome of the step, if it has ended.
    ended: Option<Result<()>>,
    on_end: Vec<Box<dyn FnOnce(Result<()>) + Send>>,
}

impl PartialRuns {
    /// Drops all runs. The session cancels those under way.
    pub fn clear(&self) {
        self.runs.lock().clear();
    }
}

impl TaskSession {
    /// Sets up a partial run and returns its handle. The step starts at once and waits for feeds.
    pub fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        self.ensure_open()?;
        let signature = Signature { feeds, fetches, targets };
        let most = limits().steps;
        most.admit(self.partial_runs.runs.lock().len() + 1, "the session")?;
        let compile = || count_heap(|| self.compile_partial(&signature));
        let ((compiled, needs), memory) = self.memory.run(compile)?;
        let cancel = CancelToken::new();
        let guard = self.running.begin(&cancel)?;
        let unfinished = |names: &[String]| names.iter().map(|n| (n.clone(), false)).collect();
        let run = |how, guard| {
            Arc::new(PartialRun {
                how,
                needs,
                _memory: memory,
                guard: Mutex::new(guard),
                progress: Mutex::new(Progress {
                    feeds: unfinished(&signature.feeds),
                    fetches: unfinished(&signature.fetches),
                    ..Progress::default()
                }),
            })
        };
        let handle = self.partial_runs.next.fetch_add(1, Ordering::Relaxed).to_string();
        let (plan, keys) = match compiled {
            Compiled::Here(plan, keys) => (plan, keys),
            Compiled::Distributed(step) => {
                self.keep_partial(&handle, run(How::Distributed(step.begin(cancel)), Some(guard)))?;
                return Ok(handle);
            }
        };
        let step = self.step(None, cancel, None);
        let run = run(How::Here { step: step.clone(), keys }, None);
        self.keep_partial(&handle, run.clone())?;
        let ended = Box::new(move |result, _: &InlineScope| {
            run.end(guard.reason(result).map(|_: Vec<Tensor>| ()));
            drop(guard);
        });
        InlineScope::network(|scope| {
            executor::run(&Arc::from(plan), Vec::new(), step, scope, ended);
        });
        Ok(handle)
    }

    fn keep_partial(&self, handle: &str, run: Arc<PartialRun>) -> Result<()> {
        self.partial_runs.runs.lock().insert(handle.to_string(), run);
        let open = self.ensure_open();
        if open.is_err() {
            // The session may have ended meanwhile and dropped its runs. This one would keep it in
            // memory.
            let late = self.partial_runs.runs.lock().remove(handle);
            drop(late);
        }
        open
    }

    /// Feeds and fetches a part; ends the run when nothing is left to feed or fetch.
    pub fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        // A statement of its own, so that the lock is free when `done` is called.
        let run = self.partial_runs.runs.lock().get(handle).cloned();
        let Some(run) = run else {
            return done(Err(err!(
                InvalidArgument,
                "Must run PartialRunSetup before performing partial runs"
            )));
        };
        let is_last = match run.advance(&feeds, &fetches) {
            Ok(is_last) => is_last,
            Err(e) => return done(Err(e)),
        };
        if is_last || run.has_failed() {
            self.partial_runs.runs.lock().remove(handle);
        }
        match &run.how {
            How::Here { step, keys } => {
                InlineScope::network(|scope| {
                    for (name, value) in feeds {
                        // An aborted rendezvous refuses the value. The fetches below then return
                        // the reason.
                        let _ = step.rendezvous.send(&keys[&name], Received::Live(value), scope);
                    }
                });
                run.collect(step, keys, fetches, is_last, cancel, done);
            }
            How::Distributed(parts) => {
                let (to, run) = (parts.clone(), run.clone());
                let told = Box::new(move |result: Result<RunOutput>| {
                    let is_over = is_last || result.is_err();
                    let ended = result.as_ref().map(|_| ()).map_err(Error::clone);
                    let guard = run.guard.lock().take_if(|_| is_over);
                    done(match &guard {
                        Some(guard) => guard.reason(result),
                        None => result,
                    });
                    if is_over {
                        run.end(ended);
                    }
                });
                to.part(feeds, fetches, is_last, cancel, told);
            }
        }
    }

    fn compile_partial(&self, signature: &Signature) -> Result<(Compiled, Needs)> {
        let graph = self.graph.read();
        let catalog = &self.task.catalog;
        let Signature { feeds, fetches, targets } = signature;
        let mut step = passes::prune(&graph, feeds, fetches, targets, catalog)?;
        self.place_step(&mut step, &graph, signature)?;
        drop(graph);
        let needs = dependencies(&step.graph, signature, &step.args, &step.rets);
        if let Some(distribute) =
            self.distribute.as_ref().filter(|_| self.is_distributed(&step.graph))
        {
            return Ok((Compiled::Distributed(distribute.prepare(step, feeds, fetches)?), needs));
        }
        let device = &self.devices()[0];
        let graph = passes::transfer_ends(step, feeds, fetches, device, catalog)?;
        let key = |name: &String| {
            let key =
                RendezvousKey::new(&device.text, device.incarnation, &device.text, name, (0, 0));
            (name.clone(), key)
        };
        let keys = feeds.iter().chain(fetches).map(key).collect();
        let part = Pruned { graph, args: Vec::new(), rets: Vec::new() };
        let plan = self.compile_part(part)?.plan;
        Ok((Compiled::Here(Box::new(plan), keys), needs))
    }
}

enum Compiled {
    Here(Box<Plan>, HashMap<String, RendezvousKey>),
    Distributed(Arc<dyn DistributedStep>),
}

/// For each fetch, the feeds it needs.
type Needs = HashMap<String, HashSet<String>>;

impl PartialRun {
    /// Records the feeds and fetches of a call. Returns whether it completes the run.
    fn advance(&self, feeds: &[(String, Tensor)], fetches: &[String]) -> Result<bool> {
        let mut progress = self.progress.lock();
        let mut now = HashSet::new();
        for (name, _) in feeds {
            match progress.feeds.get(name) {
                None => bail!(
                    InvalidArgument,
                    "The feed {name} was not specified in partial_run_setup."
                ),
                Some(false) if now.insert(name) => {}
                _ => bail!(InvalidArgument, "The feed {name} has already been fed."),
            }
        }
        now.clear();
        for name in fetches {
            match progress.fetches.get(name) {
                None => bail!(
                    InvalidArgument,
                    "The fetch {name} was not specified in partial_run_setup."
                ),
                Some(false) if now.insert(name) => {}
                _ => bail!(InvalidArgument, "The fetch {name} has already been fetched."),
            }
        }
        let fed = |progress: &Progress, name: &String| {
            progress.feeds.get(name) == Some(&true) || feeds.iter().any(|(n, _)| n == name)
        };
        for name in fetches {
            let missing = self.needs[name].iter().any(|feed| !fed(&progress, feed));
            ensure!(
                !missing,
                InvalidArgument,
                "Fetch {name} can't be computed from the feeds that have been fed so far."
            );
        }
        for (name, _) in feeds {
            progress.feeds.insert(name.clone(), true);
        }
        for name in fetches {
            progress.fetches.insert(name.clone(), true);
        }
        let all = |names: &HashMap<String, bool>| names.values().all(|done| *done);
        Ok(all(&progress.feeds) && all(&progress.fetches))
    }

    /// Receives the fetches. In the last call, also waits for the step to end.
    fn collect(
        self: &Arc<Self>,
        step: &Arc<StepCtx>,
        keys: &HashMap<String, RendezvousKey>,
        fetches: Vec<String>,
        is_last: bool,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        let collector = Arc::new(Collector {
            values: Mutex::new(vec![None; fetches.len()]),
            missing: AtomicUsize::new(fetches.len() + 1),
            error: Mutex::new(None),
            done: Mutex::new(Some(done)),
            on_cancel: Mutex::new(None),
        });
        // If the caller goes away, the run ends: no other call could end it.
        let whole = step.cancel.clone();
        let on_cancel = cancel.on_cancel(move |e| whole.cancel(e.clone()));
        *collector.on_cancel.lock() = Some(on_cancel);
        for (i, name) in fetches.into_iter().enumerate() {
            let (to, step_id) = (collector.clone(), step.step_id);
            step.rendezvous.recv(
                &keys[&name],
                &cancel,
                Box::new(move |received, _: &InlineScope| {
                    match received {
                        Ok(Received::Live(t)) => to.values.lock()[i] = Some(t),
                        Ok(Received::Dead) => to.fail(dead_fetch(step_id, &name)),
                        Err(e) => to.fail(e),
                    }
                    to.count_down();
                }),
            );
        }
        if !is_last {
            return collector.count_down();
        }
        self.when_ended(Box::new(move |result| {
            if let Err(e) = result {
                collector.fail(e);
            }
            collector.count_down();
        }));
    }

    fn has_failed(&self) -> bool {
        matches!(self.progress.lock().ended, Some(Err(_)))
    }

    fn end(&self, result: Result<()>) {
        let waiting = {
            let mut progress = self.progress.lock();
            progress.ended = Some(result.clone());
            std::mem::take(&mut progress.on_end)
        };
        waiting.into_iter().for_each(|tell| tell(result.clone()));
    }

    fn when_ended(&self, tell: Box<dyn FnOnce(Result<()>) + Send>) {
        let mut progress = self.progress.lock();
        match progress.ended.clone() {
            Some(result) => {
                drop(progress);
                tell(result);
            }
            None => progress.on_end.push(tell),
        }
    }
}

/// Gathers the fetches of one call.
struct Collector {
    values: Mutex<Vec<Option<Tensor>>>,
    missing: AtomicUsize,
    error: Mutex<Option<Error>>,
    done: Mutex<Option<SessionDone>>,
    /// Ends the run when the call is cancelled.
    on_cancel: Mutex<Option<OnCancel>>,
}

impl Collector {
    fn fail(&self, error: Error) {
        let mut known = self.error.lock();
        if known.as_ref().is_none_or(|k| k.is_derived() && !error.is_derived()) {
            *known = Some(error);
        }
    }

    fn count_down(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let Some(done) = self.done.lock().take() else { return };
        let on_cancel = self.on_cancel.lock().take();
        drop(on_cancel);
        let tensors: Vec<Tensor> =
            std::mem::take(&mut *self.values.lock()).into_iter().flatten().collect();
        done(match self.error.lock().take() {
            Some(e) => Err(e),
            None => Ok(RunOutput { tensors, ..RunOutput::default() }),
        });
    }
}

/// The feeds that each fetch depends on.
fn dependencies(graph: &GraphIr, signature: &Signature, args: &[NodeId], rets: &[NodeId]) -> Needs {
    let feed_of: HashMap<NodeId, &String> = args.iter().copied().zip(&signature.feeds).collect();
    let mut all = HashMap::new();
    for (fetch, &ret) in signature.fetches.iter().zip(rets) {
        let mut seen = HashSet::from([ret]);
        let (mut stack, mut needs) = (vec![ret], HashSet::new());
        while let Some(id) = stack.pop() {
            if let Some(feed) = feed_of.get(&id) {
                needs.insert((*feed).clone());
            }
            let node = graph.node(id);
            let sources = node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
            stack.extend(sources.filter(|s| seen.insert(*s)));
        }
        all.insert(fetch.clone(), needs);
    }
    all
}
