//! Ends a process after a signal, even if its threads are stuck.

use ferroflow_core::{Result, err};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The exit code of a process that did not end in time by itself.
const EXIT_CODE: i32 = 1;

/// Signals within this time are one: `timeout` and others send one to the process and one to its
/// process group.
const SAME_SIGNAL: Duration = Duration::from_millis(300);

/// The first SIGTERM or SIGINT, also if it comes before a task waits for it.
#[derive(Debug)]
pub struct FirstSignal(oneshot::Receiver<()>);

impl FirstSignal {
    /// Completes once the signal has come.
    pub async fn received(self) {
        if self.0.await.is_err() {
            // The listening thread is gone, so no signal will arrive.
            std::future::pending().await
        }
    }
}

/// Ends this process `limit` after the first SIGTERM or SIGINT at the latest, or at the second one.
/// It needs no network thread: those may be stuck. Returns the first signal, for the server to end
/// by itself.
pub fn exit_within(limit: Duration) -> Result<FirstSignal> {
    let failed = |e| err!(ResourceExhausted, "cannot wait for signals: {e}");
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (tell, told) = mpsc::channel();
    let (first, received) = oneshot::channel();
    let listen = move || {
        let mut first = Some(first);
        for _ in signals.forever() {
            // Ignore the errors: the process has already begun to exit.
            first.take().map(|first| first.send(()));
            let _ = tell.send(());
        }
    };
    let wait = move || {
        // An error means that the listening thread is gone; then there is nothing to wait for.
        if told.recv().is_err() {
            return;
        }
        let first = Instant::now();
        let why = loop {
            match told.recv_timeout(limit.saturating_sub(first.elapsed())) {
                Ok(()) if first.elapsed() < SAME_SIGNAL => {}
                Ok(()) => break "a second signal came".to_string(),
                Err(_) => {
                    break format!("it has not stopped within {} s", limit.as_secs_f32());
                }
            }
        };
        say(format!("{why}: exiting; steps that still ran are lost"));
        low_level::exit(EXIT_CODE);
    };
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    thread("ff-signals").spawn(listen).map_err(failed)?;
    thread("ff-exit").spawn(wait).map_err(failed)?;
    Ok(FirstSignal(received))
}

/// Writes the message to standard error, unless no process reads there any more: a full pipe must
/// not keep this process.
fn say(text: String) {
    let (done, is_written) = mpsc::channel();
    let write = move || {
        eprintln!("{text}");
        // An error means that the process no longer waits.
        let _ = done.send(());
    };
    if std::thread::Builder::new().name("ff-say".into()).spawn(write).is_ok() {
        // After a while, exit without the message.
        let _ = is_written.recv_timeout(Duration::from_millis(500));
    }
}
