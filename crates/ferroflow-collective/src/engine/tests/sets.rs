//! Tests of collectives of process sets, whose order differs from that of the ranks.

use super::*;

const ODD: [usize; 3] = [4, 0, 2];

fn in_odd() -> SubmitOptions {
    SubmitOptions { set: SetId(2), ..SubmitOptions::default() }
}

/// Runs every collective in the set [`ODD`], as the member at index `place`.
fn all_kinds(engine: &Engine, place: usize, len: usize) {
    let r = engine.rank();
    let op = |op| SubmitOptions { op, ..in_odd() };
    assert_eq!(*engine.members(SetId(2)).unwrap(), ODD.map(|m| m as u32));
    for (reduction, want) in ReduceOp::ALL.into_iter().zip([6f32, 2.0, 0.0, 4.0, 0.0]) {
        let all = engine.all_reduce("r", vec![r as f32; len], op(reduction)).unwrap();
        assert_eq!(all.wait().unwrap(), vec![want; len], "{reduction}");
    }
    for root in ODD {
        let sent = engine.broadcast("b", vec![r as u16; len], root, in_odd()).unwrap();
        assert_eq!(sent.wait().unwrap(), vec![root as u16; len]);
    }
    let gathered = engine.all_gather(
        "g",
        vec![r; (place + 1) * len].iter().map(|&r| r as i64).collect(),
        in_odd(),
    );
    let (values, counts) = gathered.unwrap().wait_with_counts().unwrap();
    let want = ODD.iter().zip(1..).flat_map(|(&m, n)| vec![m as i64; n * len]);
    assert_eq!((values, counts), (want.collect(), vec![len, 2 * len, 3 * len]));
    for (reduction, times) in [(ReduceOp::Sum, 3.0), (ReduceOp::Mean, 1.0)] {
        let values = (0..3 * len + 1).map(|i| i as f64).collect();
        let part = engine.reduce_scatter("s", values, op(reduction)).unwrap();
        let ends = [0, len + 1, 2 * len + 1, 3 * len + 1];
        let want = (ends[place]..ends[place + 1]).map(|i| i as f64 * times);
        assert_eq!(part.wait().unwrap(), want.collect::<Vec<_>>());
    }
    // The member at index p sends the value 10 p + q to the member at index q, (q + 1) * `len`
    // times.
    let values = (0..3).flat_map(|q| vec![(10 * place + q) as i32; (q + 1) * len]).collect();
    let splits = (1..4).map(|n| n * len).collect();
    let swapped = engine.all_to_all("t", values, splits, in_odd()).unwrap();
    let want = (0..3).flat_map(|p| vec![(10 * p + place) as i32; (place + 1) * len]);
    let counts = vec![(place + 1) * len; 3];
    assert_eq!(swapped.wait_with_counts().unwrap(), (want.collect(), counts));
    let upright = (0..3 * len).map(|i| if i % 3 == place { r as f32 } else { 0.0 }).collect();
    let sum = engine.adasum("a", upright, in_odd()).unwrap();
    let want = (0..3 * len).map(|i| ODD[i % 3] as f32);
    assert_eq!(sum.wait().unwrap(), want.collect::<Vec<_>>());
    for compression in [
        WireCompression::Fp16,
        WireCompression::Bf16,
        WireCompression::TopK(1 << 20),
        WireCompression::OneBit,
    ] {
        let ask = SubmitOptions { compression, ..op(ReduceOp::Mean) };
        let mean = engine.all_reduce("c", vec![r as f32; len], ask).unwrap();
        assert_eq!(mean.wait().unwrap(), vec![2.0; len], "{compression}");
    }
    engine.barrier("e", SetId(2)).unwrap();
}

#[test]
fn collectives_of_a_set_use_the_order_of_the_set() {
    for transport in [TransportChoice::Auto, TransportChoice::Tcp] {
        on_engines_over((transport, None), 5, EngineOptions::default(), |engine| {
            let place = ODD.iter().position(|&m| m == engine.rank());
            if let Some(place) = place {
                // The second one is too long for one message.
                all_kinds(engine, place, 2);
                all_kinds(engine, place, 40_000);
                let lost = engine.broadcast("b", vec![0u8], 1, in_odd()).unwrap();
                let e = lost.wait().unwrap_err();
                let text =
                    "root 1 of a broadcast is not among its ranks [4, 0, 2] on ranks [0, 2, 4]";
                assert!(e.message().contains(text), "{e}");
            }
            let all = engine.all_reduce("r", vec![1u8], SubmitOptions::default()).unwrap();
            assert_eq!(all.wait().unwrap(), [5]);
        });
    }
}

