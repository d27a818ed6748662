//! Elastic training: continues when ranks are lost, and admits new ranks.
//!
//! A [`State`] holds the values of the variables as of the last commit. When a rank is lost, the
//! step fails on the others. They restore their committed values, reconnect without it, take over
//! rank 0's values and continue. When new ranks wait to join, all ranks stop at the same commit and
//! reconnect with them.

use super::{Config, Members, Reduction, World, prepared, start_engine};
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::Session;
use crate::variable::Variable;
use ferroflow_cluster::Trust;
use ferroflow_collective::elastic::ElasticMember;
use ferroflow_collective::{EngineOptions, GroupOptions};
use ferroflow_core::{Code, Error, Result, Tensor, bail, ensure, err};
use ferroflow_graph::Catalog;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A process of an elastic job.
pub struct Elastic {
    world: World,
    seat: Arc<Mutex<ElasticMember>>,
    group: GroupOptions,
    engine: EngineOptions,
    /// Recovery times after lost ranks, from the failure to the next step.
    recoveries: Vec<Duration>,
    rejoins: u64,
    /// Groups that this process was a rank of.
    epoch: u64,
}

impl Elastic {
    /// Registers with the driver and connects to the other ranks. The graphs of its world survive
    /// lost ranks.
    pub fn meet(seat: ElasticMember, config: Config, base: &Catalog) -> Result<Elastic> {
        Elastic::meet_in(World::unconnected(base), seat, config)
    }

    /// [`Elastic::meet`] with a world that is not connected.
    pub fn meet_in(world: World, mut seat: ElasticMember, config: Config) -> Result<Elastic> {
        if !config.process_sets.is_empty() {
            bail!(Unimplemented, "process sets in an elastic job, in which ranks come and go");
        }
        let (group, engine) = prepared(config.group, config.engine, config.deterministic);
        let met = seat.next_group(&group)?;
        world.0.link.is_elastic.store(true, Ordering::Relaxed);
        *world.0.link.sets.write() = vec![Members::WORLD];
        let mut job = Elastic {
            world,
            seat: Arc::new(Mutex::new(seat)),
            group,
            engine,
            recoveries: Vec::new(),
            rejoins: 0,
            epoch: 0,
        };
        job.adopt(met)?;
        Ok(job)
    }

    /// The current ranks.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The recovery time after each loss of ranks.
    pub fn recoveries(&self) -> &[Duration] {
        &self.recoveries
    }

    /// Number of reconnections because new ranks joined.
    pub fn rejoins(&self) -> u64 {
        self.rejoins
    }

    fn adopt(&mut self, group: ferroflow_collective::Group) -> Result<()> {
        let link = &self.world.0.link;
        // The driver's credentials are not known here: the port is bound to loopback or refused.
        let metrics = link.observed.of_rank(group.rank(), &Trust::default());
        let options = EngineOptions { metrics: Some(metrics.clone()), ..self.engine.clone() };
        let (engine, place) = start_engine(group, options)?;
        self.epoch += 1;
        metrics.set_task(u32::try_from(place.rank).unwrap_or(u32::MAX));
        metrics.set_ranks(place.size, Some(self.epoch));
        *link.place.write() = place;
        *link.engine.write() = Some(engine);
        Ok(())
    }

    /// Runs `train` until it returns success. Before each run, also after ranks were lost or
    /// joined, all variables have the values of rank 0's last commit. An error other than a lost
    /// rank is returned.
    pub fn run<R>(
        mut self,
        state: &mut State,
        mut train: impl FnMut(&World, &mut State) -> Result<R>,
    ) -> Result<R> {
        state.seat = Some(self.seat.clone());
        let mut failed: Option<Instant> = None;
        let mut changed = false;
        loop {
            let synced = state.sync(&self.world);
            let reset =
                synced.and_then(|()| if changed { state.reset(&self.world) } else { Ok(()) });
            changed = true;
            let result = reset.and_then(|()| {
                if let Some(since) = failed.take() {
                    self.recovered(since);
                }
                train(&self.world, state)
            });
            let error = match result {
                Ok(value) => {
                    state.seat = None;
                    state.recoveries = std::mem::take(&mut self.recoveries);
                    self.finish();
                    return Ok(value);
                }
                Err(e) => e,
            };
            if state.take_changing() {
                self.rejoins += 1;
            } else if self.world.failure().is_some() || is_lost(&error) {
                failed.get_or_insert_with(Instant::now);
                state.restore()?;
            } else {
                // Dropping the seat frees the driver from waiting for this rank.
                state.seat = None;
                return Err(error);
            }
            tracing::info!("the ranks change: {error}");
            self.reconnect()?;
        }
    }

