//! What a command tells on its standard output.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// Prints a line. A reader that has gone away, as `| head` does, ends the command without a word; an output that takes
/// nothing, as a full disk, ends it with an error.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;

pub fn line(text: Arguments<'_>) {
    let mut out = stdout().lock();
    let Err(e) = writeln!(out, "{text}").and_then(|()| out.flush()) else { return };
    if e.kind() == ErrorKind::BrokenPipe {
        // What shells show for programs that ended so.
        std::process::exit(128 + 13);
    }
    eprintln!("ferroflow: cannot write to the standard output: {e}");
    std::process::exit(1);
}
