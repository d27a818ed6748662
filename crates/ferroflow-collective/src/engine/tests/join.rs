//! Tests of ranks that have joined, and take part without data.

use super::*;

#[test]
fn joined_ranks_contribute_no_values() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        for step in 0..=r {
            let name = format!("step{step}");
            let mean =
                engine.all_reduce(&name, vec![r as f32; 2], SubmitOptions::op(ReduceOp::Mean));
            let want = [1.0, 1.5, 2.0][step];
            assert_eq!(mean.unwrap().wait().unwrap(), [want; 2]);
            let least = engine.all_reduce(
                &format!("min{step}"),
                vec![r as i32],
                SubmitOptions::op(ReduceOp::Min),
            );
            assert_eq!(least.unwrap().wait().unwrap(), [step as i32]);
        }
        assert_eq!(engine.join().unwrap().wait().unwrap(), 2);
        let after = engine.all_reduce("after", vec![1u8], SubmitOptions::default()).unwrap();
        assert_eq!(after.wait().unwrap(), [3]);
    });
}

#[test]
fn means_are_divided_by_all_ranks_if_joined_ones_count() {
    let options = EngineOptions { mean_counts_joined: true, ..EngineOptions::default() };
    on_engines(3, options, |engine| {
        if engine.rank() < 2 {
            let mean = || SubmitOptions::op(ReduceOp::Mean);
            let one = engine.all_reduce("one", vec![3.0f32; 4], mean()).unwrap();
            let part = engine.reduce_scatter("part", vec![3i32; 6], mean()).unwrap();
            let two = (0..2).map(|i| (format!("group {i}"), vec![6.0f32; 2])).collect();
            let two = engine.grouped_all_reduce(two, &mean()).unwrap();
            assert_eq!(one.wait().unwrap(), [2.0; 4]);
            assert_eq!(part.wait().unwrap(), [2; 2]);
            for each in two {
                assert_eq!(each.wait().unwrap(), [4.0; 2]);
            }
        }
        engine.join().unwrap().wait().unwrap();
        let after = engine.all_reduce("after", vec![3.0f32], SubmitOptions::op(ReduceOp::Mean));
        assert_eq!(after.unwrap().wait().unwrap(), [3.0]);
    });
}

/// The reductions of 2 and 4 over two of three ranks, by [`ReduceOp::ALL`].
const OF_TWO_AND_FOUR: [u8; 5] = [6, 3, 2, 4, 8];

fn reductions_without_rank_2<T: Number + From<u8> + PartialEq + std::fmt::Debug>(engine: &Engine) {
    let mine = T::from(2 * (engine.rank() as u8 + 1));
    for (op, want) in ReduceOp::ALL.into_iter().zip(OF_TWO_AND_FOUR.map(T::from)) {
        let name = format!("{:?} {op}", T::DTYPE);
        let all = engine.all_reduce(&name, vec![mine; 5], SubmitOptions::op(op)).unwrap();
        let part =
            engine.reduce_scatter(&format!("{name} part"), vec![mine; 5], SubmitOptions::op(op));
        let group = (0..2).map(|i| (format!("{name} {i}"), vec![mine; i])).collect();
        let group = engine.grouped_all_reduce(group, &SubmitOptions::op(op)).unwrap();
        assert_eq!(all.wait().unwrap(), [want; 5], "{name}");
        assert_eq!(part.unwrap().wait().unwrap(), [want; 2], "{name}");
        for (i, handle) in group.into_iter().enumerate() {
            assert_eq!(handle.wait().unwrap(), vec![want; i], "{name}");
        }
    }
}

