//! Worlds of several ranks, each a thread with a session of its own.

use super::*;
use crate::hooks::StopAtStep;
use crate::optimizer::{Adam, GradAndVar, Momentum, Optimizer, Sgd};
use crate::testing::{catalog, floats, initialized, session, temporary};
use crate::{VariableOptions, init, latest_checkpoint};
use ferroflow_core::Code;
use ferroflow_graph::NodeDef;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};

/// Runs `each` on every rank.
pub(crate) fn on_worlds<R: Send>(n: usize, each: impl Fn(&World) -> R + Sync) -> Vec<R> {
    on_worlds_with(n, &[], each)
}

/// Runs `each` on every rank of a world with process sets.
fn on_worlds_with<R: Send>(
    n: usize,
    sets: &[Vec<usize>],
    each: impl Fn(&World) -> R + Sync,
) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    std::thread::scope(|scope| {
        let (each, address, listener) = (&each, &address, &listener);
        let rank = |rank: usize| {
            scope.spawn(move || {
                let config = Config {
                    membership: Some(Membership::new(rank, n, address.clone())),
                    listener: if rank == 0 { listener.lock().take() } else { None },
                    deterministic: true,
                    process_sets: sets.to_vec(),
                    ..Config::default()
                };
                each(&World::meet(config, &catalog()).unwrap())
            })
        };
        let ranks: Vec<_> = (0..n).map(rank).collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

#[test]
fn ranks_know_their_places() {
    let places =
        on_worlds(3, |w| (w.rank(), w.size(), w.local_rank(), w.local_size(), w.cross_rank()));
    assert_eq!(places, [(0, 3, 0, 3, 0), (1, 3, 1, 3, 0), (2, 3, 2, 3, 0)]);
    on_worlds(2, |w| {
        let g = w.graph();
        let size = g.op("HorovodSize").output();
        assert_eq!(session(&g).unwrap().run(size.scalar::<i32>()).unwrap(), 2);
        assert_eq!(w.scaled_rate(0.5), 1.0);
    });
}

#[test]
fn every_op_communicates() {
    on_worlds(2, |w| {
        let (g, r) = (w.graph(), w.rank() as f32);
        let x = g.constant([[r, 1.0], [2.0, r]]);
        let sum = w.all_reduce(&x, Reduction::Sum);
        let least = w.all_reduce(&x, Reduction::Min);
        let all = w.all_gather(&x);
        let from = w.broadcast(&x, 1);
        let part = w.reduce_scatter(&x, Reduction::Sum);
        let [traded, got] = w.all_to_all(&x, &g.constant([0, 2]));
        assert_eq!(all.shape().to_string(), "[?,2]");
        let s = session(&g).unwrap();
        let values = s.run([&sum, &least, &all, &from, &part, &traded]).unwrap();
        let flat: Vec<Vec<f32>> = values.iter().map(floats).collect();
        assert_eq!(flat[0], [1.0, 2.0, 4.0, 1.0]);
        assert_eq!(flat[1], [0.0, 1.0, 2.0, 0.0]);
        assert_eq!(flat[2], [0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 2.0, 1.0]);
        assert_eq!(flat[3], [1.0, 1.0, 2.0, 1.0]);
        assert_eq!(flat[4], [[1.0, 2.0], [4.0, 1.0]][w.rank()]);
        let want = [vec![], vec![0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 2.0, 1.0]];
        assert_eq!(flat[5], want[w.rank()]);
        let got = s.run(&got).unwrap();
        assert_eq!(got.as_slice::<i32>().unwrap(), [[0, 0], [2, 2]][w.rank()]);
    });
}

#[test]
fn sets_of_ranks_communicate_among_themselves() {
    on_worlds_with(3, &[vec![2, 0], vec![1]], |w| {
        let (pair, one) = (w.process_set(1).unwrap(), w.process_set(2).unwrap());
        assert_eq!((pair.ranks(), one.ranks()), (vec![2, 0], vec![1]));
        assert_eq!(w.process_set(0).unwrap().ranks(), [0, 1, 2]);
        assert!(w.process_set(3).err().unwrap().message().contains("names 2"));
        let own = if one.includes(w.rank()) { &one } else { &pair };
        let g = w.graph();
        let x = g.constant([[w.rank() as f32 + 1.0]]);
        let sum = own.all_reduce(&x, Reduction::Sum);
        let all = own.all_gather(&x);
        let root = if own.number() == 1 { 2 } else { 1 };
        let (from, wrong) = (own.broadcast(&x, root), own.broadcast(&x, 3 - root));
        let table = g.variable("table", init::ones([2, 1]));
        let loss = table.gather(&g.constant([0])).sum_all() * (w.rank() as f32 + 1.0);
        let train = w.optimizer(Sgd::new(1.0)).process_set(own).minimize(&loss);
        let s = initialized(&g).unwrap();
        let values: Vec<_> = s.run([&sum, &all, &from]).unwrap().iter().map(floats).collect();
        let alone = own.number() == 2;
        assert_eq!(values[0], [if alone { 2.0 } else { 4.0 }]);
        assert_eq!(values[1], if alone { vec![2.0] } else { vec![3.0, 1.0] });
        assert_eq!(values[2], [if alone { 2.0 } else { 3.0 }]);
        let refused = s.run(&wrong).unwrap_err();
        assert!(refused.message().contains("is not among its ranks"), "{refused}");
        s.run(&train).unwrap();
        // The mean of the members' values: 3 and 1, or 2.
        assert_eq!(floats(&s.run(&table).unwrap()), [-1.0, 1.0]);
        let value = Tensor::scalar(w.rank() as i32);
        let most = own.all_reduce_value("most", value, Reduction::Max).unwrap();
        assert_eq!(most.as_slice::<i32>().unwrap(), [if alone { 1 } else { 2 }]);
        own.barrier("end").unwrap();
    });
}

#[test]
fn rows_are_averaged_over_the_ranks_that_have_some_left() {
    let tables = on_worlds(3, |w| {
        let g = w.graph();
        let table = g.variable("table", init::ones([2, 1]));
        let dense = g.variable("dense", 1.0);
        let loss = table.gather(&g.constant([0])).sum_all() + &*dense;
        let train = w.optimizer(Sgd::new(0.25)).minimize(&loss);
        let s = initialized(&g).unwrap();
        for _ in 0..=w.rank() {
            s.run(&train).unwrap();
        }
        w.join().unwrap();
        let (table, dense) = s.run((&table, dense.scalar::<f32>())).unwrap();
        (floats(&table), dense)
    });
    // One, two and three steps; the mean is 1 whichever ranks take part.
    for (rank, (table, dense)) in tables.into_iter().enumerate() {
        let want = 1.0 - 0.25 * (rank + 1) as f32;
        assert!((table[0] - want).abs() < 1e-5 && table[1] == 1.0, "rank {rank}: {table:?}");
        assert_eq!(dense, want, "rank {rank}");
    }
}

/// The nodes that a node waits for, itself among them.
fn needed<'a>(nodes: &HashMap<&'a str, &'a NodeDef>, name: &'a str) -> HashSet<&'a str> {
    let (mut found, mut open) = (HashSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        if found.insert(name) {
            let inputs = nodes[name].inputs.iter();
            open.extend(inputs.map(|i| i.trim_start_matches('^').split(':').next().unwrap()));
        }
    }
    found
}

