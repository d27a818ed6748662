//! Tests of the coordinator's decisions, without links.

use super::*;
use crate::engine::request::tests::sum;

const PACKING: Packing = Packing { fusion: 1000, cycle: Duration::ZERO, piece: 400, alone: false };

fn coordinator(n: usize) -> (Coordinator, Instant) {
    (Coordinator::new(n, vec![(0..n as u32).collect()]), Instant::now())
}

fn runs(c: &mut Coordinator, packing: &Packing, now: Instant) -> Vec<Vec<(String, u64, u64)>> {
    let mut all = Vec::new();
    while let Some(Decision::Run { pieces, .. }) = c.next(packing, now) {
        let named = |p: Piece| (c.kept[&p.id].name.clone(), p.start, p.len);
        all.push(pieces.into_iter().map(named).collect());
    }
    all
}

#[test]
fn tensors_run_when_all_ranks_have_submitted_them_in_any_order() {
    let (mut c, now) = coordinator(2);
    c.message(0, RankMessage::Submit(sum("a", 3)), now).unwrap();
    c.message(1, RankMessage::Submit(sum("b", 4)), now).unwrap();
    assert!(runs(&mut c, &PACKING, now).is_empty());
    c.message(0, RankMessage::Submit(sum("b", 4)), now).unwrap();
    assert_eq!(runs(&mut c, &PACKING, now), [[("b".into(), 0, 4)]]);
    c.message(1, RankMessage::Submit(sum("a", 3)), now).unwrap();
    assert_eq!(runs(&mut c, &PACKING, now), [[("a".into(), 0, 3)]]);
}

#[test]
fn small_tensors_are_fused_and_large_ones_cut_by_priority() {
    let (mut c, now) = coordinator(1);
    for (name, count, priority) in [("big", 250, 0), ("x", 10, 1), ("y", 10, 1)] {
        let mut request = sum(name, count);
        request.priority = priority;
        c.message(0, RankMessage::Submit(request), now).unwrap();
    }
    let all = runs(&mut c, &Packing { fusion: 500, ..PACKING }, now);
    assert_eq!(
        all,
        [
            vec![("x".into(), 0, 10), ("y".into(), 0, 10), ("big".into(), 0, 100)],
            vec![("big".into(), 100, 100)],
            vec![("big".into(), 200, 50)],
        ]
    );
}

#[test]
fn a_known_request_is_repeated_by_its_number() {
    let (mut c, now) = coordinator(1);
    c.message(0, RankMessage::Submit(sum("a", 3)), now).unwrap();
    let Some(Decision::Keep { id, .. }) = c.decisions().pop() else { panic!("kept") };
    runs(&mut c, &PACKING, now);
    c.message(0, RankMessage::Resubmit(id), now).unwrap();
    assert_eq!(runs(&mut c, &PACKING, now).len(), 1);
    assert_eq!((c.hits, c.misses), (1, 1));
    assert!(c.message(0, RankMessage::Resubmit(99), now).is_err());
}

#[test]
fn the_error_names_the_rank_that_differs() {
    let (mut c, now) = coordinator(3);
    for rank in 0..3 {
        let count = if rank == 1 { 5 } else { 4 };
        c.message(rank, RankMessage::Submit(sum("w", count)), now).unwrap();
    }
    let Some(Decision::Fail { cause, .. }) = c.decisions().pop() else { panic!("failed") };
    assert_eq!(
        cause.message(),
        "ranks do not agree on tensor \"w\": ranks [1] want all-reduce (sum) of float[5], \
         ranks [0, 2] want all-reduce (sum) of float[4]"
    );
    assert!(runs(&mut c, &PACKING, now).is_empty());
}

