//! Tests of ranks that leave while others still work. No rank waits for them.

use super::*;

/// Options with which leaving ranks do not wait for the others.
fn in_a_hurry() -> EngineOptions {
    EngineOptions { shutdown_timeout: Duration::ZERO, ..EngineOptions::default() }
}

#[test]
fn a_tensor_that_needs_a_rank_that_has_left_fails_and_names_it() {
    for gone in 0..2 {
        on_engines(2, EngineOptions::default(), |engine| {
            if engine.rank() == gone {
                return;
            }
            let w = engine.all_reduce("w", vec![1f32], SubmitOptions::default()).unwrap();
            let e = w.wait().unwrap_err();
            assert_eq!(e.code(), Code::Unavailable, "{e}");
            assert!(e.message().contains(&format!("ranks [{gone}] have left")), "{e}");
        });
    }
}

#[test]
fn a_tensor_submitted_before_leaving_is_completed() {
    on_engines(3, EngineOptions::default(), |engine| {
        let sum = engine.all_reduce("w", vec![1f32; 1000], SubmitOptions::default()).unwrap();
        if engine.rank() > 0 {
            assert_eq!(sum.wait().unwrap(), [3.0; 1000]);
        }
    });
}

#[test]
fn submissions_fail_after_rank_0_has_left() {
    on_engines(2, in_a_hurry(), |engine| {
        if engine.rank() == 0 {
            return;
        }
        let e = loop {
            let sum = engine.all_reduce("w", vec![1f32], SubmitOptions::default());
            let e = sum.and_then(CollectiveHandle::wait).unwrap_err();
            assert_eq!(e.code(), Code::Unavailable, "{e}");
            assert!(!e.message().contains("waited"), "{e}");
            // At first because rank 0 has left, later because the coordinator is gone.
            if engine.failure().is_some() {
                break e;
            }
        };
        assert!(e.message().contains("rank 0") || e.message().contains("ranks [0]"), "{e}");
        assert!(engine.join().is_err());
    });
}

#[test]
fn a_set_works_after_a_rank_outside_of_it_has_gone() {
    on_engines(3, in_a_hurry(), |engine| {
        if engine.rank() == 1 {
            return;
        }
        let ask = SubmitOptions { set: SetId(1), ..SubmitOptions::default() };
        let lost = engine.all_reduce("w", vec![1f32], SubmitOptions::default()).unwrap();
        assert!(lost.wait().unwrap_err().message().contains("ranks [1] have left"));
        for i in 0..200 {
            let sum = engine.all_reduce("w", vec![1f32; i], ask.clone()).unwrap();
            assert_eq!(sum.wait().unwrap(), vec![2.0; i]);
        }
        // The rank that finishes first may leave first.
        let both = engine.all_reduce("end", vec![0u8], ask).unwrap();
        both.wait().unwrap();
    });
}

#[test]
fn a_join_ends_when_a_rank_leaves_that_never_joined() {
    on_engines(3, EngineOptions::default(), |engine| {
        if engine.rank() == 1 {
            return;
        }
        let e = engine.join().unwrap().wait().unwrap_err();
        assert_eq!(e.code(), Code::Unavailable);
        assert!(e.message().contains("ranks [1] have left without joining"), "{e}");
    });
}

#[test]
fn a_panic_in_a_callback_does_not_end_the_engine() {
    on_engines(2, EngineOptions::default(), |engine| {
        let one = Tensor::vector(&[1f32]);
        engine.submit_tensor("w", one, Collective::AllReduce, SubmitOptions::default(), |_| {
            panic!("a caller's own")
        });
        let sum = engine.all_reduce("v", vec![1f32], SubmitOptions::default()).unwrap();
        assert_eq!(sum.wait().unwrap(), [2.0]);
    });
}

#[test]
fn a_timeline_that_cannot_be_created_fails_all_ranks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let options =
        || GroupOptions { model: Some(crate::LinkCostModel::default()), ..GroupOptions::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let group = Group::join(&Membership::new(1, 2, address.as_str()), options()).unwrap();
            let timeline = Some(PathBuf::from("/nowhere/at/all"));
            let e = Engine::start(group, EngineOptions { timeline, ..EngineOptions::default() });
            assert!(e.err().unwrap().message().contains("/nowhere/at/all"));
        });
        let member = Membership::new(0, 2, address.as_str());
        let group = Group::host(&member, options(), listener).unwrap();
        let engine = Engine::start(group, EngineOptions::default()).unwrap();
        let sum = engine.all_reduce("w", vec![1f32], SubmitOptions::default());
        let e = sum.and_then(CollectiveHandle::wait).unwrap_err();
        assert!(e.message().contains("/nowhere/at/all"), "{e}");
    });
}
