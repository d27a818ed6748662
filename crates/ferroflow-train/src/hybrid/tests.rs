//! Hybrid jobs whose ranks are threads, with parameter servers in this process.

use super::*;
use crate::background_server::loopback_spec;
use crate::hvd::tests::on_worlds;
use crate::optimizer::{Adagrad, Sgd};
use crate::testing::{catalog, floats, temporary};
use crate::{init, latest_checkpoint};
use ferroflow_collective::elastic::{Driver, DriverOptions, ElasticMember};
use ferroflow_core::Tensor;
use std::sync::mpsc::channel;

const ROWS: usize = 10;

/// A parameter server at this address of a list.
fn serve(ps: &[String], task: usize) -> BackgroundServer {
    let tasks = ps.iter().enumerate().map(|(i, at)| (PS, i as i32, at.as_str()));
    let cluster = ClusterSpec::from_tasks(tasks).unwrap();
    BackgroundServer::start(ServerOptions::new(cluster, PS, task as u32)).unwrap()
}

fn addresses(count: usize) -> Vec<String> {
    let spec = loopback_spec(&[(PS, count)]).unwrap();
    spec.tasks().map(|(_, _, address)| address.to_string()).collect()
}

/// The task of a rank whose server has no fixed address.
fn task(ps: &[String], rank: usize) -> TfConfig {
    let tasks = ps.iter().enumerate().map(|(i, at)| (PS, i as i32, at.as_str()));
    let cluster = ClusterSpec::from_tasks(tasks).unwrap();
    TfConfig::new(cluster, "worker", rank as u32)
}

/// A table and a dense vector. The gradient of each of the rows 3 and 4, and of the dense value, is
/// `-factor` on a rank.
struct Model {
    graph: Graph,
    table: PartitionedVariable,
    dense: Variable,
    factor: Output,
    update: HybridUpdate,
}

fn model(job: &Hybrid, mode: PsMode) -> Model {
    let graph = job.graph();
    let g = &graph;
    let (table, dense, factor, update) = job.scope(g, || {
        let table = job.table(g, "table", init::zeros([ROWS, 2]));
        let dense = g.variable("dense", 0.0);
        let factor = g.placeholder::<f32>("factor", ());
        let ids = g.constant([3i64, 4, 3]);
        // Row 3 counts twice.
        let rows = job.lookup(&table, &ids).sum(&[1]).sum_all() * 0.5;
        let loss = (rows + &dense) * &factor * -1.0;
        let optimizer = job.optimizer(Sgd::new(1.0)).mode(mode);
        (table, dense, factor, optimizer.minimize(&loss, &g.global_step()))
    });
    Model { graph, table, dense, factor, update }
}

impl Model {
    fn values(&self, session: &HybridSession) -> (Vec<f32>, f32) {
        let session = session.session().unwrap();
        let whole = self.table.whole();
        let (table, dense) = session.run((&whole, self.dense.scalar::<f32>())).unwrap();
        (floats(&table), dense)
    }
}

#[test]
fn one_process_trains_without_servers() {
    let job = Hybrid::new(Ranks::fixed(World::meet(alone(), &catalog()).unwrap()), None).unwrap();
    let m = model(&job, PsMode::Sync);
    let mut session = job.training(&m.graph, &m.update).open().unwrap();
    for _ in 0..3 {
        session.train_fed((&m.factor, 1.0f32), ()).unwrap();
    }
    let (table, dense) = m.values(&session);
    assert_eq!((table[6], table[8], table[0], dense), (3.0, 1.5, 0.0, 3.0));
    session.close().unwrap();
}

fn alone() -> hvd::Config {
    let membership = ferroflow_collective::Membership::new(0, 1, "127.0.0.1:0");
    hvd::Config { membership: Some(membership), ..hvd::Config::default() }
}

/// Trains four steps on two ranks whose gradients have the factors 1 and 3.
fn trained(mode: PsMode) -> Vec<(Vec<f32>, f32, i64)> {
    let ps = addresses(2);
    let _servers = [serve(&ps, 0), serve(&ps, 1)];
    on_worlds(2, |world| {
        let job = Hybrid::new(Ranks::fixed(world.clone()), Some(&task(&ps, world.rank()))).unwrap();
        let m = model(&job, mode);
        let devices: std::collections::HashSet<String> =
            m.table.parts().iter().map(|part| part.device()).collect();
        assert_eq!(devices.len(), 8, "each shard has a device of its own");
        let mut session = job.training(&m.graph, &m.update).open().unwrap();
        let factor = 1.0 + 2.0 * world.rank() as f32;
        while session.global_step() < 4 {
            session.train_fed((&m.factor, factor), ()).unwrap();
        }
        world.barrier("trained").unwrap();
        let (table, dense) = m.values(&session);
        world.barrier("read").unwrap();
        let stale = session.stale_gradients().unwrap();
        session.close().unwrap();
        (table, dense, stale)
    })
}

