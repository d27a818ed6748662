//! Connections between processes that start in any order. Connecting is retried until the peer
//! listens. A connected peer that sends nothing times out.

use super::greeter::Timely;
use crate::wire::read_frame;
use ferroflow_core::{Code, Error, Result, ensure, err};
use ferroflow_identity::{ExpectedPeer, JobToken, SecureStream, Trust};
use rustix::event::PollFd;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The end of a wait: a time, or earlier if another thread sets `abandon`.
pub(crate) struct Deadline {
    pub time: Instant,
    pub abandon: Option<Arc<AtomicBool>>,
}

impl Deadline {
    /// How often `abandon` is checked.
    const LOOK: Duration = Duration::from_millis(10);

    pub fn after(time: Duration) -> Deadline {
        Deadline { time: Instant::now() + time, abandon: None }
    }

    pub fn check(&self) -> Result<()> {
        let abandoned = self.abandon.as_ref().is_some_and(|a| a.load(Ordering::SeqCst));
        ensure!(!abandoned, Aborted, "a rank was lost before all ranks had connected");
        Ok(())
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.time
    }

    fn left(&self) -> Duration {
        self.time.saturating_duration_since(Instant::now())
    }

    /// Waits until one of the descriptors is ready. False if the deadline passes first.
    pub fn poll(&self, polled: &mut [PollFd<'_>]) -> Result<bool> {
        while !self.is_over() {
            self.check()?;
            let look = match self.abandon {
                Some(_) => self.time.min(Instant::now() + Deadline::LOOK),
                None => self.time,
            };
            crate::mesh::poll_until(polled, look)?;
            if polled.iter().any(|one| !one.revents().is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Listens, if the trust allows it at that address.
pub(crate) fn bind(address: &str, trust: &Trust) -> Result<TcpListener> {
    let failed = |e| err!(Unavailable, "cannot listen on {address}: {e}");
    let listener = TcpListener::bind(address).map_err(failed)?;
    trust.check_bind(listener.local_addr().map_err(failed)?)?;
    Ok(listener)
}

/// [`bind`], and retries while the host name has no address yet: names of pods appear late.
pub(super) fn bind_when_named(
    address: &str,
    trust: &Trust,
    until: &Deadline,
) -> Result<TcpListener> {
    loop {
        until.check()?;
        match address.to_socket_addrs() {
            Err(_) if !until.is_over() => std::thread::sleep(Duration::from_millis(50)),
            _ => return bind(address, trust),
        }
    }
}

/// The time of one attempt to greet. The other side may not accept connections yet.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Connects to a process of the job and proves the token, and retries until that succeeds. A peer
/// that is not of this job is an error at once.
pub(super) fn connect(
    address: &str,
    role: &str,
    trust: &Trust,
    token: &JobToken,
    until: &Deadline,
) -> Result<SecureStream> {
    loop {
        let tcp = connect_tcp(address, until)?;
        let deadline = until.time.min(Instant::now() + ATTEMPT);
        let expected = ExpectedPeer { address, role: Some(role) };
        match SecureStream::connect(tcp, trust, token, expected, deadline) {
            Ok(stream) => return Ok(stream),
            Err(e) if e.code() == Code::PermissionDenied || until.is_over() => {
                return Err(e.context(format!("cannot connect to {address}")));
            }
            Err(e) => tracing::debug!("{address}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(5).min(until.left()));
    }
}

/// Connects to the first of several addresses of a process at which it answers. All are tried at
/// the same time: some may lead nowhere, or to another host with the same address.
pub(super) fn connect_any(
    addresses: &[String],
    role: &str,
    trust: &Trust,
    token: &JobToken,
    until: &Deadline,
) -> Result<SecureStream> {
    if let [address] = addresses {
        return connect(address, role, trust, token, until);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    for address in addresses {
        let (address, role, trust) = (address.clone(), role.to_string(), trust.clone());
        let (token, tell) = (token.clone(), tell.clone());
        let until = Deadline { time: until.time, abandon: Some(stop.clone()) };
        let work = move || drop(tell.send(connect(&address, &role, &trust, &token, &until)));
        let thread = std::thread::Builder::new().name("ff-connect".into()).stack_size(256 << 10);
        thread.spawn(work).map_err(|e| crate::io_error("cannot start a thread", &e))?;
    }
    drop(tell);
    let mut refused: Option<Error> = None;
    let outcome = loop {
        match told.recv_timeout(Deadline::LOOK) {
            Ok(Ok(stream)) => break Ok(stream),
            Ok(Err(e)) => refused = Some(e),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(e) = until.check() {
                    break Err(e);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                break Err(refused.unwrap_or_else(|| err!(Internal, "no address to connect to")));
            }
        }
    };
    stop.store(true, Ordering::SeqCst);
    outcome
}

/// Connects, and retries until the other side listens.
fn connect_tcp(address: &str, until: &Deadline) -> Result<TcpStream> {
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

pub(super) fn frame(stream: &SecureStream, until: &Deadline) -> Result<Vec<u8>> {
    let mut timely = Timely { stream, deadline: until.time };
    let read = loop {
        until.check()?;
        // Short waits, so that an abandoned wait ends.
        if until.abandon.is_some() {
            timely.deadline = until.time.min(Instant::now() + Deadline::LOOK);
            match stream.is_readable(timely.deadline) {
                Ok(false) if !until.is_over() => continue,
                Ok(_) => timely.deadline = until.time,
                Err(e) => break Err(e),
            }
        }
        break read_frame(&mut timely);
    };
    let _ = stream.tcp().set_read_timeout(None);
    match read {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(err!(Unavailable, "the connection was closed")),
        Err(e) if matches!(e.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            Err(err!(Unavailable, "no answer in time"))
        }
        Err(e) => Err(err!(Unavailable, "no answer: {e}")),
    }
}

pub(super) fn answer(stream: &SecureStream, until: &Deadline) -> Result<u8> {
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
        let (stream, _) = listener.accept().unwrap();
        let dribble = std::thread::spawn(move || {
            slow.set_nodelay(true).unwrap();
            slow.write_all(&(60u32 << 20).to_le_bytes()).unwrap();
            while slow.write_all(&[0]).is_ok() {
                std::thread::yield_now();
            }
        });
        let until = Deadline::after(Duration::from_millis(50));
        let stream = SecureStream::plain(stream);
        assert!(frame(&stream, &until).unwrap_err().message().contains("no answer"));
        drop(stream);
        dribble.join().unwrap();
    }
}
