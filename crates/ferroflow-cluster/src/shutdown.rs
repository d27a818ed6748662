//! The end of a server's process after a signal, whatever its threads do.

use ferroflow_core::{Result, err};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::mpsc;
use std::time::Duration;

/// The exit code of a process that did not end in time by itself.
const EXIT_CODE: i32 = 1;

/// Ends this process `limit` after the first SIGTERM or SIGINT at the latest, or at the second one.
/// It needs no network thread: those may be stuck.
pub fn exit_within(limit: Duration) -> Result<()> {
    let failed = |e| err!(ResourceExhausted, "cannot wait for signals: {e}");
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (tell, told) = mpsc::channel();
    let listen = move || {
        for _ in signals.forever() {
            let _ = tell.send(());
        }
    };
    let wait = move || {
        // An error means that the listening thread is gone; then there is nothing to wait for.
        if told.recv().is_err() {
            return;
        }
        let why = match told.recv_timeout(limit) {
            Ok(()) => "a second signal came".to_string(),
            Err(_) => format!("the server has not stopped within {} s", limit.as_secs_f32()),
        };
        eprintln!("{why}: exiting; steps that still ran are lost");
        low_level::exit(EXIT_CODE);
    };
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    thread("ff-signals").spawn(listen).map_err(failed)?;
    thread("ff-exit").spawn(wait).map_err(failed)?;
    Ok(())
}
