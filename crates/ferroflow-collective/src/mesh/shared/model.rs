//! The protocols in shared memory as loom models: every interleaving, and every value that a load
//! may see. The models have the orders of the code (`orders.rs`) and the same steps. A change of
//! the steps there needs a change here.

use super::orders::{FENCE, OBSERVE, PUBLISH};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicUsize, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::sync::atomic::Ordering;

#[derive(Clone, Copy)]
struct Orders {
    publish: Ordering,
    observe: Ordering,
    fence: Ordering,
}

const REAL: Orders = Orders { publish: PUBLISH, observe: OBSERVE, fence: FENCE };
const RELAXED_STORES: Orders = Orders { publish: Ordering::Relaxed, ..REAL };
const RELAXED_LOADS: Orders = Orders { observe: Ordering::Relaxed, ..REAL };
const WEAK_FENCES: Orders = Orders { fence: Ordering::AcqRel, ..REAL };

fn check(two_processes: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // More switches between the threads find nothing else and take minutes.
    builder.preemption_bound = Some(3);
    builder.check(two_processes);
}

/// Bytes that one process uses at a time; loom reports two.
#[derive(Default)]
struct Shared(UnsafeCell<u32>);

impl Shared {
    fn write(&self, value: u32) {
        self.0.with_mut(|to| {
            // SAFETY: loom checks that no other thread uses the cell now.
            unsafe { *to = value }
        });
    }

    fn read(&self) -> u32 {
        self.0.with(|from| {
            // SAFETY: loom checks that no other thread writes to the cell now.
            unsafe { *from }
        })
    }
}

/// `blocks.rs`: a writer fills a block, sends its place, and fills it again after the reader has
/// freed it.
fn block(orders: Orders) {
    #[derive(Default)]
    struct Block {
        in_use: AtomicU32,
        bytes: Shared,
        /// The socket on which places are sent.
        place: Mutex<Option<()>>,
    }
    impl Block {
        fn put(&self, value: u32, orders: Orders) {
            if self.in_use.load(orders.observe) == 0 {
                self.in_use.store(1, Ordering::Relaxed);
                self.bytes.write(value);
                *self.place.lock().unwrap() = Some(());
            }
        }
    }
    check(move || {
        let block = Arc::new(Block::default());
        let reader = {
            let block = block.clone();
            thread::spawn(move || {
                let is_sent = block.place.lock().unwrap().take().is_some();
                if is_sent {
                    assert_ne!(block.bytes.read(), 0);
                    block.in_use.store(0, orders.publish);
                }
            })
        };
        block.put(1, orders);
        block.put(2, orders);
        reader.join().unwrap();
    });
}

/// The byte rings of `SharedRings`, with room for one byte.
fn ring(orders: Orders) {
    #[derive(Default)]
    struct Ring {
        head: AtomicUsize,
        tail: AtomicUsize,
        bytes: Shared,
    }
    check(move || {
        let ring = Arc::new(Ring::default());
        let receiver = {
            let ring = ring.clone();
            thread::spawn(move || {
                for tail in 0..2 {
                    if ring.head.load(orders.observe) == tail {
                        return;
                    }
                    assert_eq!(ring.bytes.read(), tail as u32 + 7);
                    ring.tail.store(tail + 1, orders.publish);
                }
            })
        };
        for head in 0..2 {
            if ring.tail.load(orders.observe) != head {
                break;
            }
            ring.bytes.write(head as u32 + 7);
            ring.head.store(head + 1, orders.publish);
        }
        receiver.join().unwrap();
    });
}

/// `direct.rs`: three ticks of two ranks, so that slots and results are used again.
fn ticks(orders: Orders) {
    const TICKS: usize = 3;
    #[derive(Default)]
    struct Rank {
        entered: AtomicUsize,
        reduced: AtomicUsize,
        slots: [Shared; 2],
        results: [Shared; 2],
    }
    fn enter(own: &Rank, tick: usize, orders: Orders) {
        own.slots[tick % 2].write(tick as u32);
        own.entered.store(tick + 1, orders.publish);
    }
    /// A rank that would have to wait gives up. In another interleaving the other rank is first.
    fn run(own: &Rank, other: &Rank, orders: Orders) {
        enter(own, 0, orders);
        for tick in 0..TICKS {
            if other.entered.load(orders.observe) <= tick {
                return;
            }
            if tick + 1 < TICKS {
                enter(own, tick + 1, orders);
            }
            own.results[tick % 2].write(other.slots[tick % 2].read());
            own.reduced.store(tick + 1, orders.publish);
            if other.reduced.load(orders.observe) <= tick {
                return;
            }
            assert_eq!(other.results[tick % 2].read(), tick as u32);
        }
    }
    check(move || {
        let ranks = Arc::new([Rank::default(), Rank::default()]);
        let second = {
            let ranks = ranks.clone();
            thread::spawn(move || run(&ranks[1], &ranks[0], orders))
        };
        run(&ranks[0], &ranks[1], orders);
        second.join().unwrap();
    });
}

/// `SharedSegment::nudge` and `sleep`: a rank that finds nothing and sleeps is woken.
fn wake_up(orders: Orders) {
    check(move || {
        let (value, asleep) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let wakeups = Arc::new(AtomicU32::new(0));
        let sender = {
            let (value, asleep, wakeups) = (value.clone(), asleep.clone(), wakeups.clone());
            thread::spawn(move || {
                value.store(1, orders.publish);
                fence(orders.fence);
                if asleep.load(Ordering::Relaxed) != 0 {
                    wakeups.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        asleep.store(1, Ordering::Release);
        fence(orders.fence);
        let sleeps = value.load(orders.observe) == 0;
        sender.join().unwrap();
        // The system call returns when the count is another than before.
        assert!(!sleeps || wakeups.load(Ordering::Acquire) != 0, "it sleeps forever");
    });
}

#[test]
fn a_block_has_one_user_at_a_time() {
    block(REAL);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_block_must_be_released_by_its_reader() {
    block(RELAXED_STORES);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_free_block_must_be_acquired_by_its_writer() {
    block(RELAXED_LOADS);
}

#[test]
fn a_rings_bytes_have_one_user_at_a_time() {
    ring(REAL);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn positions_of_a_ring_must_be_released() {
    ring(RELAXED_STORES);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn positions_of_a_ring_must_be_acquired() {
    ring(RELAXED_LOADS);
}

#[test]
fn slots_and_results_of_ticks_have_one_user_at_a_time() {
    ticks(REAL);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn flags_of_ticks_must_be_released() {
    ticks(RELAXED_STORES);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn flags_of_ticks_must_be_acquired() {
    ticks(RELAXED_LOADS);
}

#[test]
fn a_sleeping_rank_is_woken() {
    wake_up(REAL);
}

#[test]
#[should_panic(expected = "it sleeps forever")]
fn a_wake_up_needs_sequentially_consistent_fences() {
    wake_up(WEAK_FENCES);
}
