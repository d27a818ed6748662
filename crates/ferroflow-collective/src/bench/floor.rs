//! Lower bounds for an all-reduce among ranks of this host: a plain stream of the same bytes, and,
//! lower still, the work without any waiting.

use crate::group::SEGMENT;
use crate::loopback;
use crate::reduce::{ReduceOp, combine};
use ferroflow_core::{DType, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Below this size, the number of messages dominates, and it depends on the algorithm.
pub const SHORT: usize = 64_000;

/// The least microseconds that `n` ranks on this host need for an all-reduce of `bytes` of `f32`
/// over TCP. `None` for buffers shorter than [`SHORT`].
///
/// It is measured for about `seconds`: `n` threads on the same processors do the work of a rank
/// without the others. Each sends to itself, over its own connection, the bytes that a rank sends
/// and receives. It combines as many bytes, and uses buffers of the same size in the same order.
/// The result is the best of three rounds.
pub fn over_tcp(n: usize, bytes: usize, seconds: f64) -> Result<Option<f64>> {
    let problem = |e: std::io::Error| crate::io_error("cannot measure loopback", &e);
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

/// Bytes per second of a plain stream over loopback TCP, with one writing and one reading thread,
/// for about `seconds`. The best of three rounds.
pub fn stream(seconds: f64) -> Result<f64> {
    const PIECE: usize = 256 << 10;
    let once = || -> std::io::Result<f64> {
        let (mut out, mut into) = connection()?;
        into.set_read_timeout(Some(Duration::from_secs(10)))?;
        out.set_write_timeout(Some(Duration::from_secs(10)))?;
        let pieces = (seconds / 3.0 * 2e9 / PIECE as f64).max(64.0) as usize;
        let start = Instant::now();
        std::thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let piece = vec![1; PIECE];
                (0..pieces).try_for_each(|_| out.write_all(&piece))
            });
            let mut piece = vec![0; PIECE];
            let received = (0..pieces).try_for_each(|_| into.read_exact(&mut piece));
            sender.join().expect("no work panics")?;
            received
        })?;
        Ok((pieces * PIECE) as f64 / start.elapsed().as_secs_f64())
    };
    let mut best = 0f64;
    for _ in 0..3 {
        best = best.max(once().map_err(|e| crate::io_error("cannot measure loopback", &e))?);
    }
    Ok(best)
}

/// Microseconds that `n` ranks on this host need to send the bytes of an all-reduce of `bytes`, at
/// the speed of a stream of `rate` bytes per second that keeps two processors busy.
pub fn at_stream(n: usize, bytes: usize, rate: f64) -> f64 {
    let sent = 2.0 * (n as f64 - 1.0) / n as f64 * bytes as f64;
    ranks_per_processor(n) * 2.0 * sent / rate * 1e6
}

/// How many of `n` ranks share a processor.
fn ranks_per_processor(n: usize) -> f64 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (n as f64 / processors as f64).max(1.0)
}

/// The least microseconds in shared memory: `n` ranks copy in, combine and copy out at the speed of
/// buffers of this size, spread over the processors. `None` for buffers shorter than [`SHORT`].
pub fn in_memory(n: usize, bytes: usize) -> Option<f64> {
    if bytes < SHORT {
        return None;
    }
    let long = bytes.min(32 << 20).next_multiple_of(4);
    let (mut a, b) = (vec![1u8; long], vec![1u8; long]);
    let copy = best(|| a.copy_from_slice(&b)) / long as f64;
    let reduce = best(|| {
        for (a, b) in a.chunks_mut(SEGMENT).zip(b.chunks(SEGMENT)) {
            combine(ReduceOp::Sum, DType::Float, a, b);
        }
    }) / long as f64;
    let ranks = n as f64;
    Some(
        ranks_per_processor(n) * (ranks - 1.0) / ranks * bytes as f64 * (2.0 * copy + reduce) * 1e6,
    )
}

fn best(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..5).map(once).fold(f64::INFINITY, f64::min)
}

/// Both ends of a loopback connection.
fn connection() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let out = TcpStream::connect(listener.local_addr()?)?;
    let (into, _) = listener.accept()?;
    out.set_nodelay(true)?;
    loopback::tune(&out, out.local_addr(), out.peer_addr());
    Ok((out, into))
}

/// The work of one rank, without the other ranks.
struct Alone {
    n: usize,
    values: Vec<u8>,
    arrived: Vec<u8>,
    out: TcpStream,
    into: TcpStream,
}

impl Alone {
    fn new(n: usize, bytes: usize) -> std::io::Result<Alone> {
        let (out, into) = connection()?;
        out.set_nonblocking(true)?;
        into.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Alone { n, values: vec![0; bytes], arrived: vec![0; SEGMENT], out, into })
    }

    /// Processes the buffer in windows, like a ring.
    fn all_reduce(&mut self) -> std::io::Result<()> {
        let n = self.n;
        let window = n * SEGMENT;
        for start in (0..self.values.len()).step_by(window) {
            let length = (self.values.len() - start).min(window);
            let part = length / 4 / n * 4;
            let place = |i: usize| start + i % n * part;
            for (first, sums) in [(0, true), (n - 1, false)] {
                for i in (first..).take(n - 1) {
                    let (out, into) = (place(i), place(i + 1));
                    self.pass(out..out + part, into, sums)?;
                }
            }
        }
        Ok(())
    }

    /// Sends a part, and receives as many bytes into another place. They are combined with the
    /// values there, or overwrite them.
    fn pass(&mut self, out: Range<usize>, into: usize, sums: bool) -> std::io::Result<()> {
        let mut at = out.start;
        while at < out.end {
            let sent = match self.out.write(&self.values[at..out.end]) {
                Ok(sent) => sent,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
                Err(e) => return Err(e),
            };
            let into = into + (at - out.start);
            let place = &mut self.values[into..into + sent];
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
    fn a_single_rank_moves_and_combines_as_much_as_one_of_many() {
        let count = 3 * SEGMENT / 4 + 5;
        let mut rank = Alone::new(3, count * 4).unwrap();
        let ones: Vec<u8> = std::iter::repeat_n(1f32.to_ne_bytes(), count).flatten().collect();
        rank.values.copy_from_slice(&ones);
        rank.all_reduce().unwrap();
        let sums = rank.values.chunks_exact(4).filter(|x| **x == 3f32.to_ne_bytes()).count();
        // All of the window, and one for each of three ranks of the five elements after it.
        assert_eq!(sums, 3 * (SEGMENT / 4) + 3);
    }

    #[test]
    fn at_stream_adds_up_what_all_ranks_send() {
        let rate = stream(0.0).unwrap();
        assert!(rate > 1e6, "{rate}");
        // Two ranks on their own processors send each other all bytes, one after the other.
        assert_eq!(
            at_stream(2, 1 << 20, 1e9) / ranks_per_processor(2),
            2.0 * (1 << 20) as f64 / 1e3
        );
    }

    #[test]
    fn the_lower_bound_exists_for_long_buffers_only() {
        assert_eq!(over_tcp(4, 1000, 0.0).unwrap(), None);
        assert!(over_tcp(2, 1 << 17, 0.0).unwrap().unwrap() > 0.0);
        assert_eq!(over_tcp(1, 1 << 20, 0.0).unwrap(), Some(0.0));
    }
}
