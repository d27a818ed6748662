//! Tests of engines with several ranks over real links.

mod determinism;
mod foreign;
mod groups;
mod join;
mod leaving;
mod mismatches;
mod sets;

use super::*;
use crate::group::GroupOptions;
use crate::link_cost::Algorithm;
use crate::rendezvous::{Membership, TransportChoice};
use crate::{ReduceOp, WireCompression};
use ferroflow_core::Code;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

/// Runs `each` on the engines of `n` ranks. Three and more ranks have set 1 with ranks 0 and 2.
/// Five ranks have set 2 with ranks 4, 0 and 2 in this order.
fn on_engines<R: Send>(
    n: usize,
    options: EngineOptions,
    each: impl Fn(&Engine) -> R + Sync,
) -> Vec<R> {
    on_engines_over((TransportChoice::Auto, None), n, options, each)
}

fn on_engines_over<R: Send>(
    (transport, algorithm): (TransportChoice, Option<Algorithm>),
    n: usize,
    options: EngineOptions,
    each: impl Fn(&Engine) -> R + Sync,
) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    std::thread::scope(|scope| {
        let (each, address, listener, options) = (&each, &address, &listener, &options);
        let ranks: Vec<_> = (0..n)
            .map(|rank| {
                scope.spawn(move || {
                    let mut member = Membership::new(rank, n, address.clone());
                    member.transport = transport;
                    let model = Some(crate::LinkCostModel::default());
                    let group_options =
                        GroupOptions { model, algorithm, ..GroupOptions::default() };
                    let mut group = match rank {
                        0 => {
                            let bound = listener.lock().take().unwrap();
                            Group::host(&member, group_options, bound).unwrap()
                        }
                        _ => Group::join(&member, group_options).unwrap(),
                    };
                    if n > 2 {
                        group.add_set(&[0, 2]).unwrap();
                    }
                    if n > 4 {
                        group.add_set(&[4, 0, 2]).unwrap();
                    }
                    each(&Engine::start(group, options.clone()).unwrap())
                })
            })
            .collect();
        ranks.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

/// The standard error of this program when it runs only the test `name`.
fn stderr_of(name: &str, verbose: &str) -> String {
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("FERROFLOW_VERBOSE", verbose)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn stalls_are_always_printed_and_choices_only_if_verbose() {
    let name = "engine::tests::the_error_of_a_stall_names_the_missing_rank";
    for (verbose, chosen) in [("", false), ("0", false), ("1", true)] {
        let printed = stderr_of(name, verbose);
        assert!(printed.contains("ferroflow: tensor \"w\" has waited"), "{printed}");
        // Rank 0 or 1 may be late, too.
        assert!(printed.contains("2]; ranks ["), "{printed}");
        assert_eq!(printed.contains("ferroflow: 3 ranks, 1 host(s), "), chosen, "{printed}");
        assert_eq!(printed.contains("us per message"), chosen, "{printed}");
    }
}

/// Submits a tensor until the error of its stall names only the missing ranks. Earlier errors may
/// also name late ranks.
fn stalls(engine: &Engine, name: &str, missing: &str) {
    loop {
        let e = engine
            .all_reduce(name, vec![1f32], SubmitOptions::default())
            .unwrap()
            .wait()
            .unwrap_err();
        assert_eq!(e.code(), Code::DeadlineExceeded);
        assert!(e.message().contains(&format!("tensor {name:?}")), "{e}");
        if e.message().contains(missing) {
            return;
        }
    }
}

#[test]
fn tensors_submitted_in_any_order_are_reduced_by_name() {
    on_engines(3, EngineOptions::default(), |engine| {
        for _ in 0..3 {
            let mut names: Vec<usize> = (0..20).collect();
            names.rotate_left(engine.rank() * 7);
            let handles: Vec<_> = names
                .iter()
                .map(|&i| {
                    let values = vec![(engine.rank() + i) as f32; i * 10];
                    let ask = SubmitOptions { priority: i as i32, ..SubmitOptions::default() };
                    (i, engine.all_reduce(&format!("grad{i}"), values, ask).unwrap())
                })
                .collect();
            for (i, handle) in handles {
                assert_eq!(handle.wait().unwrap(), vec![(3 + 3 * i) as f32; i * 10]);
            }
        }
        if engine.rank() == 0 {
            let stats = engine.stats();
            assert!(stats.cache_hits >= 60, "{stats:?}");
            assert!(stats.runs < stats.pieces, "some were fused: {stats:?}");
        }
    });
}

#[test]
fn large_tensors_are_cut_into_pieces_and_groups_run_together() {
    let options = EngineOptions { piece: 1000, ..EngineOptions::default() };
    on_engines(2, options, |engine| {
        let big = engine
            .all_reduce("big", vec![1.5f32; 10_001], SubmitOptions::op(ReduceOp::Mean))
            .unwrap();
        let tensors = (0..3).map(|i| (format!("g{i}"), vec![i; 5])).collect();
        let group = engine.grouped_all_reduce(tensors, &SubmitOptions::default()).unwrap();
        assert_eq!(big.wait().unwrap(), vec![1.5; 10_001]);
        for (i, handle) in group.into_iter().enumerate() {
            assert_eq!(handle.wait().unwrap(), vec![2 * i as i32; 5]);
        }
    });
}

#[test]
fn every_kind_of_collective_can_be_submitted() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let gathered = engine.all_gather("g", vec![r as u8; r], SubmitOptions::default()).unwrap();
        assert_eq!(gathered.wait_with_counts().unwrap(), (vec![1, 2, 2], vec![0, 1, 2]));
        let sent = engine.broadcast("b", vec![r as f64; 4], 2, SubmitOptions::default()).unwrap();
        assert_eq!(sent.wait().unwrap(), [2.0; 4]);
        let part =
            engine.reduce_scatter("s", vec![1i64, 2, 3, 4], SubmitOptions::default()).unwrap();
        assert_eq!(part.wait().unwrap(), [vec![3, 6], vec![9], vec![12]][r]);
        let splits = vec![1, 0, 2];
        let all =
            engine.all_to_all("a", vec![r as i32; 3], splits, SubmitOptions::default()).unwrap();
        let want = [vec![0, 1, 2], vec![], vec![0, 0, 1, 1, 2, 2]];
        assert_eq!(all.wait().unwrap(), want[r]);
        engine.barrier("end", SetId::WORLD).unwrap();
        if r != 1 {
            let ask = SubmitOptions { set: SetId(1), ..SubmitOptions::default() };
            let some = engine.all_reduce("set", vec![r as f32], ask).unwrap();
            assert_eq!(some.wait().unwrap(), [2.0]);
        }
    });
}

