//! Tests of ranks that disagree, or that request something impossible. All ranks get an error that
//! names the rank.

use super::*;

#[test]
fn ranks_with_different_cost_models_get_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let member = |rank| Membership {
        transport: TransportChoice::Tcp,
        ..Membership::new(rank, 2, address.as_str())
    };
    // The seconds per message: two windows are in flight, or many.
    let options = |alpha| GroupOptions {
        algorithm: Some(Algorithm::Ring),
        model: Some(crate::LinkCostModel { alpha, ..crate::LinkCostModel::default() }),
        ..GroupOptions::default()
    };
    let fails = |group: Result<Group>| {
        let e = group.unwrap().all_reduce(&mut [1f32; 100], ReduceOp::Sum).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument, "{e}");
        assert!(e.message().contains("2 windows") && e.message().contains("65 windows"), "{e}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| fails(Group::join(&member(1), options(1.0))));
        fails(Group::host(&member(0), options(1e-9), listener));
    });
}

type Submission = (Tensor, Collective, SubmitOptions);

fn submit(engine: &Engine, name: &str, (tensor, what, ask): Submission) -> Result<Tensor> {
    let (sender, results) = channel();
    engine.submit_tensor(name, tensor, what, ask, move |r| drop(sender.send(r)));
    results.recv().unwrap().map(|(tensor, _)| tensor)
}

/// Rank 1 of three submits `odd` and the others submit `plain`. All ranks get an error with `code`
/// and `text`, and can continue.
fn refuses(engine: &Engine, plain: Submission, odd: Submission, code: Code, text: &str) {
    let mine = if engine.rank() == 1 { odd } else { plain };
    let e = submit(engine, "w", mine).unwrap_err();
    assert_eq!(e.code(), code, "{e}");
    assert!(e.message().contains("tensor \"w\"") && e.message().contains(text), "{e}");
    let fine = engine.all_reduce("v", vec![1f32], SubmitOptions::default()).unwrap();
    assert_eq!(fine.wait().unwrap(), [3.0], "after {text}");
}

#[test]
fn a_rank_with_a_different_request_is_named_in_the_error_of_all() {
    on_engines(3, EngineOptions::default(), |engine| {
        let four = || Tensor::from_slice([4], &[0f32; 4]).unwrap();
        let square = || Tensor::from_slice([2, 2], &[0f32; 4]).unwrap();
        let double = || Tensor::from_slice([4], &[0f64; 4]).unwrap();
        let of = |what| (four(), what, SubmitOptions::default());
        let sum = || of(Collective::AllReduce);
        let with = |ask| (four(), Collective::AllReduce, ask);
        let from = |root| of(Collective::Broadcast { root });
        let fp16 = SubmitOptions { compression: WireCompression::Fp16, ..SubmitOptions::default() };
        let max = || SubmitOptions::op(ReduceOp::Max);
        let gather = Collective::AllGather;
        for (plain, odd, text) in [
            (
                sum(),
                (double(), Collective::AllReduce, SubmitOptions::default()),
                "all-reduce (sum) of double[4]",
            ),
            (
                sum(),
                (square(), Collective::AllReduce, SubmitOptions::default()),
                "all-reduce (sum) of float[2, 2]",
            ),
            (sum(), with(max()), "all-reduce (max) of float[4]"),
            (sum(), with(fp16), "all-reduce (sum) of float[4] compressed by fp16"),
            (sum(), of(gather.clone()), "all-gather of float[4]"),
            (sum(), of(Collective::Adasum), "adasum of float[4]"),
            (from(0), from(2), "broadcast from rank 2 of float[4]"),
            (
                of(gather.clone()),
                (square(), gather, SubmitOptions::default()),
                "all-gather of float[2, 2]",
            ),
            (
                of(Collective::ReduceScatter),
                (four(), Collective::ReduceScatter, max()),
                "reduce-scatter (max) of float[4]",
            ),
        ] {
            let text = format!("ranks [1] want {text}, ranks [0, 2] want");
            refuses(engine, plain, odd, Code::InvalidArgument, &text);
        }
        // The reduction need not be equal where it has no effect.
        let ask = if engine.rank() == 1 { max() } else { SubmitOptions::default() };
        submit(engine, "w", (four(), Collective::AllGather, ask)).unwrap();
    });
}