#[test]
fn every_collective_works_with_a_joined_rank() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        if r == 2 {
            engine.join().unwrap().wait().unwrap();
            return;
        }
        reductions_without_rank_2::<f32>(engine);
        reductions_without_rank_2::<f64>(engine);
        reductions_without_rank_2::<ferroflow_core::f16>(engine);
        reductions_without_rank_2::<ferroflow_core::bf16>(engine);
        reductions_without_rank_2::<i64>(engine);
        reductions_without_rank_2::<u8>(engine);
        let gathered =
            engine.all_gather("g", vec![r as u8; r + 1], SubmitOptions::default()).unwrap();
        assert_eq!(gathered.wait_with_counts().unwrap(), (vec![0, 1, 1], vec![1, 2, 0]));
        let sent =
            engine.all_to_all("a", vec![r as i32; 3], vec![1, 0, 2], SubmitOptions::default());
        let want = [(vec![0, 1], vec![1, 1, 0]), (vec![], vec![0, 0, 0])];
        assert_eq!(sent.unwrap().wait_with_counts().unwrap(), want[r]);
        let sent = engine.broadcast("b", vec![r as f64; 4], 1, SubmitOptions::default()).unwrap();
        assert_eq!(sent.wait().unwrap(), [1.0; 4]);
        let lost = engine.broadcast("c", vec![r as f64; 4], 2, SubmitOptions::default()).unwrap();
        assert_eq!(lost.wait().unwrap_err().code(), Code::FailedPrecondition);
        let upright = if r == 0 { vec![3f32, 0.0] } else { vec![0.0, 4.0] };
        let both = engine.adasum("d", upright, SubmitOptions::default()).unwrap();
        assert_eq!(both.wait().unwrap(), [3.0, 4.0]);
        engine.barrier("e", SetId::WORLD).unwrap();
        for (i, compression) in [
            WireCompression::Fp16,
            WireCompression::Bf16,
            WireCompression::TopK(1),
            WireCompression::OneBit,
        ]
        .into_iter()
        .enumerate()
        {
            for (op, want) in [(ReduceOp::Sum, 6.0), (ReduceOp::Mean, 3.0)] {
                let ask = SubmitOptions { op, compression, ..SubmitOptions::default() };
                let values = vec![0.0, 2.0 * (r as f32 + 1.0)];
                let less = engine.all_reduce(&format!("{i} {op}"), values, ask).unwrap();
                let less = less.wait().unwrap();
                // Both values have the same sign, so one-bit compression has one mean for them.
                let one_bit = compression == WireCompression::OneBit;
                let want = if one_bit { [want / 2.0; 2] } else { [0.0, want] };
                assert_eq!(less, want, "{compression} {op}");
            }
        }
        engine.join().unwrap().wait().unwrap();
    });
}

#[test]
fn a_tensor_submitted_before_a_join_has_its_values() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let from = engine.broadcast("b", vec![r as i32; 3], 1, SubmitOptions::default()).unwrap();
        let mean =
            engine.all_reduce("m", vec![r as f32], SubmitOptions::op(ReduceOp::Mean)).unwrap();
        let last = engine.join().unwrap();
        assert_eq!(from.wait().unwrap(), [1; 3]);
        assert_eq!(mean.wait().unwrap(), [1.0]);
        last.wait().unwrap();
    });
}

#[test]
fn a_tensor_submitted_after_a_join_belongs_to_a_later_collective() {
    // The tensor that rank 0 submits before it joins waits long enough for rank 1 to continue.
    let fusion = Some((1 << 20, Duration::from_millis(20)));
    on_engines(2, EngineOptions { fusion, ..EngineOptions::default() }, |engine| {
        for _ in 0..5 {
            if engine.rank() == 0 {
                let alone =
                    engine.all_reduce("w", vec![1f32], SubmitOptions::op(ReduceOp::Mean)).unwrap();
                let joined = engine.join().unwrap();
                assert_eq!(alone.wait().unwrap(), [1.0]);
                joined.wait().unwrap();
            } else {
                engine.join().unwrap().wait().unwrap();
            }
            let values = vec![10.0 * (engine.rank() + 1) as f32];
            let both = engine.all_reduce("w", values, SubmitOptions::op(ReduceOp::Mean)).unwrap();
            assert_eq!(both.wait().unwrap(), [15.0]);
        }
    });
}
