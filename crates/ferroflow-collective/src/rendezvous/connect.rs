//! Connections between processes that come up in any order: patience with those that do not listen yet, none
//! with those that say nothing.

use crate::wire::read_frame;
use ferroflow_core::{Result, ensure, err};
use rustix::event::{PollFd, PollFlags};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long one waits for the others: until a time, or until there is no use in it.
pub(super) struct Until {
    pub time: Instant,
    pub abandon: Option<Arc<AtomicBool>>,
}

impl Until {
    /// How often one looks whether to go on waiting.
    const LOOK: Duration = Duration::from_millis(10);

    pub fn after(time: Duration) -> Until {
        Until { time: Instant::now() + time, abandon: None }
    }

    fn check(&self) -> Result<()> {
        let abandoned = self.abandon.as_ref().is_some_and(|a| a.load(Ordering::SeqCst));
        ensure!(!abandoned, Aborted, "one of the ranks went before all had met");
        Ok(())
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.time
    }

    fn left(&self) -> Duration {
        self.time.saturating_duration_since(Instant::now())
    }

    /// Waits until there is something to read; whether there is before time is up.
    fn readable(&self, from: &impl AsFd) -> Result<bool> {
        let mut polled = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)];
        while !self.is_over() {
            self.check()?;
            let look = match self.abandon {
                Some(_) => self.time.min(Instant::now() + Until::LOOK),
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

/// Connects, trying again until the other side listens.
pub(super) fn connect(address: &str, until: &Until) -> Result<TcpStream> {
    let mut pause = Duration::from_millis(1);
    let mut last = String::from("no time left");
    while !until.is_over() {
        until.check()?;
        let tried = address.to_socket_addrs().and_then(|mut found| {
            let to = found.next().ok_or(std::io::ErrorKind::NotFound)?;
            TcpStream::connect_timeout(&to, until.left().min(Duration::from_secs(10)))
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

/// The next connection, if one comes in time.
pub(super) fn accept(listener: &TcpListener, until: &Until) -> Result<Option<TcpStream>> {
    if !until.readable(listener)? {
        return Ok(None);
    }
    let (stream, _) = listener.accept().map_err(|e| crate::io_error("accepting", &e))?;
    let _ = stream.set_nodelay(true);
    Ok(Some(stream))
}

pub(super) fn frame(stream: &mut TcpStream, until: &Until) -> Result<Vec<u8>> {
    if !until.readable(stream)? {
        return Err(err!(Unavailable, "no answer in time"));
    }
    let left = until.left().max(Duration::from_millis(1));
    stream.set_read_timeout(Some(left)).map_err(|e| crate::io_error("a connection", &e))?;
    match read_frame(stream) {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(err!(Unavailable, "the connection was closed")),
        Err(e) => Err(err!(Unavailable, "no answer: {e}")),
    }
}

pub(super) fn answer(stream: &mut TcpStream, until: &Until) -> Result<u8> {
    Ok(frame(stream, until)?.first().copied().unwrap_or(0))
}
