//! The command as a process, and helpers for its tests.
#![allow(dead_code)] // each test program uses some of it

pub mod discovery;
pub mod faults;
pub mod netns;
pub mod task;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A time limit far above the time of any step here.
pub const FOREVER: Duration = Duration::from_secs(60);

/// The command under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_ferroflow");

pub fn ferroflow(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env_remove("TF_CONFIG").env_remove("FERROFLOW_BIND");
    command.env_remove("FERROFLOW_HTTP").env_remove("FERROFLOW_HTTP_DIR");
    command.env_remove("FERROFLOW_CREDENTIALS").env_remove("FERROFLOW_INSECURE");
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

/// A process that is killed when this is dropped.
pub struct Running(pub Child);

impl Running {
    pub fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap();
        assert!(sent.success(), "kill -{signal} {pid}");
    }

    /// Stops it, and waits until the signal has reached all threads.
    pub fn stop(&self) {
        self.signal("STOP");
        let pid = self.0.id();
        let state = |thread: PathBuf| {
            let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
            stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next()
        };
        let until = Instant::now() + FOREVER;
        let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        while !threads().all(|thread| state(thread.unwrap().path()) == Some('T')) {
            assert!(Instant::now() < until, "process {pid} does not stop");
        }
    }

    /// Waits for its end.
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

/// Lines of output, as they arrive.
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

    /// The next line that contains `text`.
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

/// A loopback address that no other test listens on, so that ports do not clash.
pub fn own_loopback() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let number = std::process::id().wrapping_mul(251).wrapping_add(next) % (250 * 250 * 250);
    format!("127.{}.{}.{}", 1 + number / 62_500, 1 + number / 250 % 250, 1 + number % 250)
}

/// Free addresses of this host.
pub fn free_addresses(host: &str, count: usize) -> Vec<String> {
    let held: Vec<std::net::TcpListener> =
        (0..count).map(|_| std::net::TcpListener::bind((host, 0)).unwrap()).collect();
    held.iter().map(|l| l.local_addr().unwrap().to_string()).collect()
}
