//! One optimizer call for a hybrid job: tables are updated on the parameter servers, all other
//! variables by the all-reduced gradients.

use super::is_on_ps;
use crate::graph::Graph;
use crate::hvd::{Compression, DistributedOptimizer};
use crate::optimizer::{GradAndVar, Optimizer};
use crate::output::{Operation, Output};
use crate::session::Session;
use crate::sync_replicas::Accumulator;
use crate::variable::Variable;
use ferroflow_core::{Result, Tensor};

/// How the parameter servers apply the gradients of the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PsMode {
    /// Each rank's gradients at once, in any order.
    #[default]
    Async,
    /// The mean of all ranks' gradients, before the next step reads the tables.
    Sync,
    /// The mean of all ranks' gradients except those of the slowest ranks, this many. Gradients
    /// that come later are dropped and counted.
    Backup(usize),
}

/// Trains the tables of a hybrid job on its parameter servers and all other variables by
/// all-reduce. Slots are beside their variables, on the parameter servers or in each rank.
pub struct HybridOptimizer<O> {
    dense: DistributedOptimizer<O>,
    mode: PsMode,
}

/// The ops that train a hybrid job; [`super::Hybrid::training`] runs them.
#[derive(Clone)]
pub struct HybridUpdate {
    /// The step of each rank, which also counts the global step.
    pub(super) train: Operation,
    pub(super) global_step: Variable,
    pub(super) sync: Option<SyncUpdate>,
}

/// The ops of a synchronous update of the tables.
#[derive(Clone)]
pub(super) struct SyncUpdate {
    /// Rank 0's part of a step: takes the mean gradients, applies them, and notifies all ranks.
    pub first: Operation,
    /// The part of the other ranks: waits for rank 0.
    pub others: Operation,
    /// Sets the step of the accumulators.
    tell: Operation,
    /// Numbers of gradients that accumulators hold, and ops that take them out.
    held: Vec<(Output, Output)>,
    /// Numbers of dropped gradients, and whether there are any.
    stale: Vec<(Output, Output)>,
}

impl<O: Optimizer> HybridOptimizer<O> {
    pub(super) fn new(dense: DistributedOptimizer<O>) -> HybridOptimizer<O> {
        HybridOptimizer { dense, mode: PsMode::default() }
    }

    /// How the parameter servers apply gradients; at once by default.
    #[must_use]
    pub fn mode(mut self, mode: PsMode) -> Self {
        self.mode = mode;
        self
    }

    /// Compression of the gradients that are all-reduced.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.dense = self.dense.compression(compression);
        self
    }

    /// All-reduces sparse gradients of variables that are not on parameter servers as whole
    /// tensors. By default the rows of all ranks are gathered.
    #[must_use]
    pub fn sparse_as_dense(mut self) -> Self {
        self.dense = self.dense.sparse_as_dense();
        self
    }

    /// Trains all trainable variables on which `loss` depends.
    #[track_caller]
    pub fn minimize(&self, loss: &Output, global_step: &Variable) -> HybridUpdate {
        let variables = loss.graph().trainable_variables();
        let own = self.dense.inner().compute_gradients(loss, &variables);
        self.apply_gradients(loss.graph(), own, global_step)
    }

    /// Applies gradients of this rank: reduces those of dense variables, and sends those of tables
    /// to the parameter servers.
    #[track_caller]
    pub fn apply_gradients(
        &self,
        g: &Graph,
        gradients: Vec<GradAndVar>,
        global_step: &Variable,
    ) -> HybridUpdate {
        let present = gradients.into_iter().filter(|(gradient, _)| gradient.is_some());
        let (on_ps, dense): (Vec<_>, Vec<_>) = present.partition(|(_, v)| is_on_ps(v));
        let optimizer = self.dense.inner();
        let mut updates = Vec::new();
        // Without any gradient, the optimizer reports the mistake.
        if !dense.is_empty() || on_ps.is_empty() {
            let reduced = self.dense.all_reduced(dense);
            updates.push(optimizer.apply_gradients(g, &reduced, None));
        }
        let mut sync = None;
        match self.mode {
            _ if on_ps.is_empty() => {}
            PsMode::Async => updates.push(optimizer.apply_gradients(g, &on_ps, None)),
            PsMode::Sync => sync = Some(self.aggregated(g, &on_ps, global_step, 0, &mut updates)),
            PsMode::Backup(n) => {
                sync = Some(self.aggregated(g, &on_ps, global_step, n, &mut updates));
            }
        }
        let train = g.device(&global_step.device(), || {
            let all = g.group("hybrid_update", &updates);
            let one = g.constant(1i64);
            g.control_dependencies(&[all], || global_step.assign_add(&one))
        });
        HybridUpdate { train, global_step: global_step.clone(), sync }
    }

    /// Hands this rank's gradients over to accumulators. Rank 0 takes their mean.
    fn aggregated(
        &self,
        g: &Graph,
        gradients: &[GradAndVar],
        global_step: &Variable,
        backups: usize,
        updates: &mut Vec<Operation>,
    ) -> SyncUpdate {
        const NAME: &str = "hybrid/applied";
        g.name_scope("hybrid_sync", |_| {
            // Read in every step, because the number of ranks of an elastic job changes.
            let size = g.op("HorovodSize").output();
            let backups = g.constant(i32::try_from(backups).unwrap_or(i32::MAX));
            let count = (&size - &backups).maximum(g.constant(1i32));
            let (mut taken, mut held, mut told, mut stale) = (vec![], vec![], vec![], vec![]);
            for (gradient, variable) in gradients {
                let Some(gradient) = gradient else { continue };
                let accumulator = Accumulator::of(variable, gradient);
                updates.push(accumulator.hand_over(gradient, global_step));
                taken.push((Some(accumulator.take(&count)), variable.clone()));
                let thrown = accumulator.take(&g.constant(1i32));
                held.push((accumulator.pending(), thrown.values().clone()));
                told.push(accumulator.tell(global_step));
                stale.push(accumulator.stale());
            }
            let applied = self.dense.inner().apply_gradients(g, &taken, None);
            let broadcast = || {
                let flag = g.op("HorovodBroadcast").input(&g.constant(0i32));
                let flag = flag.attr("root_rank", 0i64).attr("tensor_name", NAME);
                flag.operation()
            };
            let first = g.control_dependencies(&[applied], broadcast);
            let others = broadcast();
            SyncUpdate { first, others, tell: g.group("tell", &told), held, stale }
        })
    }
}

impl SyncUpdate {
    /// Rank 0 empties the accumulators, before a job starts or goes on.
    pub fn reset(&self, session: &Session) -> Result<()> {
        session.run(&self.tell)?;
        for (pending, take) in &self.held {
            // Another rank may lack the last part of a gradient: takes the parts that arrived.
            if session.run(pending.scalar::<i32>())? > 0 {
                session.run(take).map(|_: Tensor| ())?;
            }
        }
        session.run(&self.tell)
    }

    /// Number of gradients of shards that came too late.
    pub fn stale(&self, session: &Session) -> Result<i64> {
        let mut sum = 0;
        for (count, is_counted) in &self.stale {
            if session.run(is_counted.scalar::<bool>())? {
                sum += session.run(count.scalar::<i64>())?;
            }
        }
        Ok(sum)
    }
}