#[test]
fn the_error_of_a_stall_names_the_missing_rank() {
    let options = EngineOptions {
        stall_warning: Duration::from_millis(10),
        stall_deadline: Duration::from_millis(40),
        ..EngineOptions::default()
    };
    // Rank 2 submits nothing until the others have their error.
    let (here, gone) = channel::<()>();
    let (here, gone) = (Mutex::new(vec![here.clone(), here]), Mutex::new(gone));
    on_engines(3, options, |engine| {
        if engine.rank() == 2 {
            assert!(gone.lock().recv().is_err());
        } else {
            let _here = here.lock().pop();
            stalls(engine, "w", "for ranks [2]");
        }
    });
}

#[test]
fn compressed_sums_are_right_and_residuals_follow() {
    on_engines(2, EngineOptions::default(), |engine| {
        let ask = |compression| SubmitOptions { compression, ..SubmitOptions::default() };
        for c in [WireCompression::Fp16, WireCompression::Bf16] {
            let sum = engine.all_reduce("half", vec![0.5f32; 1000], ask(c)).unwrap();
            assert_eq!(sum.wait().unwrap(), vec![1.0; 1000]);
        }
        let mut total = [0.0; 3];
        for step in 0..3 {
            let values = if step == 0 { vec![3.0f32, 2.0, 1.0] } else { vec![0.0; 3] };
            let sum = engine.all_reduce("top", values, ask(WireCompression::TopK(1))).unwrap();
            sum.wait().unwrap().iter().zip(&mut total).for_each(|(s, t)| *t += s);
        }
        assert_eq!(total, [6.0, 4.0, 2.0]);
        let signs = vec![1.0f32, -1.0, 1.0];
        let sum = engine.all_reduce("bit", signs, ask(WireCompression::OneBit)).unwrap();
        assert_eq!(sum.wait().unwrap(), [2.0, -2.0, 2.0]);
    });
}

#[test]
fn a_tensor_in_flight_cannot_be_submitted_again() {
    on_engines(1, EngineOptions::default(), |engine| {
        let big = vec![0f32; 1 << 20];
        let first = engine.all_reduce("w", big.clone(), SubmitOptions::default()).unwrap();
        if let Err(e) = engine.all_reduce("w", big, SubmitOptions::default()) {
            assert_eq!(e.code(), Code::AlreadyExists);
        }
        first.wait().unwrap();
    });
}

#[test]
fn tensors_keep_their_shape_and_their_storage() {
    on_engines(2, EngineOptions::default(), |engine| {
        let (sender, results) = std::sync::mpsc::channel();
        let submit = |name: &str, tensor: Tensor, what: Collective| {
            let sender = sender.clone();
            let done = move |r| drop(sender.send(r));
            engine.submit_tensor(name, tensor, what, SubmitOptions::default(), done);
            results.recv().unwrap()
        };
        let r = engine.rank();
        let mut x = Tensor::from_slice([2, 2], &[r as f32; 4]).unwrap();
        let at = x.bytes_mut().unwrap().as_ptr();
        let (sum, _) = submit("x", x, Collective::AllReduce).unwrap();
        assert_eq!(sum, Tensor::from_slice([2, 2], &[1f32; 4]).unwrap());
        assert_eq!(sum.bytes().unwrap().as_ptr(), at, "in place");
        let rows = Tensor::from_slice([r + 1, 2], &vec![r == 1; 2 * r + 2]).unwrap();
        let (all, counts) = submit("rows", rows, Collective::AllGather).unwrap();
        assert_eq!(all, Tensor::vector(&[false, false, true, true, true, true]));
        assert_eq!(counts, [2, 4]);
        let same = Tensor::from_slice([1, 2], &[3f64, 4.0]).unwrap();
        let (once, _) = submit("same", same.clone(), Collective::Adasum).unwrap();
        assert_eq!(once, same);
        let e = submit("text", Tensor::string("a"), Collective::Broadcast { root: 0 });
        assert_eq!(e.unwrap_err().code(), Code::Unimplemented);
    });
}

