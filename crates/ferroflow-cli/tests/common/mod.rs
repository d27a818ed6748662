//! The command as a process, and what tests of it share.
#![allow(dead_code)] // each test file uses some of it

pub mod netns;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far more than anything here takes: what is still not there after this never comes.
pub const FOREVER: Duration = Duration::from_secs(60);

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_ferroflow");

pub fn ferroflow(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env_remove("TF_CONFIG").env_remove("FERROFLOW_BIND");
    command
}

/// A new folder for a test.
pub fn folder(name: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("ferroflow-{name}-{}-{next}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A process that is killed when the test lets go of it.
pub struct Running(pub Child);

impl Running {
    pub fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap();
        assert!(sent.success(), "kill -{signal} {pid}");
    }

    /// Its end, waited for.
    pub fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + FOREVER;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the process has not ended after {FOREVER:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines as they come.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(from: impl Read + Send + 'static) -> Lines {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Lines(told)
    }

    /// The next line with this in it.
    pub fn wait_for(&self, text: &str) -> String {
        let until = Instant::now() + FOREVER;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.0.recv_timeout(left);
            let line = line.unwrap_or_else(|e| panic!("no line with {text:?}: {e}"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

/// Addresses of this host that nobody uses.
pub fn free_addresses(host: &str, count: usize) -> Vec<String> {
    let held: Vec<std::net::TcpListener> =
        (0..count).map(|_| std::net::TcpListener::bind((host, 0)).unwrap()).collect();
    held.iter().map(|l| l.local_addr().unwrap().to_string()).collect()
}
