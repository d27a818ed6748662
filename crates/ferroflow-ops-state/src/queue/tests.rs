//! Guarantees of queues, alone and under contention.

use super::store::{Kind, Queue, Spec};
use super::testing::Pending;
use crate::prelude::*;
use crate::testing::{Check, check};
use ferroflow_core::CancelToken;
use std::sync::atomic::{AtomicUsize, Ordering};

fn queue(kind: Kind, capacity: Option<usize>) -> Queue {
    let (mut dtypes, mut shapes) = (vec![DType::Int64], vec![PartialShape::scalar()]);
    if kind == Kind::Priority {
        dtypes.push(DType::Int64);
        shapes.push(PartialShape::scalar());
    }
    Queue::new("q", Spec { kind, capacity, dtypes, shapes })
}

fn fifo(capacity: usize) -> Queue {
    queue(Kind::Fifo, Some(capacity))
}

fn put(q: &Queue, values: &[i64]) -> Arc<Pending> {
    let (pending, done) = Pending::new();
    let tuples = values.iter().map(|&x| vec![Tensor::scalar(x)]).collect();
    q.put(tuples, &CancelToken::new(), &InlineScope::unknown(), done);
    pending
}

fn take(q: &Queue) -> Arc<Pending> {
    let (pending, done) = Pending::new();
    q.take(&CancelToken::new(), &InlineScope::unknown(), done);
    pending
}

fn take_many(q: &Queue, n: usize, up_to: bool) -> Arc<Pending> {
    let (pending, done) = Pending::new();
    q.take_many(n, up_to, &CancelToken::new(), &InlineScope::unknown(), done);
    pending
}

fn close(q: &Queue) -> Arc<Pending> {
    let (pending, done) = Pending::new();
    q.close_after_pending(&CancelToken::new(), &InlineScope::unknown(), done);
    pending
}

fn ints(got: Result<Vec<Tensor>>) -> Vec<i64> {
    got.unwrap()[0].as_slice::<i64>().unwrap().to_vec()
}

#[track_caller]
fn failed(got: Result<Vec<Tensor>>, code: Code, text: &str) {
    let e = got.unwrap_err();
    assert_eq!((e.code(), e.message()), (code, text));
}

#[test]
fn elements_leave_in_order_and_wait_for_room() {
    let q = fifo(2);
    let many = put(&q, &[1, 2, 3, 4, 5]);
    assert!(!many.is_finished());
    assert_eq!(q.len(), 2);
    for want in 1..=5 {
        assert_eq!(ints(take(&q).wait()), [want]);
    }
    many.wait().unwrap();
    let early = take(&q);
    assert!(!early.is_finished());
    put(&q, &[6]).wait().unwrap();
    assert_eq!(ints(early.wait()), [6]);
}