#[test]
fn the_timeline_shows_the_phases_of_each_tensor() {
    let path = std::env::temp_dir().join(format!("ferroflow-engine-{}", fastrand::u64(..)));
    let options =
        EngineOptions { timeline: Some(path.clone()), piece: 40, ..EngineOptions::default() };
    on_engines(1, options, |engine| {
        engine
            .all_reduce("grad", vec![1f32; 25], SubmitOptions::default())
            .unwrap()
            .wait()
            .unwrap();
    });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let count = |what: &str| text.matches(&format!("\"name\":\"{what}\"")).count();
    assert_eq!((count("grad"), count("NEGOTIATE_ALLREDUCE")), (1, 1), "{text}");
    assert_eq!((count("QUEUE"), count("ALLREDUCE")), (3, 3), "{text}");
}

#[test]
fn set_timeline_starts_and_ends_a_trace() {
    let path = std::env::temp_dir().join(format!("ferroflow-engine-{}", fastrand::u64(..)));
    on_engines(1, EngineOptions::default(), |engine| {
        let reduce = |name: &str| {
            engine.all_reduce(name, vec![1f32], SubmitOptions::default()).unwrap().wait().unwrap();
        };
        reduce("before");
        assert!(engine.set_timeline(Some(Path::new("/nowhere/at/all"))).is_err());
        assert!(engine.set_timeline(Some(&path)).unwrap().recv().is_err());
        reduce("within");
        assert!(engine.set_timeline(None).unwrap().recv().is_err());
        reduce("after");
        let text = std::fs::read_to_string(&path).unwrap();
        let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |name: &str| trace.to_string().contains(name);
        assert_eq!((of("before"), of("within"), of("after")), (false, true, false), "{trace}");
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn servers_sum_for_the_ranks_and_end_with_them() {
    for (n, k, servers_only) in
        [(2, 1, false), (3, 2, false), (2, 3, false), (3, 1, true), (1, 1, false)]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let listener = Mutex::new(Some(listener));
        std::thread::scope(|scope| {
            for rank in 0..n + k {
                let (listener, address) = (&listener, &address);
                scope.spawn(move || {
                    let mut member = Membership::new(rank, n + k, address.clone());
                    (member.servers, member.servers_only) = (k, servers_only);
                    let options = GroupOptions::default();
                    let group = match rank {
                        0 => Group::host(&member, options, listener.lock().take().unwrap()),
                        _ => Group::join(&member, options),
                    };
                    let group = group.unwrap();
                    assert_eq!((group.size(), group.is_server()), (n, rank >= n));
                    let options = EngineOptions { piece: 4000, ..EngineOptions::default() };
                    let engine = Engine::start(group, options).unwrap();
                    if rank >= n {
                        return engine.serve().unwrap();
                    }
                    let values = |i: usize| vec![(rank + i) as f32; 700 * i + i];
                    let submit = |i: usize| {
                        let ask = SubmitOptions::op(ReduceOp::Mean);
                        engine.all_reduce(&i.to_string(), values(i), ask).unwrap()
                    };
                    let handles: Vec<_> = (0..6).map(submit).collect();
                    for (i, handle) in handles.into_iter().enumerate() {
                        let mean = (n - 1) as f32 / 2.0 + i as f32;
                        assert_eq!(handle.wait().unwrap(), vec![mean; 700 * i + i]);
                    }
                    let half = SubmitOptions {
                        compression: WireCompression::Fp16,
                        ..SubmitOptions::default()
                    };
                    let half = engine.all_reduce("half", vec![1f32; 9], half).unwrap();
                    assert_eq!(half.wait().unwrap(), [n as f32; 9]);
                    let from =
                        engine.broadcast("b", vec![rank as i32], n - 1, SubmitOptions::default());
                    assert_eq!(from.unwrap().wait().unwrap(), [n as i32 - 1]);
                    if rank > 0 {
                        let late =
                            engine.all_reduce("late", values(1), SubmitOptions::op(ReduceOp::Mean));
                        let mean = n as f32 / 2.0 + 1.0;
                        assert_eq!(late.unwrap().wait().unwrap(), vec![mean; 701]);
                    }
                    engine.join().unwrap().wait().unwrap();
                });
            }
        });
    }
}