#[test]
fn a_rank_with_an_impossible_request_is_named_in_the_error_of_all() {
    on_engines(3, EngineOptions::default(), |engine| {
        let four = || Tensor::from_slice([4], &[0f32; 4]).unwrap();
        let of = |what| (four(), what, SubmitOptions::default());
        let split = |splits: &[usize]| of(Collective::AllToAll { splits: splits.to_vec() });
        let from = |root| of(Collective::Broadcast { root });
        let sum = || of(Collective::AllReduce);
        let bools =
            || (Tensor::vector(&[true; 4]), Collective::AllReduce, SubmitOptions::default());
        let lossy = SubmitOptions {
            compression: WireCompression::OneBit,
            op: ReduceOp::Max,
            ..SubmitOptions::default()
        };
        let ints = (Tensor::vector(&[1i32; 4]), Collective::Adasum, SubmitOptions::default());
        let (wrong, cannot) = (Code::InvalidArgument, Code::Unimplemented);
        for (plain, odd, code, text) in [
            (
                split(&[4, 0, 0]),
                split(&[1, 1, 1]),
                wrong,
                "the splits [1, 1, 1] do not add up to 4 values on ranks [1]",
            ),
            (
                split(&[4, 0, 0]),
                split(&[2, 2]),
                wrong,
                "2 splits [2, 2] were given for 3 ranks on ranks [1]",
            ),
            (
                split(&[4, 0, 0]),
                split(&[usize::MAX, 5, 0]),
                wrong,
                "do not add up to 4 values on ranks [1]",
            ),
            (
                from(0),
                from(7),
                wrong,
                "root 7 of a broadcast is not among its ranks [0, 1, 2] on ranks [1]",
            ),
            (
                from(3),
                from(3),
                wrong,
                "root 3 of a broadcast is not among its ranks [0, 1, 2] on ranks [0, 1, 2]",
            ),
            (sum(), bools(), cannot, "bool on ranks [1]"),
            (of(Collective::Adasum), ints, cannot, "not int32 on ranks [1]"),
            (sum(), (four(), Collective::AllReduce, lossy), cannot, "not max on ranks [1]"),
        ] {
            refuses(engine, plain, odd, code, text);
        }
        let shape = Some(vec![3, usize::from(engine.rank() != 1)]);
        let bad = engine
            .all_reduce("s", vec![0u8; 3], SubmitOptions { shape, ..SubmitOptions::default() })
            .unwrap();
        let e = bad.wait().unwrap_err();
        assert!(
            e.message().contains("the tensor has 3 values, but its shape has 0 on ranks [1]"),
            "{e}"
        );
    });
}

#[test]
fn an_unknown_process_set_is_an_error_of_the_caller_only() {
    on_engines(3, EngineOptions::default(), |engine| {
        let in_set = |set| SubmitOptions { set: SetId(set), ..SubmitOptions::default() };
        let e = engine.all_reduce("w", vec![1f32], in_set(9)).err().unwrap();
        assert_eq!((e.code(), e.message()), (Code::InvalidArgument, "there is no process set 9"));
        if engine.rank() == 1 {
            let e = engine.barrier("w", SetId(1)).unwrap_err();
            assert_eq!(e.code(), Code::FailedPrecondition, "{e}");
        }
        engine.barrier("w", SetId::WORLD).unwrap();
    });
}

#[test]
fn ranks_with_different_tensor_names_get_an_error_and_can_continue() {
    let options = EngineOptions {
        stall_warning: Duration::from_millis(50),
        stall_deadline: Duration::from_millis(200),
        ..EngineOptions::default()
    };
    on_engines(3, options, |engine| {
        let (name, missing) = match engine.rank() {
            1 => ("odd", "for ranks [0, 2]"),
            _ => ("even", "for ranks [1]"),
        };
        stalls(engine, name, missing);
        // The first rank may run into the timeout, which fails only its own tensor.
        let sum = loop {
            match engine.all_reduce("v", vec![1f32], SubmitOptions::default()).unwrap().wait() {
                Err(e) if e.code() == Code::DeadlineExceeded => {}
                other => break other,
            }
        };
        assert_eq!(sum.unwrap(), [3.0]);
    });
}

#[test]
fn a_name_that_is_too_long_is_an_error_of_the_caller_only() {
    on_engines(2, EngineOptions::default(), |engine| {
        let endless = "w".repeat(LONGEST_NAME + 1);
        let e = engine.all_reduce(&endless, vec![1f32], SubmitOptions::default()).err().unwrap();
        assert_eq!(e.code(), Code::InvalidArgument);
        // More messages and decisions than fit into one frame.
        let long = |i: usize| format!("{i:0>width$}", width = LONGEST_NAME >> 4);
        let tensors = (0..600).map(|i| (long(i), vec![1u8])).collect();
        for handle in engine.grouped_all_reduce(tensors, &SubmitOptions::default()).unwrap() {
            assert_eq!(handle.wait().unwrap(), [2]);
        }
    });
}

#[test]
fn a_fault_reported_by_one_caller_is_an_error_on_all_ranks() {
    on_engines(3, EngineOptions::default(), |engine| {
        let four = || Tensor::from_slice([4], &[0f32; 4]).unwrap();
        let of = |fault| {
            (four(), Collective::AllReduce, SubmitOptions { fault, ..SubmitOptions::default() })
        };
        let odd = of(Some(err!(OutOfRange, "no more rows")));
        refuses(engine, of(None), odd, Code::OutOfRange, "no more rows on ranks [1]");
    });
}