#[test]
fn a_batch_may_be_larger_than_the_queue() {
    let q = fifo(2);
    let batch = take_many(&q, 5, false);
    let many = put(&q, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(ints(batch.wait()), [1, 2, 3, 4, 5]);
    many.wait().unwrap();
    assert_eq!(q.len(), 1);
    assert_eq!(ints(take_many(&q, 0, false).wait()), [0i64; 0]);
}

#[test]
fn first_come_first_served() {
    let q = fifo(9);
    let (big, small) = (take_many(&q, 3, false), take(&q));
    put(&q, &[1, 2]).wait().unwrap();
    assert!(!big.is_finished() && !small.is_finished());
    put(&q, &[3, 4]).wait().unwrap();
    assert_eq!(ints(big.wait()), [1, 2, 3]);
    assert_eq!(ints(small.wait()), [4]);
}

#[test]
fn closing_ends_those_who_wait_for_more() {
    let q = fifo(9);
    let batch = take_many(&q, 3, false);
    put(&q, &[1, 2]).wait().unwrap();
    let next = take_many(&q, 3, true);
    close(&q).wait().unwrap();
    let text = "FIFOQueue 'q' is closed and has insufficient elements \
                (requested 1, current size 0)";
    failed(batch.wait(), Code::OutOfRange, text);
    // The elements of the failed batch are returned.
    assert_eq!(ints(next.wait()), [1, 2]);
    failed(take(&q).wait(), Code::OutOfRange, text);
    failed(put(&q, &[1]).wait(), Code::Cancelled, "FIFOQueue 'q' is closed.");
    put(&q, &[]).wait().unwrap();
    failed(close(&q).wait(), Code::Cancelled, "Queue 'q' is already closed.");
    q.close_and_cancel();
}

#[test]
fn closing_waits_for_pending_enqueues_unless_told_to_cancel_them() {
    let q = fifo(1);
    let (first, closing, late) = (put(&q, &[1, 2]), close(&q), put(&q, &[3]));
    assert!(!closing.is_finished() && !q.is_closed());
    assert_eq!(ints(take(&q).wait()), [1]);
    first.wait().unwrap();
    closing.wait().unwrap();
    failed(late.wait(), Code::Cancelled, "FIFOQueue 'q' is closed.");
    assert_eq!(ints(take(&q).wait()), [2]);

    let q = fifo(1);
    let (pending, closing) = (put(&q, &[1, 2]), close(&q));
    q.close_and_cancel();
    failed(pending.wait(), Code::Cancelled, "Enqueue operation was cancelled");
    failed(closing.wait(), Code::Cancelled, "Enqueue operation was cancelled");
    assert_eq!(ints(take(&q).wait()), [1]);
}

#[test]
fn a_cancelled_batch_gives_back_what_it_had() {
    let q = fifo(9);
    let (token, (batch, done)) = (CancelToken::new(), Pending::new());
    q.take_many(3, false, &token, &InlineScope::unknown(), done);
    put(&q, &[1, 2]).wait().unwrap();
    assert_eq!(q.len(), 0);
    let next = take(&q);
    token.cancel(err!(Cancelled, "step"));
    failed(batch.wait(), Code::Cancelled, "Dequeue operation was cancelled");
    assert_eq!(ints(next.wait()), [1]);
    assert_eq!(q.len(), 1);
    let (never, done) = Pending::new();
    q.take(&token, &InlineScope::unknown(), done);
    failed(never.wait(), Code::Cancelled, "Dequeue operation was cancelled");
    assert_eq!(q.waiting(), (0, 0));
}

#[test]
fn a_shuffling_queue_keeps_some_back_until_it_is_closed() {
    // The order TensorFlow's queue with these seeds gives.
    let q = queue(Kind::Shuffle { min_after_dequeue: 2, seed: (7, 9) }, Some(30));
    put(&q, &(0..12).collect::<Vec<_>>()).wait().unwrap();
    assert_eq!(ints(take_many(&q, 10, false).wait()), [7, 8, 10, 1, 9, 5, 4, 0, 11, 2]);
    let more = take(&q);
    assert!(!more.is_finished());
    close(&q).wait().unwrap();
    let mut rest = [ints(more.wait())[0], ints(take(&q).wait())[0]];
    rest.sort();
    assert_eq!(rest, [3, 6]);
}

#[test]
fn a_priority_queue_gives_the_lowest_first() {
    let q = queue(Kind::Priority, None);
    let pairs = [(3, 30), (1, 10), (2, 20), (1, 11)];
    let tuples = pairs.map(|(p, x): (i64, i64)| vec![Tensor::scalar(p), Tensor::scalar(x)]);
    let batch = take_many(&q, 3, false);
    let (pending, done) = Pending::new();
    q.put(tuples.to_vec(), &CancelToken::new(), &InlineScope::unknown(), done);
    pending.wait().unwrap();
    let got = batch.wait().unwrap();
    assert_eq!(got[0].as_slice::<i64>().unwrap(), [1, 1, 2]);
    assert_eq!(got[1].as_slice::<i64>().unwrap(), [10, 11, 20]);
}

#[test]
fn a_long_chain_of_waiters_does_not_overflow_the_stack() {
    struct Chain(Queue, AtomicUsize);
    impl ferroflow_core::Completion for Chain {
        // The completion of every take puts the next element into the queue.
        fn complete(self: Arc<Self>, _: u64, result: Result<Outputs>, scope: &InlineScope) {
            result.unwrap();
            if self.1.fetch_add(1, Ordering::SeqCst) < 100_000 {
                let (_, done) = Pending::new();
                self.0.put(vec![vec![Tensor::scalar(1i64)]], &CancelToken::new(), scope, done);
            }
        }
    }
    let chain = Arc::new(Chain(fifo(1), AtomicUsize::new(0)));
    for _ in 0..100_001 {
        let done = Done::new(chain.clone(), 0);
        chain.0.take(&CancelToken::new(), &InlineScope::unknown(), done);
    }
    put(&chain.0, &[1]).wait().unwrap();
    assert_eq!(chain.1.load(Ordering::SeqCst), 100_001);
}

#[test]
fn nothing_is_lost_or_doubled_when_many_threads_take_put_and_cancel() {
    for kind in [Kind::Fifo, Kind::Shuffle { min_after_dequeue: 3, seed: (1, 1) }] {
        let q = queue(kind, Some(7));
        let taken = parking_lot::Mutex::new(Vec::new());
        let (threads, each) = (4i64, 500i64);
        std::thread::scope(|scope| {
            let putters: Vec<_> = (0..threads)
                .map(|t| {
                    let q = &q;
                    scope.spawn(move || {
                        for i in (0..each).step_by(2) {
                            put(q, &[t * each + i, t * each + i + 1]).wait().unwrap();
                        }
                    })
                })
                .collect();
            for t in 0..3u64 {
                let (q, taken) = (&q, &taken);
                scope.spawn(move || {
                    for i in 0u64.. {
                        let (token, (pending, done)) = (CancelToken::new(), Pending::new());
                        q.take_many(
                            1 + (i % 5) as usize,
                            true,
                            &token,
                            &InlineScope::unknown(),
                            done,
                        );
                        if (i + t) % 3 == 0 {
                            token.cancel(err!(Cancelled, "stop"));
                        }
                        match pending.wait() {
                            Ok(got) => taken.lock().extend(ints(Ok(got))),
                            Err(e) if e.code() == Code::Cancelled => {}
                            Err(e) => {
                                assert_eq!(e.code(), Code::OutOfRange, "{e}");
                                break;
                            }
                        }
                    }
                });
            }
            for p in putters {
                p.join().unwrap();
            }
            close(&q).wait().unwrap();
        });
        let mut taken = taken.into_inner();
        taken.sort();
        assert_eq!(taken, (0..threads * each).collect::<Vec<_>>());
        assert_eq!((q.len(), q.waiting()), (0, (0, 0)));
    }
}

fn made(op: &str, resources: &Arc<Resources>, capacity: i64) -> Value {
    let check = check(op)
        .resources(resources)
        .attr("component_types", vec![DType::Float, DType::String])
        .attr("shapes", vec![PartialShape::from([2]), PartialShape::scalar()])
        .attr("shared_name", "mail")
        .attr("capacity", capacity);
    check.run_values().unwrap().remove(0)
}

fn on(op: &str, resources: &Arc<Resources>, handle: &Value) -> Check<'static> {
    let check = check(op).resources(resources);
    match handle {
        Value::Ref(v) => check.ref_input(v.clone()),
        Value::Tensor(t) => check.input(t.clone()),
        _ => unreachable!(),
    }
}

