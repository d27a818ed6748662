//! `ferroflow top`: a running job in the terminal.

use crate::credentials::TrustArgs;
use crate::dashboard::{Board, Sources, clock, parse_address};
use crate::say::say;
use ferroflow::cluster::stop_signal;
use ferroflow::{Code, Error, Result};
use serde_json::Value;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

/// Show a running job in the terminal
///
/// Reads the HTTP ports of the tasks (see --http of `ferroflow server` and `ferroflow run`) every
/// second and shows step rates, the share of each phase, traffic, memory and stragglers. Ctrl-C
/// ends it. On an output that is not a terminal it prints a table for each reading.
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
    #[command(flatten)]
    trust: TrustArgs,
}

/// The time until the first table: a rate needs two readings.
const FIRST: Duration = Duration::from_millis(2_200);
const INTERVAL: Duration = Duration::from_secs(1);

pub fn run(args: Args) -> Result<()> {
    let is_screen = std::io::stdout().is_terminal() && !args.json;
    let count = args.count.unwrap_or(if is_screen { u64::MAX } else { 1 });
    let trust = args.trust.trust()?;
    let sources = Sources { addresses: args.tasks, trust, ..Sources::default() };
    let board = Board::new(sources);
    let failed = |e| Error::new(Code::ResourceExhausted, format!("cannot start: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let showing = async {
            tokio::time::sleep(FIRST).await;
            for shown in 0..count {
                if shown > 0 {
                    tokio::time::sleep(INTERVAL).await;
                }
                let state = board.to_json();
                match (args.json, is_screen) {
                    (true, _) => say!("{state}"),
                    // Moves to the first line, and clears the rest of the screen.
                    (false, true) => {
                        say!("\x1b[H{}\x1b[J", table(&state).replace('\n', "\x1b[K\n"))
                    }
                    (false, false) => say!("{}", table(&state)),
                }
            }
        };
        if is_screen {
            // Uses the alternate screen, so that the shell's screen returns at the end.
            say!("\x1b[?1049h\x1b[?25l");
        }
        tokio::select! {
            () = showing => {}
            () = board.clone().watch() => {}
            () = stop_signal() => {}
        }
        if is_screen {
            say!("\x1b[?25h\x1b[?1049l");
        }
        match board.to_json() {
            state if is_without_answer(&state) => {
                let text = "no task has answered; give the --http addresses of running tasks";
                Err(Error::new(Code::Unavailable, text))
            }
            _ => Ok(()),
        }
    })
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

/// The state as text.
fn table(state: &Value) -> String {
    let mut out = String::new();
    let tasks = state["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lost = tasks.iter().filter(|t| !t["lost"].is_null()).count();
    // The sum of nothing is -0.0.
    let rates = tasks.iter().filter_map(|t| t["rates"]["steps"].as_f64());
    let rate = rates.fold(0.0, |sum, rate| sum + rate);
    let _ = writeln!(out, "{} tasks, {lost} lost, {rate:.1} steps/s", tasks.len());
    for (address, why) in state["silent"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "{}: {}", plain(address), plain(why.as_str().unwrap_or("?")));
    }
    let _ = writeln!(
        out,
        "{:<16} {:>9} {:>9}  {:>5} {:>7} {:>5} {:>5} {:>10} {:>9} {:>6}",
        "task", "steps", "steps/s", "input", "compute", "send", "wait", "sent/s", "memory", "cpu"
    );
    for task in tasks {
        let name = plain(task["name"].as_str().unwrap_or("?"));
        if let Some(why) = task["lost"].as_str() {
            let _ = writeln!(out, "{name:<16} lost: {}", plain(why));
            continue;
        }
        let number = |key: &str| task["rates"][key].as_f64().unwrap_or(0.0);
        let (steps, parts) = (task["steps"].as_u64(), task["parts"].as_u64());
        let is_ps = steps.unwrap_or(0) == 0;
        let total = if is_ps { parts } else { steps }.unwrap_or(0);
        let rate = number(if is_ps { "parts" } else { "steps" });
        let phases: Vec<f64> =
            (0..4).map(|i| task["rates"]["phases"][i].as_f64().unwrap_or(0.0)).collect();
        let sum = phases.iter().sum::<f64>().max(1e-9);
        let share = |i: usize| format!("{:.0}%", 100.0 * phases[i] / sum);
        let _ = writeln!(
            out,
            "{name:<16} {total:>9} {rate:>9.1}  {:>5} {:>7} {:>5} {:>5} {:>10} {:>9} {:>5.0}%",
            share(0),
            share(1),
            share(2),
            share(3),
            bytes(number("sent")),
            bytes(task["resident"].as_f64().unwrap_or(0.0)),
            100.0 * number("cpu"),
        );
    }
    for straggler in state["stragglers"].as_array().into_iter().flatten() {
        let ms = |key: &str| straggler[key].as_f64().unwrap_or(0.0) * 1e3;
        let peer = straggler["waits_for"].as_str();
        let cause = peer.map_or_else(String::new, |peer| format!(" for {}", plain(peer)));
        let _ = writeln!(
            out,
            "straggler: {} in {}{} since {}: {:.2} ms of a step, the others {:.2} ms",
            plain(straggler["task"].as_str().unwrap_or("?")),
            plain(straggler["phase"].as_str().unwrap_or("?")),
            cause,
            clock(straggler["since"].as_f64().unwrap_or(0.0)),
            ms("seconds"),
            ms("others"),
        );
    }
    out.trim_end().to_string()
}

/// A task's text without control characters, which a terminal would interpret.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(120).collect()
}

fn bytes(count: f64) -> String {
    match count {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_has_a_line_for_each_task_and_straggler() {
        let state = json!({
            "tasks": [
                {"name": "ps 0", "steps": 0, "parts": 50, "resident": 2e6, "lost": null,
                 "rates": {"steps": 0.0, "parts": 25.0, "phases": [0.0, 0.1, 0.0, 0.3],
                           "sent": 1500.0, "cpu": 0.5}},
                {"name": "\u{1b}[2Jworker 1", "lost": "no answer"},
            ],
            "stragglers": [{"task": "worker 1", "phase": "input", "seconds": 0.01, "others": 0.002,
                            "since": 3661.0},
                           {"task": "worker 0", "phase": "wait", "waits_for": "ps 0",
                            "seconds": 0.01, "others": 0.002, "since": 1.0}],
        });
        let text = table(&state);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2 tasks, 1 lost, 0.0 steps/s");
        let ps = "ps 0                    50      25.0     0%     25%    0%   75%     1.5 kB    2.0 MB    50%";
        assert_eq!(lines[2], ps);
        assert_eq!(lines[3], "?[2Jworker 1     lost: no answer");
        let want = "straggler: worker 1 in input since 01:01:01 UTC: 10.00 ms of a step, the others 2.00 ms";
        assert_eq!(lines[4], want);
        assert!(lines[5].starts_with("straggler: worker 0 in wait for ps 0 since"), "{text}");
        assert!(!is_without_answer(&state));
    }

    #[test]
    fn addresses_without_an_answer_are_named() {
        let state = json!({"tasks": [], "silent": {"127.0.0.1:1": "connection refused"}});
        let text = table(&state);
        assert!(text.starts_with("0 tasks, 0 lost, 0.0 steps/s\n"), "{text}");
        assert!(text.contains("127.0.0.1:1: connection refused"), "{text}");
        assert!(is_without_answer(&state));
    }
}
