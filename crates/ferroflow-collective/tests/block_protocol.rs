//! The protocol of `src/blocks.rs` as a loom model: every interleaving of a writer and a reader,
//! every value that a relaxed load may see. The model is the protocol with loom's types, not the
//! code itself; a change of one needs a change of the other.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const FREE: u32 = 0;
const IN_USE: u32 = 1;

/// The shared memory: one block and its flag.
struct Memory {
    flag: AtomicU32,
    block: UnsafeCell<u32>,
}

/// `BlockWriter::put`: takes the block if it is free, and fills it.
fn put(memory: &Memory, value: u32, sees_freed: Ordering) -> bool {
    if memory.flag.load(sees_freed) != FREE {
        return false;
    }
    memory.flag.store(IN_USE, Ordering::Relaxed);
    memory.block.with_mut(|block| {
        // SAFETY: loom checks that the reader does not look at the block now.
        unsafe { *block = value }
    });
    true
}

/// `BlockReader::block`, reading, and `SharedBlock::drop`.
fn read(memory: &Memory, expected: u32, frees: Ordering) {
    assert_eq!(memory.flag.load(Ordering::Acquire), IN_USE);
    let got = memory.block.with(|block| {
        // SAFETY: loom checks that the writer does not write to the block now.
        unsafe { *block }
    });
    assert_eq!(got, expected);
    memory.flag.store(FREE, frees);
}

/// A block is filled and its place is sent, which orders the filling before the reading: here by
/// the start of the reader. Meanwhile the writer has a second value.
fn two_values(sees_freed: Ordering, frees: Ordering) {
    loom::model(move || {
        let memory = Arc::new(Memory { flag: AtomicU32::new(FREE), block: UnsafeCell::new(0) });
        assert!(put(&memory, 1, sees_freed), "nothing is in the block");
        let reader = {
            let memory = memory.clone();
            thread::spawn(move || read(&memory, 1, frees))
        };
        // The second value goes another way if the block is still in use.
        let is_reused = put(&memory, 2, sees_freed);
        reader.join().expect("the reader ends");
        let expected = if is_reused { IN_USE } else { FREE };
        assert_eq!(memory.flag.load(Ordering::Acquire), expected);
    });
}

#[test]
fn a_block_is_not_filled_while_it_is_read() {
    two_values(Ordering::Acquire, Ordering::Release);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_writer_must_acquire_the_end_of_the_read() {
    two_values(Ordering::Relaxed, Ordering::Release);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_reader_must_release_what_it_has_read() {
    two_values(Ordering::Acquire, Ordering::Relaxed);
}