#[test]
fn a_gradient_is_reduced_while_the_backward_pass_goes_on() {
    let world = World::meet(Config::default(), &catalog()).unwrap();
    let g = world.graph();
    let mut x = g.constant([[1.0f32, 2.0]]);
    for layer in ["first", "second", "third"] {
        let w = g.variable(layer, init::ones([2, 2]));
        x = x.matmul(&w).tanh();
    }
    world.optimizer(Sgd::new(0.1)).minimize(&x.sum_all());
    let def = g.to_def().unwrap();
    let nodes: HashMap<&str, &NodeDef> = def.nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let reductions: Vec<_> = def.nodes.iter().filter(|n| n.op == "HorovodAllreduce").collect();
    assert_eq!(reductions.len(), 3);
    let needed: Vec<_> = reductions.iter().map(|n| needed(&nodes, &n.name)).collect();
    for (mine, waits) in reductions.iter().zip(&needed) {
        let others = reductions.iter().filter(|other| other.name != mine.name);
        assert!(others.clone().all(|o| !waits.contains(o.name.as_str())), "one after another");
    }
    // The last layer's gradient depends on fewer nodes than the second's, and that on fewer than
    // the first's.
    assert!(needed[2].len() < needed[1].len() && needed[1].len() < needed[0].len());
}

