//! Forwards the output of a job's processes line by line, each with the name of its process in
//! front.

use crate::dashboard::Board;
use ferroflow::{Code, Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of last lines of standard error that a report shows.
const LAST_LINES: usize = 5;

/// Longest line that is forwarded whole; longer ones are split.
const LONGEST_LINE: usize = 64 << 10;

/// Colours that read well on dark and on light terminals.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// Keeps the lines of a process under a name on a board, if there is one.
#[derive(Clone, Default)]
pub struct OutputLog(Option<(Arc<Board>, String)>);

impl OutputLog {
    pub fn on(board: &Arc<Board>, name: &str) -> OutputLog {
        OutputLog(Some((board.clone(), name.to_string())))
    }

    fn keep(&self, line: &[u8]) {
        if let Some((board, name)) = &self.0 {
            board.printed(name, &String::from_utf8_lossy(line));
        }
    }
}

impl fmt::Debug for OutputLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputLog({:?})", self.0.as_ref().map(|(_, name)| name))
    }
}

/// The state of a process's forwarded output.
pub struct Printed {
    /// The last lines on standard error.
    last: Mutex<VecDeque<String>>,
    /// Number of its streams that are still open.
    open: AtomicUsize,
    /// Number of streams with a write in progress.
    busy: AtomicUsize,
    bytes: AtomicUsize,
    log: OutputLog,
}

impl Printed {
    /// The state of a process with this many streams.
    pub fn new(outputs: usize, log: OutputLog) -> Printed {
        let (last, open) = (Mutex::default(), AtomicUsize::new(outputs));
        Printed { last, open, busy: AtomicUsize::new(0), bytes: AtomicUsize::new(0), log }
    }

    fn push(&self, line: &[u8]) {
        let mut lines = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(String::from_utf8_lossy(line).into_owned());
        if lines.len() > LAST_LINES {
            lines.pop_front();
        }
    }

    pub fn last_lines(&self) -> Vec<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Whether a write is in progress, which blocks on the reader of the launcher's output.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    /// Number of bytes forwarded.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Stream {
    Output,
    Errors,
}

impl Stream {
    /// Colours are used on terminals only, and never with NO_COLOR.
    fn is_coloured(self) -> bool {
        let is_terminal = match self {
            Stream::Output => std::io::stdout().is_terminal(),
            Stream::Errors => std::io::stderr().is_terminal(),
        };
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    fn write(self, line: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Output => {
                let mut out = std::io::stdout().lock();
                out.write_all(line).and_then(|()| out.flush())
            }
            Stream::Errors => std::io::stderr().write_all(line),
        }
    }
}

/// Prints a message of the launcher; ignores a closed standard error.
pub fn tell(text: impl std::fmt::Display) {
    let _ = Stream::Errors.write(format!("ferroflow run: {text}\n").as_bytes());
}

/// The prefix of the lines of process `index`; empty if its label is.
fn prefix(label: &str, index: usize, coloured: bool) -> String {
    match (label.is_empty(), coloured) {
        (true, _) => String::new(),
        (false, false) => format!("[{label}] "),
        (false, true) => format!("\x1b[{}m[{label}]\x1b[0m ", COLOURS[index % COLOURS.len()]),
    }
}

/// The secret lines, which a remote terminal echoes and the launcher must not show.
pub struct Echo(pub Vec<String>);

impl Echo {
    fn is(&self, line: &[u8]) -> bool {
        self.0.iter().any(|secret| secret.as_bytes() == line)
    }
}

/// Forwards lines from its own thread. Calls `passed_on` at the first write error and at the end.
pub fn forward(
    from: impl Read + Send + 'static,
    to: Stream,
    label: &str,
    index: usize,
    printed: Arc<Printed>,
    echo: Echo,
    passed_on: impl Fn(std::io::Result<()>) + Send + 'static,
) -> Result<()> {
    let prefix = prefix(label, index, to.is_coloured());
    let work = move || {
        let mut lost = false;
        each_line(BufReader::new(from), |line| {
            if echo.is(line) {
                return;
            }
            if to == Stream::Errors {
                printed.push(line);
            }
            printed.log.keep(line);
            // Reads on after a write error: a process that cannot print would fail for the wrong
            // reason.
            if !lost {
                printed.busy.fetch_add(1, Ordering::AcqRel);
                let written = to.write(&[prefix.as_bytes(), line, b"\n"].concat());
                printed.busy.fetch_sub(1, Ordering::AcqRel);
                printed.bytes.fetch_add(line.len(), Ordering::AcqRel);
                lost = written.is_err();
                written.unwrap_or_else(|e| passed_on(Err(e)));
            }
        });
        printed.open.fetch_sub(1, Ordering::AcqRel);
        passed_on(Ok(()));
    };
    let thread = std::thread::Builder::new().name("ff-output".into()).spawn(work);
    thread
        .map(|_| ())
        .map_err(|e| Error::new(Code::Internal, format!("cannot start a thread: {e}")))
}

/// Yields lines without their terminators. Splits long ones to bound memory.
fn each_line(mut from: impl BufRead, mut take: impl FnMut(&[u8])) {
    let mut line = Vec::new();
    loop {
        let room = (LONGEST_LINE - line.len()) as u64;
        let read = from.by_ref().take(room).read_until(b'\n', &mut line);
        if !matches!(read, Ok(n) if n > 0) {
            // The remaining bytes can only be an incomplete UTF-8 character.
            if !line.is_empty() {
                take(&line);
            }
            return;
        }
        let is_cut = line.len() == LONGEST_LINE && !line.ends_with(b"\n");
        let next = if is_cut { begun_character(&mut line) } else { Vec::new() };
        while !is_cut && line.last().is_some_and(|end| b"\n\r".contains(end)) {
            line.pop();
        }
        take(&line);
        line = next;
    }
}

/// Removes an incomplete UTF-8 character from the end.
fn begun_character(line: &mut Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(line) {
        Err(e) if e.error_len().is_none() => line.split_off(e.valid_up_to()),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_processes_have_labels_and_colours() {
        assert_eq!(prefix("ps 0", 0, false), "[ps 0] ");
        assert_eq!(prefix("ps 0", 0, true), "\x1b[36m[ps 0]\x1b[0m ");
        assert_ne!(prefix("a", 1, true), prefix("a", 2, true));
        assert_eq!(prefix("", 3, true), "");
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let printed = Printed::new(1, OutputLog::default());
        (0..20).for_each(|i| printed.push(i.to_string().as_bytes()));
        assert_eq!(printed.last_lines(), ["15", "16", "17", "18", "19"]);
    }

    #[test]
    fn long_lines_come_in_pieces_that_are_bounded_and_whole_characters() {
        let pieces = |text: &str| {
            let mut found = Vec::new();
            each_line(text.as_bytes(), |piece| {
                found.push(String::from_utf8(piece.into()).unwrap())
            });
            found
        };
        assert_eq!(pieces("a\n\nb\r\nc"), ["a", "", "b", "c"]);
        let long = "x".repeat(LONGEST_LINE - 1);
        assert_eq!(pieces(&format!("{long}\ny")), [long.as_str(), "y"]);
        assert_eq!(pieces(&format!("{long}é\ny")), [long.as_str(), "é", "y"]);
        let longer = "z".repeat(3 * LONGEST_LINE);
        let found = pieces(&longer);
        assert_eq!((found.len(), found.concat()), (3, longer));
    }
}
