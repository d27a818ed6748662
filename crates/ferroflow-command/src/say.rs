//! Writes lines to standard output.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// Prints a line. A closed pipe (`| head`) ends the command silently. Any other write error, such
/// as a full disk, ends it with a message.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;

pub fn line(text: Arguments<'_>) {
    let mut out = stdout().lock();
    let Err(e) = writeln!(out, "{text}").and_then(|()| out.flush()) else { return };
    if e.kind() == ErrorKind::BrokenPipe {
        // The exit code that shells report for a process killed by SIGPIPE.
        std::process::exit(128 + 13);
    }
    eprintln!("ferroflow: cannot write to the standard output: {e}");
    std::process::exit(1);
}

/// Prints a line where that is possible. A closed output must not end a server or a training.
macro_rules! show {
    ($($text:tt)*) => { $crate::say::try_line(format_args!($($text)*)) };
}
pub(crate) use show;

pub fn try_line(text: Arguments<'_>) {
    let mut out = stdout().lock();
    // Ignore the error, as said above.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
