//! Connections between processes that start in any order. Connecting is retried until the peer
//! listens. A connected peer that sends nothing times out.

use crate::wire::read_frame;
use ferroflow_core::{Result, ensure, err};
use rustix::event::{PollFd, PollFlags};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The end of a wait: a time, or earlier if another thread sets `abandon`.
pub(super) struct Deadline {
    pub time: Instant,
    pub abandon: Option<Arc<AtomicBool>>,
}

impl Deadline {
    /// How often `abandon` is checked.
    const LOOK: Duration = Duration::from_millis(10);

    pub fn after(time: Duration) -> Deadline {
        Deadline { time: Instant::now() + time, abandon: None }
    }

    fn check(&self) -> Result<()> {
        let abandoned = self.abandon.as_ref().is_some_and(|a| a.load(Ordering::SeqCst));
        ensure!(!abandoned, Aborted, "a rank was lost before all ranks had connected");
        Ok(())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.time
    }

    fn left(&self) -> Duration {
        self.time.saturating_duration_since(Instant::now())
    }

    /// Waits until there is something to read. False if the deadline passes first.
    fn readable(&self, from: &impl AsFd) -> Result<bool> {
        let mut polled = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)];
        while !self.is_over() {
            self.check()?;
            let look = match self.abandon {
                Some(_) => self.time.min(Instant::now() + Deadline::LOOK),
                None => self.time,
            };
            crate::mesh::poll_until(&mut polled, look)?;
            if !polled[0].revents().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn bind(address: &str) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| err!(Unavailable, "cannot listen on {address}: {e}"))
}

/// Connects, and retries until the other side listens.
pub(super) fn connect(address: &str, until: &Deadline) -> Result<TcpStream> {
    let mut pause = Duration::from_millis(1);
    let mut last = String::from("no time left");
    while !until.is_over() {
        until.check()?;
        // A name may have several addresses, not all with a listener.
        let tried = address.to_socket_addrs().and_then(|found| {
            let mut last = Err(ErrorKind::NotFound.into());
            for to in found {
                let left = until.left().clamp(Duration::from_millis(1), Duration::from_secs(10));
                last = TcpStream::connect_timeout(&to, left);
                if last.is_ok() {
                    break;
                }
            }
            last
        });
        match tried {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(e) => last = e.to_string(),
        }
        std::thread::sleep(pause.min(until.left()));
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    Err(err!(DeadlineExceeded, "cannot connect to {address}: {last}"))
}

/// The next connection. `None` if the deadline passes first.
pub(super) fn accept(listener: &TcpListener, until: &Deadline) -> Result<Option<TcpStream>> {
    if !until.readable(listener)? {
        return Ok(None);
    }
    let (stream, _) =
        listener.accept().map_err(|e| crate::io_error("cannot accept a connection", &e))?;
    let _ = stream.set_nodelay(true);
    Ok(Some(stream))
}

pub(super) fn frame(stream: &mut TcpStream, until: &Deadline) -> Result<Vec<u8>> {
    if !until.readable(stream)? {
        return Err(err!(Unavailable, "no answer in time"));
    }
    match read_frame(&mut Timely { stream, until }) {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(err!(Unavailable, "the connection was closed")),
        Err(e) => Err(err!(Unavailable, "no answer: {e}")),
    }
}

/// A connection that is read until a deadline, over any number of reads.
struct Timely<'a> {
    stream: &'a TcpStream,
    until: &'a Deadline,
}

impl Read for Timely<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.left();
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

pub(super) fn answer(stream: &mut TcpStream, until: &Deadline) -> Result<u8> {
    Ok(frame(stream, until)?.first().copied().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_deadline_holds_for_a_frame_that_arrives_byte_by_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let dribble = std::thread::spawn(move || {
            slow.set_nodelay(true).unwrap();
            slow.write_all(&(60u32 << 20).to_le_bytes()).unwrap();
            while slow.write_all(&[0]).is_ok() {
                std::thread::yield_now();
            }
        });
        let until = Deadline::after(Duration::from_millis(50));
        assert!(frame(&mut stream, &until).unwrap_err().message().contains("no answer"));
        drop(stream);
        dribble.join().unwrap();
    }
}