#[test]
fn a_stall_is_reported_once_and_then_fails_with_the_missing_ranks() {
    let (mut c, now) = coordinator(3);
    c.message(2, RankMessage::Submit(sum("w", 5)), now).unwrap();
    let second = Duration::from_secs(1);
    assert!(c.stalled(now, second, 3 * second).is_empty());
    let warnings = c.stalled(now + second, second, 3 * second);
    assert!(warnings[0].contains("for ranks [0, 1]"), "{warnings:?}");
    assert!(c.stalled(now + 2 * second, second, 3 * second).is_empty());
    c.stalled(now + 3 * second, second, 3 * second);
    let [Decision::Fail { name, absent, .. }] = &c.decisions()[..] else { panic!("failed") };
    assert_eq!((name.as_str(), &absent[..]), ("w", &[0, 1][..]));
    assert!(!c.is_waiting());
    // Tensors that the missing ranks submit later do not belong to the failed collective.
    c.message(1, RankMessage::Submit(sum("w", 5)), now + 3 * second).unwrap();
    assert!(c.is_waiting() && c.decisions().is_empty());
}

#[test]
fn a_broadcast_needs_a_submission_of_its_root() {
    let from_1 = || {
        RankMessage::Submit(TensorRequest {
            kind: OperationKind::Broadcast,
            root: 1,
            ..sum("w", 5)
        })
    };
    let (mut c, now) = coordinator(2);
    c.message(1, from_1(), now).unwrap();
    c.message(1, RankMessage::Join, now).unwrap();
    c.message(0, from_1(), now).unwrap();
    assert_eq!(runs(&mut c, &PACKING, now).len(), 1);
    c.decisions();
    c.message(0, from_1(), now).unwrap();
    let [Decision::Fail { cause, .. }] = &c.decisions()[..] else { panic!("failed") };
    assert_eq!(cause.code(), ferroflow_core::Code::FailedPrecondition);
    assert!(cause.message().contains("from rank 1, which has joined"), "{cause}");
}

#[test]
fn a_joined_rank_is_not_waited_for() {
    let (mut c, now) = coordinator(2);
    c.message(0, RankMessage::Submit(sum("w", 5)), now).unwrap();
    c.message(1, RankMessage::Join, now).unwrap();
    let Some(Decision::Run { absent, .. }) = c.next(&PACKING, now) else { panic!("runs") };
    assert_eq!(absent, [1]);
    c.message(0, RankMessage::Join, now).unwrap();
    assert_eq!(c.decisions().pop(), Some(Decision::AllJoined { last: 0 }));
}

#[test]
fn an_empty_tensor_submitted_again_after_a_join_runs_again() {
    let (mut c, now) = coordinator(3);
    let ask =
        |c: &mut Coordinator, rank| c.message(rank, RankMessage::Submit(sum("w", 0)), now).unwrap();
    ask(&mut c, 1);
    for rank in [0, 2, 1, 1] {
        c.message(rank, RankMessage::Join, now).unwrap();
    }
    ask(&mut c, 0);
    ask(&mut c, 2);
    for expected in [&[0, 2][..], &[1][..]] {
        let Some(Decision::Run { pieces, absent }) = c.next(&PACKING, now) else { panic!("runs") };
        assert_eq!((pieces.len(), &absent[..]), (1, expected));
    }
    assert_eq!(c.next(&PACKING, now), None);
}

#[test]
fn a_group_runs_when_all_its_tensors_are_ready() {
    let (mut c, now) = coordinator(1);
    for name in ["a", "b"] {
        assert!(runs(&mut c, &PACKING, now).is_empty());
        let request = TensorRequest { group: 77, group_len: 2, ..sum(name, 4) };
        c.message(0, RankMessage::Submit(request), now).unwrap();
    }
    assert_eq!(runs(&mut c, &PACKING, now)[0].len(), 2);
}