    /// Leaves the present ranks and connects to those of the next epoch, for programs that do not
    /// use [`Elastic::run`].
    pub fn reconnect(&mut self) -> Result<()> {
        loop {
            self.world.shutdown();
            let met = self.seat.lock().next_group(&self.group)?;
            // If another rank is lost before the engine runs, the next epoch handles it.
            match self.adopt(met) {
                Err(e) if is_lost(&e) => continue,
                adopted => return adopted,
            }
        }
    }

    /// The addresses of the parameter servers of the present epoch, by task; none in a job without
    /// parameter servers.
    pub fn ps(&self) -> Vec<String> {
        self.seat.lock().ps().to_vec()
    }

    /// Reports to the driver, as rank 0, that the state of the job is on the current parameter
    /// servers.
    pub(crate) fn settled(&self) {
        self.seat.lock().settled();
    }

    /// Counts the recovery from a failure that was noticed at `since`.
    pub(crate) fn recovered(&mut self, since: Instant) {
        self.recoveries.push(since.elapsed());
        if let Some(metrics) = self.world.0.link.observed.metrics() {
            metrics.recovered();
        }
    }

    /// Whether new processes wait to join: all ranks should reconnect at their next commit.
    pub fn has_newcomers(&self) -> bool {
        self.seat.lock().has_newcomers()
    }

    /// Reports to the driver that this process has finished its work.
    pub fn finish(self) {
        self.world.shutdown();
        self.world.0.link.observed.tell();
        if let Ok(seat) = Arc::try_unwrap(self.seat) {
            seat.into_inner().done();
        }
    }
}

/// Whether other ranks caused the error.
pub(crate) fn is_lost(e: &Error) -> bool {
    matches!(e.code(), Code::Unavailable | Code::Aborted)
}

/// State that survives lost ranks: the global variables of a graph, and a counter.
pub struct State {
    session: Session,
    variables: Vec<Variable>,
    feeds: Vec<Output>,
    assign: Operation,
    values: Vec<Tensor>,
    committed_step: i64,
    /// A counter for the trainer; restored together with the variables.
    pub step: i64,
    seat: Option<Arc<Mutex<ElasticMember>>>,
    is_changing: bool,
    recoveries: Vec<Duration>,
    on_reset: Vec<Reset>,
}

/// Callback after a change of ranks.
type Reset = Box<dyn FnMut(&World) -> Result<()> + Send>;

impl State {
    /// The state of all global variables of a graph, which must be initialized. Commits them.
    #[track_caller]
    pub fn new(graph: &Graph, session: &Session) -> Result<State> {
        State::of(graph, session, graph.global_variables())
    }

    /// The state of some variables of a graph.
    #[track_caller]
    pub fn of(graph: &Graph, session: &Session, variables: Vec<Variable>) -> Result<State> {
        let (mut feeds, mut assigned) = (Vec::new(), Vec::new());
        graph.at_root(|| {
            graph.name_scope("elastic_state", |_| {
                for variable in &variables {
                    let shape = variable.variable_shape().clone();
                    let feed = graph.placeholder_of(variable.dtype(), "value", shape);
                    assigned.push(variable.assign(&feed));
                    feeds.push(feed);
                }
            });
        });
        let assign = graph.name_scope("elastic_state", |_| graph.group("restore", &assigned));
        let mut state = State {
            session: session.clone(),
            variables,
            feeds,
            assign,
            values: Vec::new(),
            committed_step: 0,
            step: 0,
            seat: None,
            is_changing: false,
            recoveries: Vec::new(),
            on_reset: Vec::new(),
        };
        state.keep()?;
        Ok(state)
    }

    /// Calls `f` after each change of ranks, when all ranks have rank 0's values and before
    /// training continues. Use it for settings that depend on the number of ranks.
    pub fn on_reset(&mut self, f: impl FnMut(&World) -> Result<()> + Send + 'static) {
        self.on_reset.push(Box::new(f));
    }

    fn reset(&mut self, world: &World) -> Result<()> {
        self.on_reset.iter_mut().try_for_each(|f| f(world))
    }

    /// Goes on with another session of the same graph.
    pub(crate) fn use_session(&mut self, session: &Session) {
        self.session = session.clone();
    }

    /// Lets [`State::commit`] notice that processes wait to join this job.
    pub(crate) fn attach(&mut self, job: &Elastic) {
        self.seat = Some(job.seat.clone());
    }

    /// Releases the job, which then can finish.
    pub(crate) fn detach(&mut self) {
        self.seat = None;
    }

