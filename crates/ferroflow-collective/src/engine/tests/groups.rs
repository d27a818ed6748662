//! Tests of grouped tensors.

use super::*;

#[test]
fn a_group_may_contain_any_collectives() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let three = || vec![r as i32; 3];
        let mut all = [
            ("sum", three(), Collective::AllReduce),
            ("part", three(), Collective::ReduceScatter),
            ("gather", vec![r as i32; r], Collective::AllGather),
            ("from", three(), Collective::Broadcast { root: 1 }),
            ("to", three(), Collective::AllToAll { splits: vec![1, 0, 2] }),
            ("none", vec![], Collective::Barrier),
        ];
        let want = [
            ("sum", vec![3; 3]),
            ("part", vec![3]),
            ("gather", vec![1, 2, 2]),
            ("from", vec![1; 3]),
            ("to", [vec![0, 1, 2], vec![], vec![0, 0, 1, 1, 2, 2]][r].clone()),
            ("none", vec![]),
        ];
        for round in 0..3 {
            // Ranks may list the tensors in different orders.
            all.rotate_left(r + round);
            let named =
                all.iter().map(|(name, v, what)| (name.to_string(), v.clone(), what.clone()));
            let handles = engine.grouped(named.collect(), &SubmitOptions::default()).unwrap();
            for ((name, ..), handle) in all.iter().zip(handles) {
                let (_, want) = want.iter().find(|(n, _)| n == name).unwrap();
                assert_eq!(&handle.wait().unwrap(), want, "{name}");
            }
        }
        let upright = |i: usize| (0..3).map(|j| f32::from(u8::from(r == (i + j) % 3))).collect();
        let sums = (0..2).map(|i| (i.to_string(), upright(i), Collective::Adasum)).collect();
        for handle in engine.grouped(sums, &SubmitOptions::default()).unwrap() {
            assert_eq!(handle.wait().unwrap(), [1f32; 3]);
        }
    });
}

#[test]
fn a_group_of_tensors_fails_as_one_on_all_ranks() {
    on_engines(2, EngineOptions::default(), |engine| {
        let (sender, results) = channel();
        let submit = |root: usize| {
            let one = |name: &str, what| {
                let sender = sender.clone();
                let done: TensorDone = Box::new(move |r| drop(sender.send(r)));
                (name.to_string(), Tensor::vector(&[1f32; 2]), what, done)
            };
            let both =
                vec![one("a", Collective::AllReduce), one("b", Collective::Broadcast { root })];
            engine.submit_tensors(both, &SubmitOptions::default());
            [results.recv().unwrap(), results.recv().unwrap()]
        };
        for result in submit(5 * engine.rank()) {
            let e = result.unwrap_err();
            assert!(e.message().starts_with("tensor \"b\": root 5 of a broadcast"), "{e}");
            assert!(e.message().ends_with("on ranks [1]"), "{e}");
        }
        for result in submit(1) {
            result.unwrap();
        }
        let refused = engine.grouped(
            vec![
                ("c".into(), vec![1u8], Collective::AllReduce),
                ("c".into(), vec![1u8], Collective::AllReduce),
            ],
            &SubmitOptions::default(),
        );
        assert_eq!(refused.err().unwrap().code(), Code::AlreadyExists);
        // No tensor of a refused group is left in flight.
        let c = engine.all_reduce("c", vec![1u8], SubmitOptions::default()).unwrap();
        assert_eq!(c.wait().unwrap(), [2]);
    });
}

#[test]
fn ranks_must_agree_whether_a_tensor_is_in_a_group() {
    on_engines(2, EngineOptions::default(), |engine| {
        let named = |name: &str| (name.to_string(), vec![1f32]);
        let both = || vec![named("a"), named("b")];
        let handles = match engine.rank() {
            0 => engine.grouped_all_reduce(both(), &SubmitOptions::default()).unwrap(),
            _ => both()
                .into_iter()
                .map(|(name, v)| engine.all_reduce(&name, v, SubmitOptions::default()).unwrap())
                .collect(),
        };
        for handle in handles {
            let e = handle.wait().unwrap_err();
            assert_eq!(e.code(), Code::InvalidArgument);
            assert!(e.message().contains("in a group of 2"), "{e}");
        }
        for handle in engine.grouped_all_reduce(both(), &SubmitOptions::default()).unwrap() {
            assert_eq!(handle.wait().unwrap(), [2.0]);
        }
    });
}
