//! What the processes of a job print: passed on line by line, each with its process in front.

use ferroflow::{Code, Error, Result};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of a process's errors that a report shows.
const LAST_LINES: usize = 5;

/// Colours that read well on dark and on light terminals.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// The last lines that a process printed on standard error.
#[derive(Clone, Default)]
pub struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line.to_string());
        if lines.len() > LAST_LINES {
            lines.pop_front();
        }
    }

    pub fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Stream {
    Output,
    Errors,
}

impl Stream {
    /// Colours are for people: not for files and pipes, nor for those who said so.
    fn is_coloured(self) -> bool {
        let is_terminal = match self {
            Stream::Output => std::io::stdout().is_terminal(),
            Stream::Errors => std::io::stderr().is_terminal(),
        };
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    fn write(self, line: &[u8]) {
        // A reader that is gone does not stop the job.
        let _ = match self {
            Stream::Output => {
                let mut out = std::io::stdout().lock();
                out.write_all(line).and_then(|()| out.flush())
            }
            Stream::Errors => std::io::stderr().write_all(line),
        };
    }
}

/// What precedes the lines of process `index` of a job; nothing does if its label is empty.
fn prefix(label: &str, index: usize, coloured: bool) -> String {
    match (label.is_empty(), coloured) {
        (true, _) => String::new(),
        (false, false) => format!("[{label}] "),
        (false, true) => format!("\x1b[{}m[{label}]\x1b[0m ", COLOURS[index % COLOURS.len()]),
    }
}

/// Passes lines on from a thread of its own; `closed` is called when there are no more.
pub fn forward(
    from: impl Read + Send + 'static,
    to: Stream,
    label: &str,
    index: usize,
    last: LastLines,
    closed: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let prefix = prefix(label, index, to.is_coloured());
    let work = move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(lines.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            to.write(format!("{prefix}{text}\n").as_bytes());
            if to == Stream::Errors {
                last.push(text);
            }
            line.clear();
        }
        closed();
    };
    let thread = std::thread::Builder::new().name("ff-output".into()).spawn(work);
    thread
        .map(|_| ())
        .map_err(|e| Error::new(Code::Internal, format!("cannot start a thread: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_told_apart_in_colour_or_without() {
        assert_eq!(prefix("ps 0", 0, false), "[ps 0] ");
        assert_eq!(prefix("ps 0", 0, true), "\x1b[36m[ps 0]\x1b[0m ");
        assert_ne!(prefix("a", 1, true), prefix("a", 2, true));
        assert_eq!(prefix("", 3, true), "");
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let last = LastLines::default();
        (0..20).for_each(|i| last.push(&i.to_string()));
        assert_eq!(last.get(), ["15", "16", "17", "18", "19"]);
    }
}
