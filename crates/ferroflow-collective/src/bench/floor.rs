//! The floor of an all-reduce among ranks of this host: the work that is left when no one waits for anyone.

use crate::group::SEGMENT;
use crate::reduce::{ReduceOp, combine};
use ferroflow_core::{DType, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Microseconds that `n` ranks on this host need at least for an all-reduce of `bytes` (of `f32`) over TCP.
/// Measured, for about `seconds`: as many threads on the same processors send, each to itself over a connection of
/// its own, the bytes that a rank sends and receives, combine what a rank combines, and read and
/// write buffers as large in the same order; the best of three rounds. None for short buffers, whose time is
/// that of messages, of which algorithms need more or fewer.
pub fn over_tcp(n: usize, bytes: usize, seconds: f64) -> Result<Option<f64>> {
    const SHORT: usize = 64 << 10;
    let problem = |e: std::io::Error| crate::io_error("loopback", &e);
    if bytes < SHORT {
        return Ok(None);
    }
    if n < 2 {
        return Ok(Some(0.0));
    }
    let made: std::io::Result<Vec<Alone>> = (0..n).map(|_| Alone::new(n, bytes)).collect();
    let mut ranks = made.map_err(problem)?;
    let guess = 20e-6 + bytes as f64 / 1e9;
    let repeats = (seconds / guess / 3.0).clamp(2.0, 1000.0) as usize;
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let begin = |rank: &mut Alone| (0..repeats).try_for_each(|_| rank.all_reduce());
            let threads: Vec<_> = ranks.iter_mut().map(|r| scope.spawn(move || begin(r))).collect();
            threads.into_iter().try_for_each(|t| t.join().expect("no work panics"))
        })
        .map_err(problem)?;
        least = least.min(start.elapsed().as_secs_f64() / repeats as f64);
    }
    Ok(Some(least * 1e6))
}

/// Microseconds for the same in shared memory: what `n` ranks copy in, combine and copy out, at the speed
/// of memory, spread over the processors there are.
pub fn in_memory(n: usize, bytes: usize) -> f64 {
    const LONG: usize = 32 << 20;
    let (mut a, b) = (vec![1u8; LONG], vec![1u8; LONG]);
    let copy = best(|| a.copy_from_slice(&b)) / LONG as f64;
    let reduce = best(|| {
        for (a, b) in a.chunks_mut(SEGMENT).zip(b.chunks(SEGMENT)) {
            combine(ReduceOp::Sum, DType::Float, a, b);
        }
    }) / LONG as f64;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (ranks, turns) = (n as f64, (n as f64 / processors as f64).max(1.0));
    turns * (ranks - 1.0) / ranks * bytes as f64 * (2.0 * copy + reduce) * 1e6
}

fn best(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

/// The work of one rank, without the others.
struct Alone {
    n: usize,
    values: Vec<u8>,
    arrived: Vec<u8>,
    out: TcpStream,
    into: TcpStream,
}

impl Alone {
    fn new(n: usize, bytes: usize) -> std::io::Result<Alone> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let out = TcpStream::connect(listener.local_addr()?)?;
        let (into, _) = listener.accept()?;
        out.set_nodelay(true)?;
        out.set_nonblocking(true)?;
        into.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Alone { n, values: vec![0; bytes], arrived: vec![0; SEGMENT], out, into })
    }

    fn all_reduce(&mut self) -> std::io::Result<()> {
        let window = self.n * SEGMENT;
        for start in (0..self.values.len()).step_by(window) {
            let length = (self.values.len() - start).min(window);
            let part = length / 4 / self.n * 4;
            // Of the parts of all ranks, one is never sent.
            for sums in [true, false] {
                for at in (1..self.n).map(|i| start + i * part) {
                    self.pass(at..at + part, sums)?;
                }
            }
        }
        Ok(())
    }

    /// Sends a part, and receives as much to be combined with it, or to its place.
    fn pass(&mut self, part: Range<usize>, sums: bool) -> std::io::Result<()> {
        let mut at = part.start;
        while at < part.end {
            let sent = match self.out.write(&self.values[at..part.end]) {
                Ok(sent) => sent,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                Err(e) => return Err(e),
            };
            let place = &mut self.values[at..at + sent];
            if sums {
                let arrived = &mut self.arrived[..sent];
                self.into.read_exact(arrived)?;
                combine(ReduceOp::Sum, DType::Float, place, arrived);
            } else {
                self.into.read_exact(place)?;
            }
            at += sent;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_alone_moves_and_combines_what_one_of_many_does() {
        let count = 3 * SEGMENT / 4 + 5;
        let mut rank = Alone::new(3, count * 4).unwrap();
        let ones: Vec<u8> = std::iter::repeat_n(1f32.to_ne_bytes(), count).flatten().collect();
        rank.values.copy_from_slice(&ones);
        rank.all_reduce().unwrap();
        let doubled = rank.values.chunks_exact(4).filter(|x| **x == 2f32.to_ne_bytes()).count();
        // Two thirds, in whole elements: of the window, and of the five after it one for each of two.
        assert_eq!(doubled, 2 * (SEGMENT / 4) + 2);
    }

    #[test]
    fn the_floor_is_found_for_long_buffers() {
        assert_eq!(over_tcp(4, 1000, 0.0).unwrap(), None);
        assert!(over_tcp(2, 1 << 17, 0.0).unwrap().unwrap() > 0.0);
        assert_eq!(over_tcp(1, 1 << 20, 0.0).unwrap(), Some(0.0));
    }
}
