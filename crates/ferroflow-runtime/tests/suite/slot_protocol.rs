//! The slot and counter protocol of `src/slots.rs`, `src/flat.rs` and `src/frames.rs` as a loom
//! model: every interleaving, and every value that a relaxed load may return. The model repeats the
//! protocol with loom's types: a change of one needs a change of the other.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// A node with two inputs, written by two sources.
struct State {
    slots: [UnsafeCell<u32>; 2],
    pending: AtomicU32,
}

impl State {
    fn new() -> State {
        State { slots: [UnsafeCell::new(0), UnsafeCell::new(0)], pending: AtomicU32::new(2) }
    }

    /// `FlatState::complete` for the edge of one source. Returns whether the consumer is ready.
    fn complete(&self, slot: usize, value: u32, count_down: Ordering) -> bool {
        self.slots[slot].with_mut(|to| {
            // SAFETY: loom checks that no other thread touches the slot now.
            unsafe { *to = value }
        });
        self.pending.fetch_sub(1, count_down) == 1
    }

    /// Runs the ready consumer: takes both inputs.
    fn consume(&self) -> u32 {
        self.slots
            .iter()
            .map(|slot| {
                slot.with_mut(|from| {
                    // SAFETY: all writers are done, as loom checks.
                    unsafe { std::mem::take(&mut *from) }
                })
            })
            .sum()
    }
}

fn two_sources(count_down: Ordering) {
    loom::model(move || {
        let state = Arc::new(State::new());
        let other = {
            let state = state.clone();
            thread::spawn(move || state.complete(0, 1, count_down).then(|| state.consume()))
        };
        let here = state.complete(1, 2, count_down).then(|| state.consume());
        let there = other.join().unwrap();
        // Exactly one of them ran the consumer, which saw both values.
        assert_eq!((here.xor(there), here.is_some() && there.is_some()), (Some(3), false));
    });
}

#[test]
fn the_last_writer_reads_all_inputs() {
    two_sources(Ordering::AcqRel);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_counter_must_acquire_what_the_others_released() {
    two_sources(Ordering::Release);
}

/// Two loops of one run, and the next step that reuses the run's state: `Run::count_down` and
/// `FlatState::recycle`.
fn recycled(outstanding_order: Ordering) {
    loom::model(move || {
        let state = Arc::new(State::new());
        let outstanding = Arc::new(AtomicU32::new(2));
        let spare = Arc::new(Mutex::new(None));
        let run = |slot: usize| {
            let (state, outstanding, spare) = (state.clone(), outstanding.clone(), spare.clone());
            move || {
                if state.complete(slot, 1, Ordering::AcqRel) {
                    assert_eq!(state.consume(), 2);
                }
                if outstanding.fetch_sub(1, outstanding_order) == 1 {
                    *spare.lock().unwrap() = Some(state);
                }
            }
        };
        let (a, b) = (thread::spawn(run(0)), thread::spawn(run(1)));
        // The next step begins when the state is there, even if threads of the last step still run.
        if let Some(state) = spare.lock().unwrap().take() {
            state.pending.store(2, Ordering::Relaxed);
            assert!(!state.complete(0, 5, Ordering::AcqRel));
            assert!(state.complete(1, 5, Ordering::AcqRel));
            assert_eq!(state.consume(), 10);
        }
        a.join().unwrap();
        b.join().unwrap();
    });
}

#[test]
fn a_finished_runs_state_can_be_used_by_the_next() {
    recycled(Ordering::AcqRel);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_end_of_a_run_must_be_ordered() {
    recycled(Ordering::Relaxed);
}

/// In frames, counts change under the frame's lock, and only the reader works without it:
/// `activate` with the lock held, then `inputs` and `complete`.
#[test]
fn the_frames_lock_hands_slots_over() {
    struct Frame {
        slots: [UnsafeCell<u32>; 2],
        pending: Mutex<u32>,
    }
    loom::model(|| {
        let frame = Arc::new(Frame {
            slots: [UnsafeCell::new(0), UnsafeCell::new(0)],
            pending: Mutex::new(2),
        });
        let activate = |slot: usize| {
            let frame = frame.clone();
            move || {
                let is_ready = {
                    let mut pending = frame.pending.lock().unwrap();
                    frame.slots[slot].with_mut(|to| {
                        // SAFETY: no other thread touches the slot, as loom checks.
                        unsafe { *to = 1 }
                    });
                    *pending -= 1;
                    *pending == 0
                };
                is_ready.then(|| {
                    let read = |slot: &UnsafeCell<u32>| {
                        slot.with_mut(|from| {
                            // SAFETY: no other thread touches the slot, as loom checks.
                            unsafe { std::mem::take(&mut *from) }
                        })
                    };
                    frame.slots.iter().map(read).sum::<u32>()
                })
            }
        };
        let (a, b) = (thread::spawn(activate(0)), thread::spawn(activate(1)));
        let (a, b) = (a.join().unwrap(), b.join().unwrap());
        assert_eq!(a.xor(b), Some(2));
    });
}