#[test]
fn ops_work_through_handles_of_either_kind() {
    let types = vec![DType::Float, DType::String];
    for v2 in ["", "V2"] {
        let op = |name: &str| format!("{name}{v2}");
        let resources = Arc::new(Resources::new());
        let q = made(&op("FIFOQueue"), &resources, 5);
        on(&op("QueueEnqueue"), &resources, &q)
            .input(Tensor::vector(&[1.0f32, 2.0]))
            .input(Tensor::string("a"))
            .run()
            .unwrap();
        on(&op("QueueEnqueueMany"), &resources, &q)
            .input(Tensor::from_slice([2, 2], &[3.0f32, 4.0, 5.0, 6.0]).unwrap())
            .input(Tensor::from_strings([2], vec!["b".into(), "c".into()]).unwrap())
            .run()
            .unwrap();
        on(&op("QueueSize"), &resources, &q).gives(Tensor::scalar(3i32));
        let got = on(&op("QueueDequeue"), &resources, &q)
            .attr("component_types", types.clone())
            .run()
            .unwrap();
        assert_eq!(got, [Tensor::vector(&[1.0f32, 2.0]), Tensor::string("a")]);
        let got = on(&op("QueueDequeueMany"), &resources, &q)
            .input(Tensor::scalar(1i32))
            .attr("component_types", types.clone())
            .run()
            .unwrap();
        assert_eq!(got[0], Tensor::from_slice([1, 2], &[3.0f32, 4.0]).unwrap());
        on(&op("QueueIsClosed"), &resources, &q).gives(Tensor::scalar(false));
        on(&op("QueueClose"), &resources, &q).run().unwrap();
        on(&op("QueueIsClosed"), &resources, &q).gives(Tensor::scalar(true));
        let got = on(&op("QueueDequeueUpTo"), &resources, &q)
            .input(Tensor::scalar(10i32))
            .attr("component_types", types.clone())
            .run()
            .unwrap();
        assert_eq!(got[1].strings().unwrap(), ["c"]);
        on(&op("QueueDequeue"), &resources, &q).attr("component_types", types.clone()).fails(
            Code::OutOfRange,
            "FIFOQueue 'mail' is closed and has insufficient elements (requested 1, current size 0)",
        );
    }
}

