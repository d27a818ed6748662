//! The state of a job as lines of text, for a terminal of any size.

use crate::dashboard::clock;
use crate::units::show_bytes;
use serde_json::Value;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug)]
pub struct ScreenSize {
    pub columns: usize,
    pub rows: usize,
}

/// The most lines of a list below the tasks: waits, events.
const MOST_WAITS: usize = 4;
const MOST_EVENTS: usize = 4;
/// The tasks that a small terminal still shows.
const LEAST_TASKS: usize = 3;

/// The state as text of any length.
pub fn table(state: &Value) -> String {
    let mut lines = vec![headline(state)];
    lines.extend(silent(state));
    lines.push(heads());
    lines.extend(tasks(state).iter().map(row));
    lines.extend(stragglers(state));
    lines.extend(waits(state));
    lines.join("\n").trim_end().to_string()
}

/// The state as at most as many lines as the terminal has, with the tasks after the first `above`.
pub fn screen(state: &Value, history: &Value, size: ScreenSize, above: &mut usize) -> Vec<String> {
    let mut top = vec![headline(state)];
    top.extend(curves(history, size.columns));
    top.extend(silent(state));
    let rows: Vec<String> = tasks(state).iter().map(row).collect();
    let mut below = stragglers(state);
    below.extend(waits(state));
    below.extend(events(state));
    below.extend(checkpoint(state));
    // The tasks come first: lists below them, and then the curves, give way.
    let room =
        |top: &[String], below: &[String]| size.rows.saturating_sub(top.len() + 1 + below.len());
    while room(&top, &below) < rows.len().min(LEAST_TASKS) && !below.is_empty() {
        below.pop();
    }
    while room(&top, &below) < rows.len().min(LEAST_TASKS) && top.len() > 1 {
        top.pop();
    }
    let mut room = room(&top, &below);
    let is_cut = rows.len() > room;
    if is_cut {
        // A line says that there are more.
        room = room.saturating_sub(1).max(1);
    }
    *above = (*above).min(rows.len().saturating_sub(room));
    let mut lines = top;
    lines.push(heads());
    lines.extend(rows.iter().skip(*above).take(room).cloned());
    if is_cut {
        let (first, last) = (*above + 1, (*above + room).min(rows.len()));
        lines.push(format!("tasks {first} to {last} of {}: the arrow keys scroll", rows.len()));
    }
    lines.extend(below);
    lines.truncate(size.rows);
    lines.iter().map(|line| line.chars().take(size.columns).collect()).collect()
}