#[test]
fn a_gradient_goes_through_a_reduction() {
    on_worlds(2, |w| {
        let g = w.graph();
        let x = g.constant([1.0, 2.0]);
        let y = g.op("HorovodAllreduce").input(&x).attr("reduce_op", 1i64).output();
        let scale = w.rank() as f32 + 1.0;
        let dx = g.gradients(&[(&y * scale).sum_all()], &[x])[0].as_ref().unwrap().dense();
        assert_eq!(floats(&session(&g).unwrap().run(&dx).unwrap()), [3.0, 3.0]);
    });
}

/// Trains `w` towards a target that differs between ranks, with a table of which it looks up rows.
fn train(w: &World, optimizer: impl Optimizer, steps: usize) -> (f32, Vec<f32>) {
    let g = w.graph();
    let x = g.variable("x", 0.0);
    let table = g.variable("table", init::ones([4, 1]));
    let rows = table.gather(&g.constant([0, w.rank() as i32]));
    let loss = (&*x - w.rank() as f32).square() + rows.sum_all();
    let train = optimizer.minimize(&loss);
    let s = initialized(&g).unwrap();
    for _ in 0..steps {
        s.run(&train).unwrap();
    }
    let (x, table) = s.run((x.scalar::<f32>(), &table)).unwrap();
    (x, floats(&table))
}

#[test]
fn gradients_of_all_ranks_are_averaged_dense_and_sparse() {
    for dense in [false, true] {
        let all = on_worlds(2, |w| {
            let mut optimizer = w.optimizer(Sgd::new(0.25));
            if dense {
                optimizer = optimizer.sparse_as_dense();
            }
            train(w, optimizer, 2)
        });
        // The mean target is 0.5: x goes half the way to it in each step.
        assert_eq!(all[0].0, 0.375);
        assert_eq!(all[0], all[1]);
        // Row 0 is looked up three times by the ranks together, row 1 once.
        assert_eq!(all[0].1, [0.25, 0.75, 1.0, 1.0]);
    }
}

#[test]
fn one_rank_trains_as_the_optimizer_alone_does() {
    let alone = on_worlds(1, |w| train(w, Adam::new(0.1), 5)).remove(0);
    let wrapped = on_worlds(1, |w| train(w, w.optimizer(Adam::new(0.1)), 5)).remove(0);
    assert_eq!(alone, wrapped);
}

#[test]
fn accumulated_gradients_are_applied_together() {
    on_worlds(2, |w| {
        let g = w.graph();
        let x = g.variable("x", 0.0);
        let target = g.placeholder::<f32>("target", ());
        let loss = (&*x - &target).square();
        let optimizer = w.optimizer(Momentum::new(0.25, 0.9)).backward_passes_per_step(2);
        let step = g.global_step();
        let train = optimizer.minimize_counted(&loss, &step);
        let s = initialized(&g).unwrap();
        let mut seen = Vec::new();
        for i in 0..4 {
            // Means over ranks and passes: 1, then 1.
            let value = [0.0, 2.0, 1.0, 1.0][i] + [-0.5, 0.5][w.rank()];
            s.run_fed((&target, value), &train).unwrap();
            seen.push(s.run((x.scalar::<f32>(), step.scalar::<i64>())).unwrap());
        }
        assert_eq!(seen[..3], [(0.0, 0), (0.5, 1), (0.5, 1)]);
        assert_eq!(seen[3], (0.5 + 0.25 + 0.9 * 0.5, 2));
        let names: Vec<String> =
            g.global_variables().iter().map(|v| v.variable_name().to_string()).collect();
        assert!(names.contains(&"x/Momentum".to_string()), "{names:?}");
    });
}

