//! `ferroflow top`: a running job in the terminal.

mod screen;

use crate::credentials::TrustArgs;
use crate::dashboard::{Board, Sources, parse_address};
use crate::say::say;
use ferroflow::cluster::stop_signal;
use ferroflow::{Code, Error, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use screen::{ScreenSize, screen, table};
use serde_json::Value;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// Show a running job in the terminal
///
/// Reads the HTTP ports of the tasks (see --http of `ferroflow server` and `ferroflow run`) every
/// second. Shows the step rate and the loss with their curves, step rates, phases, traffic and
/// memory of each task, stragglers, what tasks wait for, events and checkpoints. The arrow keys
/// scroll a list of tasks that is longer than the terminal, and q or Ctrl-C ends it. On an output
/// that is not a terminal it prints a table for each reading.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ferroflow top 127.0.0.1:9100 127.0.0.1:9101")]
pub struct Args {
    /// HTTP addresses of the tasks; a PORT alone is one of this host
    #[arg(value_name = "HOST:PORT", required = true, value_parser = parse_address)]
    tasks: Vec<String>,
    /// Tables to show before it ends [default: until Ctrl-C; 1 if the output is no terminal]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print the state as JSON, one object per reading
    #[arg(long)]
    json: bool,
    /// Folder with checkpoints to list
    #[arg(long, value_name = "DIR")]
    checkpoints: Option<PathBuf>,
    #[command(flatten)]
    trust: TrustArgs,
}

/// The time until the first table: a rate needs two readings.
const FIRST: Duration = Duration::from_millis(2_200);
const INTERVAL: Duration = Duration::from_secs(1);

/// What a user types.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Up,
    Down,
    Quit,
}

pub fn run(args: Args) -> Result<()> {
    let is_screen = std::io::stdout().is_terminal() && !args.json;
    let count = args.count.unwrap_or(if is_screen { u64::MAX } else { 1 });
    let trust = args.trust.trust()?;
    let sources = Sources {
        addresses: args.tasks,
        checkpoints: args.checkpoints,
        trust,
        ..Sources::default()
    };
    let board = Board::new(sources);
    let failed = |e| Error::new(Code::ResourceExhausted, format!("cannot start: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let keyboard = is_screen.then(Keyboard::start).flatten();
    let (typed, mut keys) = mpsc::channel(16);
    if keyboard.is_some() {
        std::thread::spawn(move || read_keys(std::io::stdin().lock(), &typed));
    }
    runtime.map_err(failed)?.block_on(async {
        let showing = async {
            tokio::time::sleep(FIRST).await;
            let mut above = 0;
            for shown in 0..count {
                if shown > 0 && wait_for_keys(&mut keys, &mut above).await {
                    return;
                }
                let state = board.to_json();
                match (args.json, is_screen) {
                    (true, _) => say!("{state}"),
                    (false, true) => {
                        let lines = screen(&state, &board.history(), size(), &mut above);
                        // Moves to the first line, and clears the rest of each line and of the
                        // screen. The last line does not end, so that the screen does not scroll.
                        show(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")));
                    }
                    (false, false) => say!("{}", table(&state)),
                }
            }
        };
        if is_screen {
            // Uses the alternate screen, so that the shell's screen returns at the end.
            show("\x1b[?1049h\x1b[?25l\x1b[H\x1b[J");
        }
        tokio::select! {
            () = showing => {}
            () = board.clone().watch() => {}
            () = stop_signal() => {}
        }
        if is_screen {
            show("\x1b[?25h\x1b[?1049l");
        }
        drop(keyboard);
        match board.to_json() {
            state if is_without_answer(&state) => {
                let text = "no task has answered; give the --http addresses of running tasks";
                Err(Error::new(Code::Unavailable, text))
            }
            _ => Ok(()),
        }
    })
}

/// Writes to the terminal. Ignores a terminal that has gone away.
fn show(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Waits for the time of the next reading, or for a key that changes the view at once. Returns true
/// if the user wants to quit.
async fn wait_for_keys(keys: &mut mpsc::Receiver<Key>, above: &mut usize) -> bool {
    tokio::select! {
        () = tokio::time::sleep(INTERVAL) => false,
        Some(key) = keys.recv() => {
            match key {
                Key::Up => *above = above.saturating_sub(1),
                Key::Down => *above += 1,
                Key::Quit => return true,
            }
            false
        }
    }
}

fn size() -> ScreenSize {
    match tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            ScreenSize { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        _ => ScreenSize { columns: 80, rows: 24 },
    }
}

/// A terminal that passes keys on at once and does not show them, until it is dropped.
struct Keyboard(Termios);

impl Keyboard {
    fn start() -> Option<Keyboard> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Keyboard(before))
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

fn read_keys(mut input: impl Read, keys: &mpsc::Sender<Key>) {
    let mut bytes = [0; 16];
    while let Ok(len @ 1..) = input.read(&mut bytes) {
        let key = match &bytes[..len] {
            b"q" | b"Q" => Key::Quit,
            b"k" | b"\x1b[A" | b"\x1bOA" => Key::Up,
            b"j" | b"\x1b[B" | b"\x1bOB" => Key::Down,
            _ => continue,
        };
        if keys.blocking_send(key).is_err() {
            return;
        }
    }
}

/// Whether tasks were asked and none has ever answered.
fn is_without_answer(state: &Value) -> bool {
    let is_empty = |key: &str| match &state[key] {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    };
    is_empty("tasks") && !is_empty("silent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_without_an_answer_are_named() {
        let state = json!({"tasks": [], "silent": {"127.0.0.1:1": "connection refused"}});
        let text = table(&state);
        assert!(text.starts_with("0 tasks, 0 lost, 0.0 steps/s\n"), "{text}");
        assert!(text.contains("127.0.0.1:1: connection refused"), "{text}");
        assert!(is_without_answer(&state));
        assert!(!is_without_answer(&json!({"tasks": [{"name": "ps 0"}]})));
    }

    #[test]
    fn keys_scroll_and_quit() {
        let (typed, mut keys) = mpsc::channel(16);
        for bytes in [&b"j"[..], b"\x1b[A", b"x", b"q"] {
            read_keys(bytes, &typed);
        }
        let found: Vec<Key> = std::iter::from_fn(|| keys.try_recv().ok()).collect();
        assert_eq!(found, [Key::Down, Key::Up, Key::Quit]);
    }
}
