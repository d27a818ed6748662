//! Tests of tensors in the memory of other libraries.

use super::*;
use crate::foreign::kept;
use ferroflow_core::{bf16, f16};

type ForeignResult = Result<(ForeignTensor, Vec<usize>)>;

/// Submits a tensor and waits for it.
fn run(
    engine: &Engine,
    name: &str,
    tensor: ForeignTensor,
    what: Collective,
    ask: SubmitOptions,
) -> ForeignResult {
    let (sender, results) = channel();
    let done: ForeignDone = Box::new(move |r| drop(sender.send(r)));
    engine.submit_foreign(vec![(name.into(), tensor, what, done)], &ask);
    results.recv().unwrap()
}

fn sums<T: Number + PartialEq + std::fmt::Debug>(engine: &Engine, of: impl Fn(u8) -> T) {
    let r = engine.rank() as u8;
    let name = format!("{:?}", T::DTYPE);
    let values: Vec<T> = (0..300u32).map(|i| of(r + (i % 5) as u8)).collect();
    let (tensor, kept) = kept(&[3, 100], &values);
    let (tensor, _) =
        run(engine, &name, tensor, Collective::AllReduce, SubmitOptions::default()).unwrap();
    assert!(tensor.replaced().is_none() && tensor.shape() == [3, 100]);
    drop(tensor);
    let want: Vec<T> = (0..300u32).map(|i| of(3 + 3 * (i % 5) as u8)).collect();
    assert_eq!(*kept.lock(), want, "{name}");
}

#[test]
fn all_number_types_are_reduced_in_place() {
    on_engines(3, EngineOptions::default(), |engine| {
        sums(engine, f32::from);
        sums(engine, f64::from);
        sums(engine, |x| f16::from_f32(f32::from(x)));
        sums(engine, |x| bf16::from_f32(f32::from(x)));
        sums(engine, |x| x as i8);
        sums(engine, i16::from);
        sums(engine, i32::from);
        sums(engine, i64::from);
        sums(engine, |x| x);
        sums(engine, u16::from);
        sums(engine, u32::from);
        sums(engine, u64::from);
    });
}

#[test]
fn results_of_another_size_replace_the_values_and_leave_the_memory_alone() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        let (tensor, kept) = kept(&[r, 2], &vec![r as i32; 2 * r]);
        let ask = SubmitOptions::default();
        let (mut all, counts) = run(engine, "g", tensor, Collective::AllGather, ask).unwrap();
        assert_eq!(counts, [0, 2, 4]);
        let bytes = all.take_replaced().unwrap();
        let got = bytes.as_chunks::<4>().0.iter().map(|b| i32::from_ne_bytes(*b));
        assert_eq!(got.collect::<Vec<_>>(), [1, 1, 2, 2, 2, 2]);
        assert_eq!(*kept.lock(), vec![r as i32; 2 * r]);
    });
}

#[test]
fn a_set_and_a_rank_that_joins_take_part_with_foreign_memory() {
    on_engines(3, EngineOptions::default(), |engine| {
        let r = engine.rank();
        if r != 1 {
            let ask = SubmitOptions { set: SetId(1), ..SubmitOptions::op(ReduceOp::Max) };
            let (tensor, values) = kept(&[2], &[r as f32, -(r as f32)]);
            run(engine, "s", tensor, Collective::AllReduce, ask).unwrap();
            assert_eq!(*values.lock(), [2.0, 0.0]);
        }
        if r < 2 {
            let (tensor, values) = kept(&[], &[r as f64 + 1.0]);
            let mean = SubmitOptions::op(ReduceOp::Mean);
            run(engine, "j", tensor, Collective::AllReduce, mean).unwrap();
            assert_eq!(*values.lock(), [1.5]);
        }
        engine.join().unwrap().wait().unwrap();
    });
}

#[test]
fn grouped_foreign_tensors_are_fused_and_fail_together() {
    on_engines(2, EngineOptions::default(), |engine| {
        let submit = |root: usize| {
            let (sender, results) = channel();
            let mut all = Vec::new();
            for (i, what) in
                [Collective::AllReduce, Collective::Broadcast { root }].into_iter().enumerate()
            {
                let sender = sender.clone();
                let done: ForeignDone = Box::new(move |r| drop(sender.send(r)));
                all.push((format!("t{i}"), kept(&[1], &[1f32]).0, what, done));
            }
            engine.submit_foreign(all, &SubmitOptions::default());
            [results.recv().unwrap(), results.recv().unwrap()]
        };
        assert!(submit(0).iter().all(|r| r.is_ok()));
        for result in submit(engine.rank()) {
            let e = result.err().unwrap();
            assert!(e.message().contains("t1") && e.message().contains("ranks [1]"), "{e}");
        }
    });
}

#[test]
fn an_abort_fails_all_ranks_with_its_cause() {
    on_engines(2, EngineOptions::default(), |engine| {
        let (tensor, _) = kept(&[1], &[1f32]);
        if engine.rank() == 1 {
            engine.abort(err!(Aborted, "rank 1 raised KeyError: x"));
        }
        let ask = SubmitOptions::default();
        let e = run(engine, "w", tensor, Collective::AllReduce, ask).err().unwrap();
        assert_eq!(e.message(), "rank 1 raised KeyError: x");
    });
}