#[test]
fn adasum_and_compression_reach_the_engine() {
    on_worlds(2, |w| {
        let same = train(w, w.optimizer(Sgd::new(0.25)).sparse_as_dense(), 1);
        for c in [Compression::Fp16, Compression::Bf16, Compression::TopK(1.0), Compression::OneBit]
        {
            let optimizer = w.optimizer(Sgd::new(0.25)).sparse_as_dense().compression(c);
            let got = train(w, optimizer, 1);
            if c != Compression::OneBit {
                assert_eq!(got, same, "{c:?}");
            }
        }
        let adasum = w.optimizer(Sgd::new(0.25)).sparse_as_dense().reduction(Reduction::Adasum);
        // Rank 0 has reached its target, so the gradient is rank 1's alone.
        assert_eq!(train(w, adasum, 1).0, 0.5);
        let g = w.graph();
        let bad = g.op("HorovodAllreduce").input(&g.constant(1.0)).attr("compression", "zip");
        let e = session(&g).unwrap().run(bad.output()).unwrap_err();
        assert!(e.message().contains("no compression \"zip\""), "{e}");
    });
}

#[test]
fn all_ranks_start_from_the_values_of_one() {
    on_worlds(3, |w| {
        let g = w.graph();
        let x = g.variable("x", w.rank() as f32);
        let flag = g.variable_with("flag", w.rank() == 2, VariableOptions::untrained());
        let broadcast = w.broadcast_variables(&g, 2);
        let s = initialized(&g).unwrap();
        s.run(&broadcast).unwrap();
        assert_eq!(s.run((x.scalar::<f32>(), flag.scalar::<bool>())).unwrap(), (2.0, true));
    });
}

