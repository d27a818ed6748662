//! Hands shared memory to other processes of the same host and user: the descriptor goes over a
//! Unix socket. Both sides check the user of the other with the kernel. The receiver checks that no
//! process can resize the memory: an access behind the end of a file kills a process.

use ferroflow_core::{Result, ensure, err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    socket_with,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The seals of memory that keeps its size, including that no seal is ever added.
pub(super) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// How long an offer stands. The other processes get the name right after it is made.
const OFFERED: Duration = Duration::from_secs(60);
/// The timeout of the receiver. The offering process only sends one message.
const TAKING: Duration = Duration::from_secs(5);

/// Offers `file` to `times` processes. Returns the name under which they find it.
pub(super) fn offer(file: &OwnedFd, times: usize) -> Result<String> {
    let failed = |e: io::Error| err!(Unavailable, "cannot offer shared memory: {e}");
    let file = file.try_clone().map_err(failed)?;
    let name = random_name().map_err(|e| failed(e.into()))?;
    let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
    let listener = UnixListener::bind_addr(&address).map_err(failed)?;
    let until = Instant::now() + OFFERED;
    let serve = move || {
        let mut left = times;
        while left > 0 && is_readable(listener.as_fd(), until) {
            let Ok((stream, _)) = listener.accept() else { return };
            match send(&stream, file.as_fd()) {
                Ok(()) => left -= 1,
                Err(e) => tracing::debug!("a process did not get shared memory: {e}"),
            }
        }
    };
    let thread = std::thread::Builder::new().name("ff-handover".into()).spawn(serve);
    thread.map_err(failed)?;
    Ok(name)
}

/// Takes the memory that another process offers under `name`. It must have `len` bytes.
pub(super) fn take(name: &str, len: usize) -> Result<OwnedFd> {
    let failed = |e: io::Error| err!(Unavailable, "cannot get shared memory {name}: {e}");
    let stream = connect(name, Instant::now() + TAKING).map_err(failed)?;
    check_user(&stream).map_err(failed)?;
    let file = receive(&stream).map_err(failed)?;
    check(&file, len)?;
    Ok(file)
}

/// Connects to the process that offers memory under `name`. A blocking call could wait forever for
/// one that accepts no connections.
fn connect(name: &str, until: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    while let Err(e) = rustix::net::connect(&socket, &address) {
        if e != rustix::io::Errno::AGAIN || Instant::now() >= until {
            return Err(e.into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Checks that the memory has this size forever.
fn check(file: &OwnedFd, len: usize) -> Result<()> {
    let seals = fcntl_get_seals(file).unwrap_or(SealFlags::empty());
    ensure!(seals.contains(SEALS), DataLoss, "the shared memory can be resized: seals {seals:?}");
    let size = fstat(file).map_or(-1, |stat| stat.st_size);
    ensure!(
        u64::try_from(size).is_ok_and(|size| size == len as u64),
        DataLoss,
        "the shared memory has {size} bytes, expected {len}"
    );
    Ok(())
}

fn random_name() -> rustix::io::Result<String> {
    let mut bytes = [0u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
    }
    Ok(format!("ferroflow-memory-{:032x}", u128::from_ne_bytes(bytes)))
}

/// Checks with the kernel that the peer is a process of this user.
fn check_user(stream: &UnixStream) -> io::Result<()> {
    let peer = socket_peercred(stream)?.uid;
    let own = rustix::process::geteuid();
    if peer == own {
        return Ok(());
    }
    let text = format!("the peer belongs to user {}, not {}", peer.as_raw(), own.as_raw());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn send(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    check_user(stream)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    rights.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(stream, &[IoSlice::new(&[1])], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(stream: &UnixStream) -> io::Result<OwnedFd> {
    if !is_readable(stream.as_fd(), Instant::now() + TAKING) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut into, &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    let files = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    // All are received, and all but the first are closed.
    let mut files: Vec<OwnedFd> = files.flatten().collect();
    match files.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "no descriptor came")),
        false => Ok(files.swap_remove(0)),
    }
}

/// Waits for something to read or accept. False if nothing came until `until`.
fn is_readable(fd: BorrowedFd<'_>, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    fn memory(len: u64, seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("test", flags).unwrap();
        ftruncate(&file, len).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn memory_is_handed_over_as_often_as_offered() {
        let name = offer(&memory(8192, SEALS), 2).unwrap();
        assert!(take(&name, 8192).is_ok());
        assert!(take(&name, 8192).is_ok());
        // The listener is gone, now or as soon as its thread has seen the second one leave.
        while take(&name, 8192).is_ok() {}
    }

    #[test]
    fn memory_that_can_shrink_or_has_another_size_is_refused() {
        for seals in [SealFlags::empty(), SealFlags::GROW, SealFlags::SHRINK | SealFlags::GROW] {
            let name = offer(&memory(8192, seals), 1).unwrap();
            let e = take(&name, 8192).unwrap_err();
            assert!(e.message().contains("can be resized"), "{e}");
        }
        let name = offer(&memory(4096, SEALS), 1).unwrap();
        assert!(take(&name, 8192).unwrap_err().message().contains("4096 bytes, expected 8192"));
    }

    #[test]
    fn a_file_on_a_disk_is_refused() {
        let path = std::env::temp_dir().join(format!("ferroflow-mem-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(8192).unwrap();
        let name = offer(&OwnedFd::from(file), 1).unwrap();
        assert!(take(&name, 8192).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_process_that_accepts_nothing_does_not_hold_up_another() {
        let name = random_name().unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let now = Instant::now();
        let waiting: Vec<UnixStream> = std::iter::from_fn(|| connect(&name, now).ok()).collect();
        assert!(!waiting.is_empty());
        assert!(take(&name, 8192).is_err());
        assert!(now.elapsed() < 4 * TAKING);
    }

    #[test]
    fn a_name_without_an_offer_is_an_error() {
        assert!(take("ferroflow-memory-none", 1).is_err());
        assert!(take(&"x".repeat(1000), 1).is_err());
    }
}