#[test]
fn tables_get_all_gradients_at_once_and_dense_variables_their_mean() {
    for (table, dense, _) in trained(PsMode::Async) {
        assert_eq!((table[6], table[7], table[8], table[0]), (16.0, 16.0, 8.0, 0.0));
        assert_eq!(dense, 8.0);
    }
}

#[test]
fn synchronous_tables_get_the_mean_of_all_ranks() {
    for (table, dense, stale) in trained(PsMode::Sync) {
        assert_eq!((table[6], table[8], dense, stale), (8.0, 4.0, 8.0, 0));
    }
}

#[test]
fn a_step_with_a_backup_rank_applies_the_first_gradients_and_drops_the_others() {
    let ranks = trained(PsMode::Backup(1));
    let (table, dense, _) = &ranks[0];
    // Each step applies the gradient of one rank, or the mean of both if both are there in time.
    assert!((4.0..=12.0).contains(&table[6]), "{table:?}");
    assert_eq!(table[6], 2.0 * table[8]);
    assert_eq!((*dense, &ranks[1].0), (8.0, table));
}

/// An elastic job of ranks that are threads.
struct Cluster {
    driver: Driver,
    ps: Vec<String>,
}

impl Cluster {
    fn new(ps: usize, ranks: usize) -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let timeout = Duration::from_secs(30);
        let options =
            DriverOptions { min: 1, max: ranks, start: ranks, timeout, token: "t".into() };
        let driver = Driver::start(listener, options).unwrap();
        let ps = addresses(ps);
        Cluster { driver, ps }
    }

    fn join(&self, number: usize) -> Hybrid {
        let address = self.driver.address().to_string();
        let seat = ElasticMember::connect(&address, "t", &format!("process {number}")).unwrap();
        let config = hvd::Config { deterministic: true, ..hvd::Config::default() };
        let elastic = Elastic::meet(seat, config, &catalog()).unwrap();
        Hybrid::new(Ranks::elastic(elastic), Some(&task(&self.ps, number))).unwrap()
    }
}

#[test]
fn the_remaining_ranks_go_on_when_a_rank_is_lost() {
    let cluster = Cluster::new(1, 3);
    cluster.driver.set_ps(cluster.ps.clone());
    let _ps = serve(&cluster.ps, 0);
    let rank = |number: usize, last: i64| {
        let job = cluster.join(number);
        let m = model(&job, PsMode::Sync);
        let mut session = job.training(&m.graph, &m.update).open().unwrap();
        while session.global_step() < last {
            session.train_fed((&m.factor, 1.0f32), ()).unwrap();
        }
        if last < 6 {
            // Leaves without a word, as a killed process.
            drop(session);
            return None;
        }
        let values = m.values(&session);
        let (size, recoveries) = (job.size(), session.recoveries().len());
        session.close().unwrap();
        Some((values, size, recoveries))
    };
    std::thread::scope(|scope| {
        let rank = &rank;
        let ranks = [(0, 6), (1, 6), (2, 3)].map(|(n, last)| scope.spawn(move || rank(n, last)));
        for (table, dense) in ranks.into_iter().filter_map(|r| r.join().unwrap()).map(|r| {
            assert_eq!((r.1, r.2), (2, 1));
            r.0
        }) {
            assert_eq!(dense, 6.0);
            // The failed step may have reached the tables before it was repeated.
            assert!((6.0..=7.0).contains(&table[6]), "{table:?}");
        }
    });
}

