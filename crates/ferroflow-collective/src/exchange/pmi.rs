//! PMI-1: lines of `name=value` over a connection to the launcher. MPICH, Intel MPI and
//! `srun --mpi=pmi2` speak it.

use super::store_error;
use crate::rendezvous::Deadline;
use ferroflow_core::{Result, bail, ensure, err};
use rustix::event::{PollFd, PollFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Longest line. Launchers use at most 1 KiB and some names.
const LONGEST: usize = 64 << 10;

/// Publishes the text of rank 0 and returns it on all ranks.
pub(super) fn exchange(published: Option<&str>, until: &Deadline) -> Result<String> {
    share(&mut Store::new(connection()?, until), published)
}

/// The connection that the launcher has opened for this process.
fn connection() -> Result<OwnedFd> {
    let number = std::env::var("PMI_FD").unwrap_or_default();
    let wrong = |why: &dyn std::fmt::Display| {
        err!(FailedPrecondition, "PMI_FD={number} is not a connection to the launcher: {why}")
    };
    let descriptor: i32 = number.parse().map_err(|e| wrong(&e))?;
    ensure!(descriptor >= 0, FailedPrecondition, "PMI_FD={number} is not a descriptor");
    // SAFETY: the launcher has opened this descriptor for the whole life of this process. If it did
    // not, copying it fails.
    let inherited = unsafe { BorrowedFd::borrow_raw(descriptor) };
    // A copy, so that other libraries of this process can use the connection too.
    inherited.try_clone_to_owned().map_err(|e| wrong(&e))
}

fn share(store: &mut Store<'_>, published: Option<&str>) -> Result<String> {
    store.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
    let maxes = store.ask("cmd=get_maxes", "maxes")?;
    // Slurm limits whole commands to the length that it gives for values.
    let longest = maxes.number("vallen_max").unwrap_or(256).clamp(32, 1024) / 2;
    let name = store.ask("cmd=get_my_kvsname", "my_kvsname")?.text("kvsname")?;
    // The first piece begins with the number of pieces.
    if let Some(text) = published {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(longest).collect();
        for (i, piece) in pieces.iter().enumerate() {
            let count = if i == 0 { format!("{}.", pieces.len()) } else { String::new() };
            let piece = String::from_utf8_lossy(piece);
            let put = format!("cmd=put kvsname={name} key=ferroflow-{i} value={count}{piece}");
            store.ask(&put, "put_result")?;
        }
    }
    store.ask("cmd=barrier_in", "barrier_out")?;
    let mut get = |i: usize| {
        let got = store.ask(&format!("cmd=get kvsname={name} key=ferroflow-{i}"), "get_result")?;
        got.text("value")
    };
    let first = get(0)?;
    let parsed = first.split_once('.').and_then(|(n, rest)| Some((n.parse::<usize>().ok()?, rest)));
    let Some((count, rest)) = parsed.filter(|(count, _)| *count < 1024) else {
        bail!(DataLoss, "the launcher's store has {first:?} instead of the address of rank 0");
    };
    let mut text = rest.to_string();
    for i in 1..count {
        text.push_str(&get(i)?);
    }
    // Launchers take the end of a process without this for a failure.
    store.ask("cmd=finalize", "finalize_ack")?;
    Ok(text)
}

/// The connection to the launcher.
struct Store<'a> {
    stream: File,
    until: &'a Deadline,
    /// Bytes after the last line.
    rest: Vec<u8>,
}

