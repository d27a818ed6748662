//! Finds bytes that have arrived at a process and are unread.

use std::time::{Duration, Instant};

/// Waits until there are unread bytes at `port` in the network namespace of the process `pid`: a
/// call has arrived at a task that does not read it.
pub fn wait_for_unread(pid: u32, port: u16, limit: Duration) -> Result<(), String> {
    let until = Instant::now() + limit;
    while !has_unread(pid, port) {
        if Instant::now() > until {
            return Err(format!("no call has arrived at port {port} within {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn has_unread(pid: u32, port: u16) -> bool {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    table.lines().skip(1).any(|line| unread_of(line, port).is_some_and(|n| n > 0))
}

/// The number of unread bytes of an established connection at `port`, from a line of
/// `/proc/net/tcp`.
fn unread_of(line: &str, port: u16) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    let (local, _remote, state) = (words.next()?, words.next()?, words.next()?);
    let queues = words.next()?;
    let is_it = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()? == port && state == "01";
    is_it.then(|| u64::from_str_radix(queues.rsplit(':').next()?, 16).ok())?
}