#[test]
fn groups_with_the_same_names_in_two_sets_are_independent() {
    let now = Instant::now();
    let mut c = Coordinator::new(2, vec![vec![0, 1], vec![0, 1]]);
    let ask = |c: &mut Coordinator, rank: u32, set: u16, name: &str, count: u64| {
        let request = TensorRequest { set, group: 77, group_len: 2, ..sum(name, count) };
        c.message(rank, RankMessage::Submit(request), now).unwrap();
    };
    let all =
        |c: &mut Coordinator, set: u16, name: &str| (0..2).for_each(|r| ask(c, r, set, name, 4));
    all(&mut c, 0, "a");
    all(&mut c, 1, "a");
    assert!(runs(&mut c, &PACKING, now).is_empty(), "neither group is complete");
    all(&mut c, 1, "b");
    assert_eq!(runs(&mut c, &PACKING, now), [vec![("a".into(), 0, 4), ("b".into(), 0, 4)]]);
    all(&mut c, 1, "a");
    for rank in 0..2 {
        ask(&mut c, rank, 0, "b", 4 + u64::from(rank));
    }
    let mut failed = Vec::new();
    for decision in c.decisions() {
        if let Decision::Fail { set, name, .. } = decision {
            failed.push((set, name));
        }
    }
    assert_eq!(failed, [(0, "b".into()), (0, "a".into())]);
    all(&mut c, 1, "b");
    assert_eq!(runs(&mut c, &PACKING, now).len(), 1, "the other set's group goes on");
}

#[test]
fn a_group_that_fails_twice_does_not_fail_the_next_one() {
    let (mut c, now) = coordinator(2);
    let member =
        |name: &str| RankMessage::Submit(TensorRequest { group: 9, group_len: 3, ..sum(name, 4) });
    for name in ["a", "b"] {
        c.message(0, member(name), now).unwrap();
    }
    let hour = Duration::from_secs(3600);
    // Both tensors have waited for rank 1 too long. The third one arrives at last.
    c.stalled(now + hour, hour, hour);
    for rank in 0..2 {
        c.message(rank, member("c"), now + hour).unwrap();
    }
    assert_eq!(c.decisions().len(), 3);
    for name in ["a", "b", "c"] {
        for rank in 0..2 {
            c.message(rank, member(name), now + hour).unwrap();
        }
    }
    assert_eq!(runs(&mut c, &PACKING, now + hour).len(), 1);
}

#[test]
fn a_tensor_waits_one_cycle_unless_the_fusion_buffer_is_full() {
    let (mut c, now) = coordinator(1);
    let packing = Packing { cycle: Duration::from_millis(5), ..PACKING };
    c.message(0, RankMessage::Submit(sum("a", 4)), now).unwrap();
    assert!(runs(&mut c, &packing, now).is_empty());
    assert_eq!(c.due(&packing, now), Some(now + packing.cycle));
    c.message(0, RankMessage::Submit(sum("b", 400)), now).unwrap();
    assert!(!runs(&mut c, &packing, now).is_empty());
}

#[test]
fn a_group_fails_as_a_whole_and_never_hangs() {
    let member = |name: &str, count: u64| {
        let mut request = sum(name, count);
        (request.group, request.group_len) = (9, 3);
        RankMessage::Submit(request)
    };
    let failed = |c: &mut Coordinator| -> Vec<String> {
        let name = |v: Decision| match v {
            Decision::Fail { name, .. } => Some(name),
            _ => None,
        };
        c.decisions().into_iter().filter_map(name).collect()
    };
    let (mut c, now) = coordinator(2);
    for rank in 0..2 {
        c.message(rank, member("a", 4), now).unwrap();
    }
    for rank in 0..2 {
        c.message(rank, member("b", 4 + u64::from(rank)), now).unwrap();
    }
    assert_eq!(failed(&mut c), ["b", "a"]);
    for rank in 0..2 {
        c.message(rank, member("c", 4), now).unwrap();
    }
    assert_eq!(failed(&mut c), ["c"]);
    for name in ["a", "b"] {
        for rank in 0..2 {
            c.message(rank, member(name, 4), now).unwrap();
        }
    }
    assert!(runs(&mut c, &PACKING, now).is_empty() && c.is_waiting());
    let hour = Duration::from_secs(3600);
    c.stalled(now + hour, hour, hour);
    assert_eq!(failed(&mut c).len(), 2);
    assert!(!c.is_waiting());
}

