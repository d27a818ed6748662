//! Loops over the elements of variables.

use ferroflow_core::ComputePool;
use parking_lot::Mutex;

/// Parts that one thread works on at a time: large enough to amortise handing them out.
const CHUNK: usize = 16 * 1024;

/// Calls `work` with the parts of `all` and where each begins, on several threads when there are
/// many elements that take `cost` nanoseconds each.
pub(crate) fn in_chunks<T: Send>(
    all: &mut [T],
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if all.len() <= 2 * CHUNK {
        return work(0, all);
    }
    // Every part is locked once, by whoever works on it: the locks are never contended.
    let parts: Vec<Mutex<&mut [T]>> = all.chunks_mut(CHUNK).map(Mutex::new).collect();
    ComputePool::parallel_for(parts.len(), cost * CHUNK, |range| {
        for i in range {
            work(i * CHUNK, &mut parts[i].lock());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_visited_once() {
        for len in [0, 1, CHUNK, 5 * CHUNK + 7] {
            let mut all = vec![0usize; len];
            in_chunks(&mut all, 100, |from, part| {
                part.iter_mut().enumerate().for_each(|(i, x)| *x += from + i);
            });
            assert!(all.iter().enumerate().all(|(i, &x)| x == i));
        }
    }
}