fn tasks(state: &Value) -> &[Value] {
    state["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn headline(state: &Value) -> String {
    let tasks = tasks(state);
    let lost = tasks.iter().filter(|t| !t["lost"].is_null()).count();
    let number = |key: &str| state["steps"][key].as_f64().unwrap_or(0.0);
    let plural = if tasks.len() == 1 { "" } else { "s" };
    let mut text =
        format!("{} task{plural}, {lost} lost, {:.1} steps/s", tasks.len(), number("rate"));
    if number("count") > 0.0 {
        let what = if state["steps"]["kind"] == "global" { "global step" } else { "steps" };
        text += &format!(", {what} {:.0}", number("count"));
    }
    if let Some(epoch) = state["epoch"].as_i64().filter(|epoch| *epoch > 0) {
        text += &format!(", epoch {epoch}");
    }
    text
}

fn silent(state: &Value) -> Vec<String> {
    let all = state["silent"].as_object().into_iter().flatten();
    all.map(|(at, why)| format!("{}: {}", plain(at), plain(why.as_str().unwrap_or("?")))).collect()
}

/// The step rate over time, and the loss of the first task that reports one.
fn curves(history: &Value, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |name: &str, points: &Value| {
        let points = points.as_array().into_iter().flatten();
        let values: Vec<f64> = points.filter_map(|point| point[1].as_f64()).collect();
        if let (true, Some(last)) = (values.len() > 1, values.last()) {
            let width = columns.saturating_sub(32).clamp(8, 60);
            lines.push(format!("{name:<16} {} {last:.4}", sparkline(&values, width)));
        }
    };
    add("steps/s", &history["rate"]);
    let all = history["curves"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(curve) = all.iter().find(|c| c["name"] == "loss").or(all.first()) {
        let text = |key: &str| plain(curve[key].as_str().unwrap_or("?"));
        let name: String = format!("{} {}", text("name"), text("task")).chars().take(16).collect();
        add(&name, &curve["points"]);
    }
    lines
}

/// Values as a line of bars from 0, or from the least one below 0.
fn sparkline(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (least, most) =
        values.iter().fold((0.0f64, f64::MIN_POSITIVE), |(l, m), v| (l.min(*v), m.max(*v)));
    let width = width.min(values.len());
    let bar = |i: usize| {
        // The mean of the values of this column.
        let from = i * values.len() / width;
        let to = ((i + 1) * values.len() / width).max(from + 1);
        let mean = values[from..to].iter().sum::<f64>() / (to - from) as f64;
        BARS[((mean - least) / (most - least) * 7.0).round().clamp(0.0, 7.0) as usize]
    };
    (0..width).map(bar).collect()
}

fn heads() -> String {
    format!(
        "{:<12} {:>8} {:>8}  {:>5} {:>7} {:>4} {:>4} {:>8} {:>8} {:>5}",
        "task", "steps", "steps/s", "input", "compute", "send", "wait", "sent/s", "memory", "cpu"
    )
}

fn row(task: &Value) -> String {
    let name = plain(task["name"].as_str().unwrap_or("?"));
    if let Some(why) = task["lost"].as_str() {
        return format!("{name:<12} lost: {}", plain(why));
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
    format!(
        "{name:<12} {total:>8} {rate:>8.1}  {:>5} {:>7} {:>4} {:>4} {:>8} {:>8} {:>4.0}%",
        share(0),
        share(1),
        share(2),
        share(3),
        show_bytes(number("sent")),
        show_bytes(task["resident"].as_f64().unwrap_or(0.0)),
        100.0 * number("cpu"),
    )
}

fn stragglers(state: &Value) -> Vec<String> {
    let one = |straggler: &Value| {
        let ms = |key: &str| straggler[key].as_f64().unwrap_or(0.0) * 1e3;
        let text = |key: &str| plain(straggler[key].as_str().unwrap_or("?"));
        let peer = straggler["waits_for"].as_str();
        let cause = peer.map_or_else(String::new, |peer| format!(" for {}", plain(peer)));
        format!(
            "straggler: {} in {}{cause} since {}: {:.2} ms a step, others {:.2} ms",
            text("task"),
            text("phase"),
            clock(straggler["since"].as_f64().unwrap_or(0.0)),
            ms("seconds"),
            ms("others"),
        )
    };
    state["stragglers"].as_array().into_iter().flatten().map(one).collect()
}

/// What tasks wait for longest.
fn waits(state: &Value) -> Vec<String> {
    let mut found: Vec<(f64, String)> = Vec::new();
    for task in tasks(state).iter().filter(|task| task["lost"].is_null()) {
        let name = plain(task["name"].as_str().unwrap_or("?"));
        for peer in task["rates"]["peers"].as_array().into_iter().flatten() {
            let device = peer[0].as_str().unwrap_or("?");
            let text = format!("{name} waits for values of {}", plain(&task_name(device)));
            found.push((peer[3].as_f64().unwrap_or(0.0), text));
        }
        for (cause, text) in [("ranks", "other ranks"), ("queue", "its queue of collectives")] {
            let waiting = task["rates"]["waits"][cause].as_f64().unwrap_or(0.0);
            found.push((waiting, format!("{name} waits for {text}")));
        }
    }
    found.retain(|(waiting, _)| *waiting >= 0.01);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MOST_WAITS);
    found.iter().map(|(waiting, text)| format!("{text}: {waiting:.2} at a time")).collect()
}

/// `/job:ps/replica:0/task:1` as `ps 1`.
fn task_name(device: &str) -> String {
    let part = |name: &str| device.split('/').find_map(|part| part.strip_prefix(name));
    match (part("job:"), part("task:")) {
        (Some(job), Some(task)) => format!("{job} {task}"),
        _ => device.into(),
    }
}

fn events(state: &Value) -> Vec<String> {
    let all = state["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |event: &Value| {
        let time = clock(event[0].as_f64().unwrap_or(0.0));
        format!("{time}  {}", plain(event[1].as_str().unwrap_or("?")))
    };
    all.iter().rev().take(MOST_EVENTS).map(one).collect()
}

fn checkpoint(state: &Value) -> Option<String> {
    let newest = state["checkpoints"].as_array()?.first()?;
    let time = clock(newest[0].as_f64().unwrap_or(0.0));
    Some(format!("{time}  checkpoint {}", plain(newest[1].as_str().unwrap_or("?"))))
}

/// A task's text without control characters, which a terminal would interpret.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(tasks: usize) -> Value {
        let task = |i: usize| {
            json!({"name": format!("worker {i}"), "steps": 70, "parts": 0, "resident": 2e6, "lost": null,
                "rates": {"steps": 25.0, "phases": [0.0, 0.1, 0.0, 0.3], "sent": 1500.0, "cpu": 0.5,
                          "peers": [["/job:ps/replica:0/task:1", 0.0, 0.0, 0.25]],
                          "waits": {"ranks": 0.0, "queue": 0.0}}})
        };
        json!({
            "tasks": (0..tasks).map(task).collect::<Vec<_>>(),
            "steps": {"kind": "global", "count": 70.0, "rate": 25.0},
            "epoch": 2,
            "stragglers": [{"task": "worker 1", "phase": "input", "seconds": 0.01, "others": 0.002,
                            "since": 3661.0}],
            "events": [[1.0, "worker 0 has started"], [2.0, "worker 1 \u{1b}[2J"]],
            "checkpoints": [[3.0, "model.ckpt-7"]],
        })
    }

    fn history() -> Value {
        let points =
            |values: [f64; 3]| json!([[1.0, values[0]], [2.0, values[1]], [3.0, values[2]]]);
        json!({"rate": points([0.0, 50.0, 100.0]),
            "curves": [{"name": "loss", "task": "worker 0", "points": points([1.0, 0.5, 0.25])}]})
    }

    #[test]
    fn a_table_has_a_line_for_each_task_and_straggler() {
        let mut state = state(1);
        let ps = json!({"name": "ps 0", "steps": 0, "parts": 50, "resident": 2e6, "lost": null,
            "rates": {"steps": 0.0, "parts": 25.0, "phases": [0.0, 0.1, 0.0, 0.3],
                      "sent": 1500.0, "cpu": 0.5}});
        let lost = json!({"name": "\u{1b}[2Jworker 1", "lost": "no answer"});
        state["tasks"] = json!([ps, lost]);
        let waits = json!({"task": "worker 0", "phase": "wait", "waits_for": "ps 0",
            "seconds": 0.01, "others": 0.002, "since": 1.0});
        state["stragglers"].as_array_mut().unwrap().push(waits);
        let text = table(&state);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2 tasks, 1 lost, 25.0 steps/s, global step 70, epoch 2");
        let ps = "ps 0               50     25.0     0%     25%   0%  75%   1.5 KB   2.0 MB   50%";
        assert_eq!(lines[2], ps);
        assert_eq!(lines[3], "?[2Jworker 1 lost: no answer");
        let want =
            "straggler: worker 1 in input since 01:01:01 UTC: 10.00 ms a step, others 2.00 ms";
        assert_eq!(lines[4], want);
        assert!(lines[5].starts_with("straggler: worker 0 in wait for ps 0 since"), "{text}");
    }

    #[test]
    fn a_screen_fits_the_terminal() {
        for (columns, rows, count) in
            [(80, 24, 5), (80, 24, 100), (40, 8, 5), (20, 3, 50), (200, 60, 0)]
        {
            let lines = screen(&state(count), &history(), ScreenSize { columns, rows }, &mut 0);
            assert!(lines.len() <= rows, "{columns} by {rows}: {lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
            assert!(lines[0].starts_with(&count.to_string()), "{lines:#?}");
        }
        let lines = screen(&state(5), &history(), ScreenSize { columns: 80, rows: 24 }, &mut 0);
        let text = lines.join("\n");
        for part in [
            "steps/s          ▁▅█ 100.0000",
            "loss worker 0    █▅▃ 0.2500",
            "worker 4 ",
            "straggler: worker 1 in input",
            "worker 0 waits for values of ps 1: 0.25 at a time",
            "00:00:02 UTC  worker 1 ?[2J",
            "00:00:03 UTC  checkpoint model.ckpt-7",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(heads().chars().count() < 80);
    }

    #[test]
    fn more_tasks_than_lines_are_scrolled() {
        let size = ScreenSize { columns: 80, rows: 24 };
        let mut above = 3;
        let text = screen(&state(100), &history(), size, &mut above).join("\n");
        assert!(!text.contains("worker 2  ") && text.contains("worker 3  "), "{text}");
        assert!(text.contains("tasks 4 to "), "{text}");
        above = 1000;
        let text = screen(&state(100), &history(), size, &mut above).join("\n");
        assert!(
            above < 100 && text.contains("worker 99  ") && text.contains("to 100 of 100"),
            "{text}"
        );
    }
}