#[test]
fn tensors_and_joins_do_not_wait_for_a_rank_that_has_left() {
    let (mut c, now) = coordinator(3);
    c.message(0, RankMessage::Submit(sum("w", 5)), now).unwrap();
    c.message(2, RankMessage::Submit(sum("v", 5)), now).unwrap();
    c.message(1, RankMessage::Join, now).unwrap();
    c.message(2, RankMessage::Leave, now).unwrap();
    let mut texts: Vec<String> = c.decisions().iter().map(|v| format!("{v:?}")).collect();
    texts.sort();
    assert!(texts[0].contains("submitted by ranks [0], but ranks [2] have left"), "{texts:?}");
    assert!(texts[1].contains("ranks [1] have joined, but ranks [2] have left"), "{texts:?}");
    assert_eq!(texts.len(), 2, "the missing ranks of v may still submit it: {texts:?}");
    assert!(c.is_waiting());
    // The rank leaves, and then its connection is closed.
    c.message(2, RankMessage::Leave, now).unwrap();
    c.message(0, RankMessage::Submit(sum("u", 5)), now).unwrap();
    assert!(matches!(&c.decisions()[..], [Decision::Fail { name, .. }] if name == "u"));
    for rank in 0..2 {
        c.message(rank, RankMessage::Leave, now).unwrap();
    }
    assert_eq!(c.decisions().last(), Some(&Decision::AllLeft));
}

#[test]
fn nothing_runs_with_a_rank_that_has_disconnected() {
    let (mut c, now) = coordinator(3);
    let ask = |c: &mut Coordinator, rank, request| {
        c.message(rank, RankMessage::Submit(request), now).unwrap()
    };
    let member = |name: &str| TensorRequest { group: 77, group_len: 2, ..sum(name, 4) };
    let failed = |c: &mut Coordinator| -> Vec<String> {
        let failed = c.decisions().into_iter().filter_map(|v| match v {
            Decision::Fail { name, cause, .. } => Some((name, cause)),
            _ => None,
        });
        let named = failed.map(|(name, cause)| {
            assert_eq!(cause.code(), ferroflow_core::Code::Unavailable, "{cause}");
            assert!(cause.message().contains("ranks [1] have left"), "{cause}");
            name
        });
        named.collect()
    };
    ask(&mut c, 1, sum("asked", 5));
    c.message(1, RankMessage::Join, now).unwrap();
    c.message(1, RankMessage::Leave, now).unwrap();
    for rank in [0, 2] {
        ask(&mut c, rank, sum("agreed", 5));
        ask(&mut c, rank, member("grouped"));
    }
    ask(&mut c, 0, sum("waits", 5));
    assert!(failed(&mut c).is_empty());
    c.gone(1, now).unwrap();
    assert_eq!(failed(&mut c), ["agreed", "grouped", "waits"]);
    assert!(runs(&mut c, &PACKING, now).is_empty() && !c.is_waiting());
    for request in [sum("asked", 5), sum("later", 5), member("the other")] {
        let name = request.name.clone();
        ask(&mut c, 2, request);
        assert_eq!(failed(&mut c), [name]);
    }
    assert!(c.failed_groups.is_empty());
    // The other ranks can complete their join without it.
    c.message(0, RankMessage::Join, now).unwrap();
    c.message(2, RankMessage::Join, now).unwrap();
    assert_eq!(c.decisions(), [Decision::AllJoined { last: 2 }]);
}

#[test]
fn counts_that_overflow_do_not_panic() {
    let (mut c, now) = coordinator(1);
    for name in ["a", "b"] {
        let request = TensorRequest { kind: OperationKind::AllGather, ..sum(name, u64::MAX) };
        c.message(0, RankMessage::Submit(request), now).unwrap();
        c.message(0, RankMessage::Submit(sum(&format!("{name}{name}"), u64::MAX)), now).unwrap();
    }
    for _ in 0..4 {
        assert!(c.next(&PACKING, now).is_some());
    }
}