#[test]
fn sets_that_share_ranks_and_names_are_independent() {
    on_engines(5, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let mut sets = vec![(SetId::WORLD, 10.0), (SetId(1), 2.0), (SetId(2), 6.0)];
        sets.retain(|(set, _)| engine.members(*set).unwrap().contains(&(r as u32)));
        sets.rotate_left(r % 2);
        let submit = |set| {
            let tensors = (0..3).map(|i| (i.to_string(), vec![r as f32; 3])).collect();
            engine
                .grouped_all_reduce(tensors, &SubmitOptions { set, ..SubmitOptions::default() })
                .unwrap()
        };
        for _ in 0..3 {
            let handles: Vec<_> = sets.iter().map(|&(set, want)| (submit(set), want)).collect();
            for (group, want) in handles {
                for handle in group {
                    assert_eq!(handle.wait().unwrap(), [want; 3]);
                }
            }
        }
    });
}

#[test]
fn a_set_works_with_a_member_that_has_joined() {
    on_engines(5, EngineOptions::default(), |engine| {
        let r = engine.rank();
        if r == 0 || r == 4 {
            let ask = |op| SubmitOptions { op, ..in_odd() };
            let mean = engine.all_reduce("m", vec![r as f32; 2], ask(ReduceOp::Mean)).unwrap();
            assert_eq!(mean.wait().unwrap(), [2.0; 2]);
            let part = engine.reduce_scatter("s", vec![r as f32; 3], ask(ReduceOp::Mean)).unwrap();
            assert_eq!(part.wait().unwrap(), [2.0]);
            let all = engine.all_gather("g", vec![r as u8], in_odd()).unwrap();
            assert_eq!(all.wait_with_counts().unwrap(), (vec![4, 0], vec![1, 1, 0]));
        }
        engine.join().unwrap().wait().unwrap();
    });
}

#[test]
fn ranks_with_different_sets_are_named_in_the_error_of_all() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let (listener, address) = (&listener, &address);
            scope.spawn(move || {
                let member = Membership::new(rank, 3, address.as_str());
                let options = GroupOptions {
                    model: Some(crate::LinkCostModel::default()),
                    ..GroupOptions::default()
                };
                let mut group = match rank {
                    0 => Group::host(&member, options, listener.lock().take().unwrap()).unwrap(),
                    _ => Group::join(&member, options).unwrap(),
                };
                let order = if rank == 2 { [2, 0] } else { [0, 2] };
                group.add_set(&order).unwrap();
                let engine = Engine::start(group, EngineOptions::default()).unwrap();
                let sum = engine.all_reduce("w", vec![1f32], SubmitOptions::default());
                let end = sum
                    .and_then(CollectiveHandle::wait)
                    .and_then(|_| engine.barrier("b", SetId::WORLD));
                let e = end.unwrap_err();
                assert_eq!(e.code(), Code::InvalidArgument, "{e}");
                let text = "rank 2 has the process sets [[2, 0]], rank 0 has [[0, 2]]";
                assert!(e.message().contains(text), "{e}");
            });
        }
    });
}

#[test]
fn sets_can_be_added_while_ranks_work_if_all_agree() {
    on_engines(4, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let other = engine.all_reduce("w", vec![1f32; 9], SubmitOptions::default()).unwrap();
        let set = engine.add_set(&[3, 1]).unwrap().wait().unwrap();
        assert_eq!(*engine.members(set).unwrap(), [3, 1]);
        if r % 2 == 1 {
            let ask = SubmitOptions { set, ..SubmitOptions::default() };
            let all = engine.all_gather("g", vec![r as u8], ask.clone()).unwrap();
            assert_eq!(all.wait().unwrap(), [3, 1]);
            let sum = engine.all_reduce("s", vec![r as f32; 70_000], ask).unwrap();
            assert_eq!(sum.wait().unwrap(), vec![4.0; 70_000]);
        }
        assert_eq!(other.wait().unwrap(), [4.0; 9]);
        let e = engine.add_set(&[[0, 1], [1, 0]][r / 3]).unwrap().wait().unwrap_err();
        let text = "ranks [3] want process set of ranks [1, 0], ranks [0, 1, 2] want process set";
        assert!(e.message().contains(text), "{e}");
        let e = engine.add_set(&[0, 4]).unwrap().wait().unwrap_err();
        assert!(e.message().contains("no rank 4 among 4"), "{e}");
        let next = engine.add_set(&[2]).unwrap().wait().unwrap();
        assert_eq!(usize::from(next.0), usize::from(set.0) + 1);
    });
}

#[test]
fn a_joined_rank_learns_of_new_sets() {
    on_engines(3, EngineOptions::default(), |engine| {
        let made = match engine.rank() {
            2 => None,
            _ => Some(engine.add_set(&[2, 0]).unwrap().wait().unwrap()),
        };
        engine.join().unwrap().wait().unwrap();
        let set = made.unwrap_or(SetId(2));
        assert_eq!(*engine.members(set).unwrap(), [2, 0]);
        if engine.rank() != 1 {
            let sum = engine
                .all_reduce("s", vec![1u8], SubmitOptions { set, ..SubmitOptions::default() })
                .unwrap();
            assert_eq!(sum.wait().unwrap(), [2]);
        }
    });
}