impl Store<'_> {
    fn new(connection: OwnedFd, until: &Deadline) -> Store<'_> {
        Store { stream: connection.into(), until, rest: Vec::new() }
    }

    /// Sends a command and reads its answer.
    fn ask(&mut self, command: &str, answer: &str) -> Result<Answer> {
        let sent = self.stream.write_all(format!("{command}\n").as_bytes());
        sent.map_err(|e| store_error("cannot write to the launcher", e))?;
        let line = Answer(self.line()?);
        ensure!(
            line.text("cmd").is_ok_and(|cmd| cmd == answer),
            DataLoss,
            "the launcher answered {:?} instead of {answer}",
            line.0
        );
        match line.text("rc") {
            Ok(rc) if rc != "0" => bail!(Unavailable, "the launcher refused: {:?}", line.0),
            _ => Ok(line),
        }
    }

    fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_string());
            }
            ensure!(self.rest.len() < LONGEST, DataLoss, "the launcher sent an endless line");
            let readable = PollFd::new(&self.stream, PollFlags::IN);
            ensure!(
                self.until.poll(&mut [readable])?,
                DeadlineExceeded,
                "the launcher did not answer: perhaps not all processes of the job take part"
            );
            let mut piece = [0; 4096];
            let read = self.stream.read(&mut piece);
            let read = read.map_err(|e| store_error("cannot read from the launcher", e))?;
            ensure!(read > 0, Unavailable, "the launcher closed the connection");
            self.rest.extend_from_slice(&piece[..read]);
        }
    }
}

/// Answers of a launcher, for the fuzz target.
pub(super) fn fuzz(data: &[u8]) {
    let Ok((near, mut far)) = std::os::unix::net::UnixStream::pair() else { return };
    // Longer inputs would block.
    let data = &data[..data.len().min(LONGEST)];
    if far.write_all(data).is_ok() && far.shutdown(std::net::Shutdown::Write).is_ok() {
        let until = Deadline::after(std::time::Duration::from_secs(10));
        let _ = share(&mut Store::new(near.into(), &until), Some("10.0.0.1:1,10.0.0.2:2"));
    }
}

/// A line of the launcher.
struct Answer(String);

impl Answer {
    fn text(&self, name: &str) -> Result<String> {
        let words = self.0.split_whitespace();
        let mut pairs = words.filter_map(|word| word.split_once('='));
        let found = pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
        found.ok_or_else(|| err!(DataLoss, "no {name} in the launcher's answer {:?}", self.0))
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.text(name).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Barrier, Mutex};
    use std::time::Duration;

    /// A launcher with values of at most 40 bytes.
    fn launcher(
        stream: TcpStream,
        values: Arc<Mutex<BTreeMap<String, String>>>,
        met: Arc<Barrier>,
    ) {
        let mut writer = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines().map_while(std::io::Result::ok) {
            let line = Answer(line);
            let answer = match line.text("cmd").unwrap().as_str() {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_string(),
                "get_maxes" => "cmd=maxes kvsname_max=64 keylen_max=64 vallen_max=40".into(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7".into(),
                "put" => {
                    let value = line.text("value").unwrap();
                    assert!(value.len() <= 40, "{value}");
                    values.lock().unwrap().insert(line.text("key").unwrap(), value);
                    "cmd=put_result rc=0 msg=success".into()
                }
                "barrier_in" => {
                    met.wait();
                    "cmd=barrier_out".into()
                }
                "get" => match values.lock().unwrap().get(&line.text("key").unwrap()) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found".into(),
                },
                "finalize" => "cmd=finalize_ack".into(),
                other => panic!("{other}"),
            };
            writer.write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }

    fn exchanged(published: [Option<&str>; 2]) -> [Result<String>; 2] {
        let (values, met) = (Arc::default(), Arc::new(Barrier::new(2)));
        let work = published.map(|text| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (values, met) = (Arc::clone(&values), Arc::clone(&met));
            std::thread::spawn(move || launcher(listener.accept().unwrap().0, values, met));
            let text = text.map(String::from);
            std::thread::spawn(move || {
                let until = Deadline::after(Duration::from_secs(30));
                share(&mut Store::new(client.into(), &until), text.as_deref())
            })
        });
        work.map(|thread| thread.join().unwrap())
    }

    #[test]
    fn every_rank_reads_what_rank_0_publishes_in_pieces() {
        let long = "0123456789abcdef".repeat(40);
        for text in exchanged([Some(&long), None]) {
            assert_eq!(text.unwrap(), long);
        }
    }

    #[test]
    fn a_store_without_the_address_is_an_error_that_says_so() {
        for text in exchanged([None, None]) {
            let e = text.unwrap_err();
            assert!(e.message().contains("key_not_found"), "{e}");
        }
    }
}