#[test]
fn a_lost_parameter_server_is_restored_from_the_last_checkpoint() {
    let cluster = Cluster::new(2, 2);
    cluster.driver.set_ps(cluster.ps.clone());
    let dir = temporary("hybrid-lost-ps");
    let _first = serve(&cluster.ps, 0);
    let second = Mutex::new(Some(serve(&cluster.ps, 1)));
    let rank = |number: usize| {
        let job = cluster.join(number);
        let m = model(&job, PsMode::Async);
        let training = job.training(&m.graph, &m.update).dir(&dir).save_steps(2);
        let mut session = training.open().unwrap();
        let mut is_killed = false;
        while session.global_step() < 8 {
            session.train_fed((&m.factor, 1.0f32), ()).unwrap();
            if session.global_step() == 5 && job.rank() == 0 && !is_killed {
                is_killed = true;
                drop(second.lock().take());
                let again = serve(&cluster.ps, 1);
                *second.lock() = Some(again);
            }
        }
        job.world().barrier("trained").unwrap();
        let values = m.values(&session);
        job.world().barrier("read").unwrap();
        let recoveries = session.recoveries().len();
        session.close().unwrap();
        (values, recoveries)
    };
    std::thread::scope(|scope| {
        let rank = &rank;
        let ranks = [0, 1].map(|number| scope.spawn(move || rank(number)));
        for ((table, dense), recoveries) in ranks.map(|r| r.join().unwrap()) {
            assert!(recoveries >= 1);
            assert_eq!(dense, 8.0);
            // Both ranks add to row 3 in each step, and again after the checkpoint of step 4.
            assert!((16.0..=20.0).contains(&table[6]), "{table:?}");
        }
    });
    assert!(latest_checkpoint(&dir).unwrap().ends_with("-8"));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Changes the number of servers from `before` to `after` in the middle of a job of two ranks.
/// Returns the table and the dense variable at the end.
fn resized(before: usize, after: usize, dies: bool) -> (Vec<f32>, f32) {
    let cluster = Cluster::new(before.max(after), 2);
    let all = &cluster.ps;
    cluster.driver.set_ps(all[..before].to_vec());
    let dir = temporary("hybrid-resized");
    let servers: Vec<Mutex<Option<BackgroundServer>>> =
        (0..all.len()).map(|task| Mutex::new(Some(serve(all, task)))).collect();
    let (end, ended) = channel();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (cluster, dir, servers, end) = (&cluster, &dir, &servers, end.clone());
            scope.spawn(move || {
                let job = cluster.join(number);
                assert_eq!(job.ps().len(), before);
                let m = model(&job, PsMode::Sync);
                let training = job.training(&m.graph, &m.update).dir(dir).save_steps(1);
                let mut session = training.open().unwrap();
                let mut step = 0;
                // Goes on until the change has come, and then for four steps more.
                let mut last = i64::MAX;
                while session.global_step() < last {
                    session.train_fed((&m.factor, 1.0f32), ()).unwrap();
                    step += 1;
                    if step == 3 && job.rank() == 0 {
                        if dies {
                            servers[before - 1].lock().take();
                        }
                        cluster.driver.set_ps(cluster.ps[..after].to_vec());
                    }
                    if last == i64::MAX && job.ps().len() == after {
                        last = session.global_step() + 4;
                    }
                }
                let whole = m.values(&session);
                let step = session.global_step();
                job.world().barrier("read").unwrap();
                session.close().unwrap();
                end.send((whole, step)).unwrap();
            });
        }
    });
    drop(end);
    let ends: Vec<((Vec<f32>, f32), i64)> = ended.iter().collect();
    assert_eq!(ends[0], ends[1]);
    let ((table, dense), step) = ends[0].clone();
    assert_eq!(dense, step as f32);
    let report = cluster.driver.report();
    assert_eq!(report.settled, Some(all[..after].to_vec()));
    std::fs::remove_dir_all(&dir).unwrap();
    (table, dense)
}

#[test]
fn tables_move_to_a_new_server_and_no_update_is_lost() {
    for (before, after) in [(1, 2), (2, 3)] {
        let (table, steps) = resized(before, after, false);
        assert_eq!((table[6], table[8], table[0]), (steps, steps / 2.0, 0.0));
    }
}

#[test]
fn tables_leave_a_server_that_is_removed() {
    let (table, steps) = resized(3, 1, false);
    assert_eq!((table[6], table[8]), (steps, steps / 2.0));
}

#[test]
fn tables_of_a_removed_server_that_died_come_from_the_last_checkpoint() {
    let (table, steps) = resized(2, 1, true);
    // The step that failed may have reached the other server.
    assert!((steps..=steps + 1.0).contains(&table[6]), "{table:?} after {steps} steps");
}

#[test]
fn a_checkpoint_of_some_shards_is_restored_into_others() {
    let dir = temporary("hybrid-shards");
    let train = |shards: u32, last: i64| {
        let ranks = Ranks::fixed(World::meet(alone(), &catalog()).unwrap());
        let job = Hybrid::new(ranks, None).unwrap().shards(shards);
        let g = job.graph();
        let (table, update) = job.scope(&g, || {
            let table = job.table(&g, "table", init::zeros([ROWS, 1]));
            let ids = g.constant((0..ROWS as i64).collect::<Vec<_>>());
            let weights = g.constant((0..ROWS).map(|i| i as f32).collect::<Vec<_>>());
            let loss = (job.lookup(&table, &ids).reshape([None]) * weights).sum_all() * -1.0;
            (table, job.optimizer(Adagrad::new(0.5)).minimize(&loss, &g.global_step()))
        });
        let mut session = job.training(&g, &update).dir(&dir).open().unwrap();
        let first = session.global_step();
        while session.global_step() < last {
            session.train(()).unwrap();
        }
        let whole: Tensor = session.session().unwrap().run(&table.whole()).unwrap();
        session.close().unwrap();
        (first, floats(&whole))
    };
    let (_, before) = train(3, 2);
    let (first, same) = train(5, 2);
    assert_eq!((first, &same), (2, &before));
    let (first, after) = train(2, 4);
    assert!(first == 2 && after[9] > before[9], "{after:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}