#[test]
fn only_rank_0_leaves_checkpoints_and_all_go_on_from_them() {
    let dir = temporary("hvd");
    for (round, end) in [(0, 3), (1, 5)] {
        on_worlds(2, |w| {
            let g = w.graph();
            let x = g.variable("x", 0.0);
            let loss = (&*x - 1.0).square();
            let train = w.optimizer(Sgd::new(0.25)).minimize_counted(&loss, &g.global_step());
            let own = dir.join(w.rank().to_string());
            let training = w.training(&g, &train).dir(&own).hook(StopAtStep(end));
            let mut s = training.open(session).unwrap();
            assert_eq!(s.global_step(), [0, 3][round], "rank {}", w.rank());
            while !s.should_stop() {
                s.train(()).unwrap();
            }
            s.close().unwrap();
            assert_eq!(latest_checkpoint(&own).is_some(), w.rank() == 0);
            assert_eq!(own.exists(), w.rank() == 0);
        });
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn ranks_with_less_data_wait_for_the_others() {
    on_worlds(2, |w| {
        let g = w.graph();
        let x = g.variable("x", 0.0);
        let train = w.optimizer(Sgd::new(1.0)).minimize(&(&*x * -1.0));
        let s = initialized(&g).unwrap();
        for _ in 0..=w.rank() {
            s.run(&train).unwrap();
        }
        assert_eq!(w.join().unwrap(), 1);
        assert_eq!(s.run(x.scalar::<f32>()).unwrap(), w.rank() as f32 + 1.0);
    });
}

#[test]
fn every_op_that_communicates_has_a_gradient() {
    on_worlds(3, |w| {
        let (g, r) = (w.graph(), w.rank());
        // Rank r has r + 1 rows, and its loss counts r + 1 times.
        let scale = (r + 1) as f32;
        let x = g.constant(Tensor::from_slice([r + 1, 2], &vec![1f32; 2 * (r + 1)]).unwrap());
        let six = g.constant(Tensor::from_slice([6, 1], &[1f32; 6]).unwrap());
        let gradient = |y: &Output, x: &Output| {
            let counted = (y * scale).sum_all();
            g.gradients(&[counted], std::slice::from_ref(x))[0].as_ref().unwrap().dense()
        };
        let gathered = g.op("HorovodAllgather").input(&x).output();
        let from = g.op("HorovodBroadcast").input(&six).attr("root_rank", 1i64).output();
        let part = |op: i64| g.op("HorovodReducescatter").input(&six).attr("reduce_op", op);
        let parts = [0, 1].map(|op| part(op).output());
        let splits = g.constant([[6, 0, 0], [0, 1, 5], [2, 2, 2]][r]);
        let [traded, _] = g.op("HorovodAlltoall").input(&six).input(&splits).split();
        let all = [
            gradient(&gathered, &x),
            gradient(&from, &six),
            gradient(&parts[0], &six),
            gradient(&parts[1], &six),
            gradient(&traded, &six),
        ];
        let all: Vec<_> = session(&g).unwrap().run(&all).unwrap().iter().map(floats).collect();
        assert_eq!(
            all[0],
            vec![2.0; 2 * (r + 1)],
            "the mean of all ranks' losses counts for a row"
        );
        assert_eq!(all[1], [if r == 1 { 2.0 } else { 0.0 }; 6]);
        let of_rows = [1.0f32, 1.0, 2.0, 2.0, 3.0, 3.0];
        assert_eq!(all[2], of_rows);
        assert_eq!(all[3], of_rows.map(|x| x * 3.0));
        let want = [[1.0; 6], [2.0, 3.0, 3.0, 3.0, 3.0, 3.0], of_rows];
        assert_eq!(all[4], want[r], "the scale of the rank that got the row");
        let least = g.op("HorovodAllreduce").input(&six).attr("reduce_op", 3i64).output();
        g.gradients(&[least.sum_all()], std::slice::from_ref(&six));
        let e = g.check().unwrap_err();
        assert!(e.message().contains("the gradient of Min over ranks"), "{e}");
    });
}

#[test]
fn values_are_communicated_in_every_way() {
    on_worlds(3, |w| {
        let (all, r) = (w.all(), w.rank());
        assert!(w.is_initialized() && w.is_homogeneous());
        assert_eq!((all.size(), all.rank()), (3, Some(r)));
        let rows = |n: usize| Tensor::from_slice([n, 2], &vec![r as f32; 2 * n]).unwrap();
        let part = all.reduce_scatter_value("s", rows(4), Reduction::Sum).unwrap();
        assert_eq!(part.shape().dims(), [[2, 2], [1, 2], [1, 2]][r]);
        assert_eq!(floats(&part)[0], 3.0);
        let (got, splits) = all.all_to_all_value("t", rows(3), &[0, 1, 2]).unwrap();
        assert_eq!(splits, [r as i32; 3]);
        assert_eq!(got.shape().dims(), [3 * r, 2]);
        let both = vec![("a".to_string(), rows(1)), ("b".to_string(), rows(2))];
        let sums = all.grouped_all_reduce_values(both, Reduction::Sum).unwrap();
        assert_eq!(sums.iter().map(|t| floats(t)[0]).collect::<Vec<_>>(), [3.0, 3.0]);
        let mut later = all.all_reduce_async("l", rows(1), Reduction::Max);
        let gathered = all.all_gather_async("m", rows(r));
        while !later.is_done() {
            std::thread::yield_now();
        }
        assert_eq!(floats(&later.wait().unwrap()), [2.0; 2]);
        assert_eq!(gathered.wait().unwrap().shape().dims(), [3, 2]);
        let object = all.broadcast_bytes("o", ["", "one", "three"][r].as_bytes(), 1).unwrap();
        assert_eq!(object, b"one");
        let objects = all.all_gather_bytes("p", &vec![7; 2 * r]).unwrap();
        assert_eq!(objects, [vec![], vec![7; 2], vec![7; 4]]);
        w.shutdown();
        assert!(!w.is_initialized());
    });
}

#[test]
fn an_invalid_call_of_one_rank_fails_on_all_ranks() {
    on_worlds(2, |w| {
        let (all, r) = (w.all(), w.rank());
        let two = Tensor::vector(&[1f32, 2.0]);
        let e = all.all_to_all_value("t", two.clone(), [&[1, 1], &[3, -1]][r]).unwrap_err();
        assert!(e.message().contains("splits [3, -1] do not divide 2 rows on ranks [1]"), "{e}");
        let g = w.graph();
        let splits = g.constant([[1, 1], [1, 0]][r]);
        let traded = g.op("HorovodAlltoall").input(&g.constant([1.0, 2.0])).input(&splits);
        let e = session(&g).unwrap().run(traded.output()).unwrap_err();
        assert!(e.message().contains("splits [1, 0] do not divide 2 rows on ranks [1]"), "{e}");
        let scalar = Tensor::scalar(1f32);
        let e = all.all_gather_value("g", if r == 0 { scalar } else { two }).unwrap_err();
        assert!(e.message().contains("a scalar has no rows") && e.message().contains("[0]"), "{e}");
    });
}

#[test]
fn sets_are_made_at_any_time() {
    on_worlds(3, |w| {
        let pair = w.add_process_set(&[2, 0]).unwrap();
        assert_eq!((pair.number(), pair.ranks()), (1, vec![2, 0]));
        assert_eq!(pair.rank(), [Some(1), None, Some(0)][w.rank()]);
        if pair.includes(w.rank()) {
            let g = w.graph();
            let x = g.constant(w.rank() as f32);
            let sum = g.op("HorovodAllreduce").input(&x).attr("process_set", 1i64).output();
            assert_eq!(session(&g).unwrap().run(sum.scalar::<f32>()).unwrap(), 1.0);
        }
        let e = w.add_process_set(&[7]).err().unwrap();
        assert!(e.message().contains("no rank 7 among 3"), "{e}");
    });
}

#[test]
fn passes_may_be_added_up_and_gradients_divided_first() {
    on_worlds(2, |w| {
        let moved = |optimizer: DistributedOptimizer<Sgd>| {
            let g = w.graph();
            let x = g.variable("x", 0.0);
            let train = optimizer.minimize(&(&*x * -3.0));
            let s = initialized(&g).unwrap();
            s.run(&train).unwrap();
            s.run(&train).unwrap();
            s.run(x.scalar::<f32>()).unwrap()
        };
        let sgd = || w.optimizer(Sgd::new(1.0));
        assert_eq!(moved(sgd().backward_passes_per_step(2)), 3.0);
        let sum = sgd().backward_passes_per_step(2).average_aggregated_gradients(false);
        assert_eq!(moved(sum), 6.0);
        let half = |factor: f32| {
            // The sum over ranks is twice the largest half float.
            let g = w.graph();
            let x = g.variable("x", 0.0);
            let optimizer = w.optimizer(Sgd::new(1.0)).compression(Compression::Fp16);
            let train = optimizer.gradient_predivide_factor(factor).minimize(&(&*x * -65504.0));
            let s = initialized(&g).unwrap();
            s.run(&train).unwrap();
            s.run(x.scalar::<f32>()).unwrap()
        };
        assert_eq!((half(1.0), half(2.0)), (f32::INFINITY, 65504.0));
        let g = w.graph();
        let x = g.variable("x", 0.0);
        w.optimizer(Sgd::new(1.0)).gradient_predivide_factor(0.0).minimize(&x.read());
        assert!(g.check().unwrap_err().message().contains("gradient_predivide_factor of 0"));
    });
}

#[test]
fn a_step_that_is_cancelled_does_not_wait_for_the_other_ranks() {
    on_worlds(2, |w| {
        let g = w.graph();
        let sum = g.op("HorovodAllreduce").input(&g.constant(1.0)).output();
        if w.rank() == 0 {
            let s = session(&g).unwrap().with_timeout(std::time::Duration::from_millis(20));
            assert_eq!(s.run(&sum).unwrap_err().code(), Code::DeadlineExceeded);
        }
        w.barrier("both are still there").unwrap();
    });
}

#[test]
fn after_a_shutdown_steps_fail_with_a_reason() {
    on_worlds(1, |w| {
        let g = w.graph();
        let sum = g.op("HorovodAllreduce").input(&g.constant(1.0)).output();
        let s = session(&g).unwrap();
        s.run(&sum).unwrap();
        w.shutdown();
        assert_eq!(s.run(&sum).unwrap_err().code(), Code::FailedPrecondition);
    });
}

#[test]
fn rates_warm_up_to_the_scaled_one() {
    on_worlds(2, |w| {
        let g = w.graph();
        let step = g.variable("step", 5i64);
        let rate = w.warmed_up_rate(0.1, &step, 10.0);
        let got = initialized(&g).unwrap().run(rate.scalar::<f32>()).unwrap();
        assert!((got - 0.15).abs() < 1e-6);
        let at_once = w.warmed_up_rate(0.1, &g.variable("start", 0i64), 0.0);
        assert_eq!(initialized(&g).unwrap().run(at_once.scalar::<f32>()).unwrap(), 0.2);
        let none: Vec<GradAndVar> = Vec::new();
        assert!(w.optimizer(Sgd::new(0.1)).compute_gradients(&rate, &[]).len() == none.len());
    });
}