#[test]
fn wrong_elements_and_requests_are_refused() {
    let resources = Arc::new(Resources::new());
    let q = made("FIFOQueueV2", &resources, 5);
    let enqueue = || on("QueueEnqueueV2", &resources, &q);
    enqueue()
        .input(Tensor::vector(&[1.0f32]))
        .input(Tensor::string("a"))
        .fails(Code::InvalidArgument, "Shape mismatch in tuple component 0. Expected [2], got [1]");
    enqueue().input(Tensor::scalar(1i32)).fails(
        Code::InvalidArgument,
        "Signature mismatch, have: resource, int32-> expected: resource, float, string->",
    );
    let many = || on("QueueEnqueueManyV2", &resources, &q);
    let texts = |n: usize| Tensor::from_strings([n], vec!["x".into(); n]).unwrap();
    many()
        .input(Tensor::zeros(DType::Float, [1, 2]).unwrap())
        .input(texts(2))
        .fails(Code::InvalidArgument, "Shape mismatch in tuple component 1. Expected [1], got [2]");
    many()
        .input(Tensor::scalar(1.0f32))
        .input(texts(2))
        .fails(Code::InvalidArgument, "component 0");
    let types = vec![DType::Float, DType::String];
    on("QueueDequeueManyV2", &resources, &q)
        .input(Tensor::scalar(-1i32))
        .attr("component_types", types.clone())
        .fails(Code::InvalidArgument, "DequeueManyOp requested -1 < 0 elements");
    on("QueueDequeueV2", &resources, &q)
        .attr("component_types", types.clone())
        .attr("timeout_ms", 5)
        .fails(Code::InvalidArgument, "Timeout not supported yet.");
    on("QueueDequeueV2", &resources, &q).attr("component_types", vec![DType::Int32]).fails(
        Code::InvalidArgument,
        "Signature mismatch, have: resource->int32 expected: resource->float, string",
    );
}

#[test]
fn a_shared_queue_must_be_what_is_asked_for() {
    let resources = Arc::new(Resources::new());
    let _ = made("FIFOQueueV2", &resources, 5);
    let again = |op: &str| check(op).resources(&resources).attr("shared_name", "mail");
    again("FIFOQueueV2")
        .attr("component_types", vec![DType::Float, DType::String])
        .attr("shapes", vec![PartialShape::from([2]), PartialShape::scalar()])
        .attr("capacity", 6)
        .fails(
            Code::InvalidArgument,
            "Shared queue 'mail' has capacity 5 but requested capacity was 6",
        );
    again("FIFOQueueV2").attr("component_types", vec![DType::Float]).attr("capacity", 5).fails(
        Code::InvalidArgument,
        "Shared queue 'mail' has component types float, string but requested component types were \
         float",
    );
    again("FIFOQueueV2")
        .attr("component_types", vec![DType::Float, DType::String])
        .attr("capacity", 5)
        .fails(
            Code::InvalidArgument,
            "Shared queue 'mail' has component shapes [[2], []] but requested component shapes \
             were []",
        );
    again("RandomShuffleQueueV2")
        .attr("component_types", vec![DType::Float])
        .attr("capacity", 5)
        .attr("min_after_dequeue", 1)
        .fails(Code::InvalidArgument, "Expected FIFOQueue, found RandomShuffleQueueV2");
}

#[test]
fn declarations_are_checked() {
    let new = |op: &str| check(op).attr("component_types", vec![DType::Int32]).attr("capacity", 3);
    new("RandomShuffleQueueV2")
        .attr("min_after_dequeue", 5)
        .fails(Code::InvalidArgument, "min_after_dequeue 5 must be < capacity 3");
    new("FIFOQueueV2")
        .attr("shapes", vec![PartialShape::of_rank(1)])
        .fails(Code::InvalidArgument, "Shape [?] is not fully defined");
    new("PaddingFIFOQueueV2").fails(Code::InvalidArgument, "Shapes must be provided");
}

#[test]
fn a_padding_queue_pads_its_batches() {
    let resources = Arc::new(Resources::new());
    let q = check("PaddingFIFOQueueV2")
        .resources(&resources)
        .attr("component_types", vec![DType::Int32])
        .attr("shapes", vec![PartialShape::new([None, Some(1)])])
        .attr("shared_name", "p")
        .run_values()
        .unwrap()
        .remove(0);
    for n in [1, 2] {
        on("QueueEnqueueV2", &resources, &q)
            .input(Tensor::from_slice([n, 1], &vec![n as i32; n]).unwrap())
            .run()
            .unwrap();
    }
    on("QueueDequeueManyV2", &resources, &q)
        .input(Tensor::scalar(2i32))
        .attr("component_types", vec![DType::Int32])
        .gives(Tensor::from_slice([2, 2, 1], &[1i32, 0, 2, 2]).unwrap());
    on("QueueDequeueManyV2", &resources, &q)
        .input(Tensor::scalar(0i32))
        .attr("component_types", vec![DType::Int32])
        .gives(Tensor::zeros(DType::Int32, [0, 0, 1]).unwrap());
}

#[test]
fn a_private_queue_goes_with_its_kernel() {
    let resources = Arc::new(Resources::new());
    let q = check("FIFOQueueV2")
        .resources(&resources)
        .attr("component_types", vec![DType::Int32])
        .run_values()
        .unwrap()
        .remove(0);
    on("QueueSizeV2", &resources, &q).fails(Code::NotFound, "does not exist");
}