    /// Whether the last commit failed because the ranks or the parameter servers change. Asking
    /// resets it.
    pub(crate) fn take_changing(&mut self) -> bool {
        std::mem::take(&mut self.is_changing)
    }

    /// Saves the current values.
    pub(crate) fn keep(&mut self) -> Result<()> {
        self.values = self.session.run(&self.variables)?;
        self.committed_step = self.step;
        Ok(())
    }

    /// Saves the current values, which all ranks restore when a rank is lost. Every rank must
    /// commit after the same steps. Fails if new ranks wait to join; [`Elastic::run`] handles that
    /// error.
    pub fn commit(&mut self, world: &World) -> Result<()> {
        self.keep()?;
        let wanted = self.seat.as_ref().is_some_and(|s| s.lock().has_newcomers());
        let flag = Tensor::scalar(u8::from(wanted));
        let any = world.all_reduce_value("elastic/wanted", flag, Reduction::Max)?;
        self.is_changing = any.scalar_value::<u8>()? != 0;
        ensure!(!self.is_changing, Aborted, "others want to come in");
        Ok(())
    }

    /// Restores the committed values.
    pub fn restore(&mut self) -> Result<()> {
        let values: Vec<(String, Tensor)> =
            self.feeds.iter().map(Output::name).zip(self.values.iter().cloned()).collect();
        self.session.run_fed(values.as_slice(), &self.assign)?;
        self.step = self.committed_step;
        Ok(())
    }

    /// Takes over rank 0's committed values.
    pub fn sync(&mut self, world: &World) -> Result<()> {
        let step = world.broadcast_value("elastic/step", Tensor::scalar(self.committed_step), 0)?;
        let mut values = Vec::with_capacity(self.values.len());
        for (variable, value) in self.variables.iter().zip(&self.values) {
            let name = format!("elastic/{}", variable.variable_name());
            values.push(world.broadcast_value(&name, value.deep_copy()?, 0)?);
        }
        self.committed_step = step.scalar_value()?;
        self.values = values;
        self.restore()
    }

    /// Recovery time after each loss of ranks; known when [`Elastic::run`] has returned.
    pub fn recoveries(&self) -> &[Duration] {
        &self.recoveries
    }
}

/// The registration of this process in the elastic job of the environment.
pub fn seat_from_env() -> Result<ElasticMember> {
    let seat = ElasticMember::from_env()?;
    seat.ok_or_else(|| {
        err!(
            FailedPrecondition,
            "this process was not started by `ferroflow run` with --min-np or --max-np, and \
             FERROFLOW_ELASTIC names no driver"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::{Optimizer, Sgd};
    use crate::testing::{catalog, initialized};
    use ferroflow_collective::elastic::{Driver, DriverOptions};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    /// Adds 1 to a variable in each of six steps, or gives up after three. Returns the final value,
    /// and the number of ranks at each change.
    fn rank(driver: &Driver, name: &str, gives_up: bool) -> (Result<f32>, Vec<usize>) {
        let seat = ElasticMember::connect(&driver.address().to_string(), "t", name).unwrap();
        let config = Config { deterministic: true, ..Config::default() };
        let job = Elastic::meet(seat, config, &catalog()).unwrap();
        let g = job.world().graph();
        let x = g.variable("x", 0.0);
        let train = job.world().optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0));
        let s = initialized(&g).unwrap();
        let mut state = State::new(&g, &s).unwrap();
        let (sizes, seen) = channel();
        state.on_reset(move |world| {
            sizes.send(world.size()).unwrap();
            Ok(())
        });
        let end = job.run(&mut state, |world, state| {
            while state.step < 6 {
                s.run(&train)?;
                state.step += 1;
                state.commit(world)?;
                ensure!(!gives_up || state.step < 3, InvalidArgument, "that is enough");
            }
            s.run(x.scalar::<f32>())
        });
        drop(state);
        (end, seen.iter().collect())
    }

    #[test]
    fn remaining_ranks_resume_from_the_last_commit_when_a_rank_gives_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let timeout = Duration::from_secs(30);
        let options = DriverOptions { min: 1, max: 2, start: 2, timeout, token: "t".into() };
        let driver = Driver::start(listener, options).unwrap();
        std::thread::scope(|scope| {
            let stays = scope.spawn(|| rank(&driver, "stays", false));
            let (gave_up, changes) = rank(&driver, "gives up", true);
            assert_eq!(gave_up.unwrap_err().message(), "that is enough");
            assert!(changes.is_empty());
            let (end, changes) = stays.join().unwrap();
            assert_eq!((end.unwrap(), changes), (6.0, vec![1]));
        });
    }
}
