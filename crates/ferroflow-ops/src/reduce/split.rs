//! Writing one output from several threads: the output is cut into runs of whole rows.

use ferroflow_core::ComputePool;
use parking_lot::Mutex;
use std::ops::Range;

/// Runs `work(rows, part)` over `out`, cut into parts of whole rows of `row` elements, on several
/// threads when `cost` nanoseconds a row are worth it. `row` may be 0 only if `out` is empty.
pub(crate) fn for_rows<T: Send>(
    out: &mut [T],
    row: usize,
    cost: usize,
    work: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let rows = out.len().checked_div(row).unwrap_or(0);
    for_rows2(out, row, &mut vec![(); rows], 1, cost, |range, part, _| work(range, part));
}

/// [`for_rows`] over two outputs with as many rows each.
pub(crate) fn for_rows2<A: Send, B: Send>(
    a: &mut [A],
    row_a: usize,
    b: &mut [B],
    row_b: usize,
    cost: usize,
    work: impl Fn(Range<usize>, &mut [A], &mut [B]) + Sync,
) {
    let rows = a.len().checked_div(row_a).or(b.len().checked_div(row_b)).unwrap_or(0);
    if rows == 0 {
        return;
    }
    let parts = ComputePool::threads().min(rows);
    if parts == 1 || rows.saturating_mul(cost) < 50_000 {
        return work(0..rows, a, b);
    }
    let start = |i: usize| rows * i / parts;
    let (mut rest_a, mut rest_b) = (a, b);
    let mut pieces = Vec::with_capacity(parts);
    for i in 0..parts {
        let n = start(i + 1) - start(i);
        let (piece_a, next_a) = rest_a.split_at_mut(n * row_a);
        let (piece_b, next_b) = rest_b.split_at_mut(n * row_b);
        pieces.push(Mutex::new(Some((piece_a, piece_b))));
        (rest_a, rest_b) = (next_a, next_b);
    }
    ComputePool::parallel_for(parts, cost.saturating_mul(rows / parts), |range| {
        for i in range {
            if let Some((a, b)) = pieces[i].lock().take() {
                work(start(i)..start(i + 1), a, b);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_written_once() {
        for (rows, row, cost) in [(0, 3, 1), (1, 1, 1), (7, 3, 1_000_000), (5, 0, 1_000_000)] {
            let mut out = vec![0; rows * row];
            for_rows(&mut out, row, cost, |range, part| {
                assert_eq!(part.len(), range.len() * row);
                for (i, x) in part.iter_mut().enumerate() {
                    *x += range.start * row + i;
                }
            });
            assert_eq!(out, (0..rows * row).collect::<Vec<_>>());
        }
    }
}
