//! The state of a job, from the HTTP ports of its tasks: reads them every second, compares with the
//! reading before, and sends changes to browsers.

use super::lines::OutputLines;
use super::rate::{GlobalSteps, JobRate, job_rate};
use super::series::Series;
use super::straggler::{StragglerWatch, TaskWork, slowest};
use ferroflow::cluster::Trust;
use ferroflow_observe::{EventSender, HttpClient};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time between two readings of a task, for few tasks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most readings in a second: many tasks are read less often.
const MOST_READINGS: usize = 100;
/// The most tasks.
const MOST_TASKS: usize = 2048;
/// The most browsers at a time.
const MOST_BROWSERS: usize = 16;
/// The number of events to keep.
const MOST_EVENTS: usize = 200;
/// The number of checkpoints to list.
const MOST_CHECKPOINTS: usize = 20;
/// Jobs and periods shorter than this many seconds have no stragglers: tasks start at different
/// times, and their first steps are slow.
const SHORTEST: f64 = 5.0;
/// The most curves of values that tasks report.
const MOST_CURVES: usize = 64;

/// The sources of tasks and checkpoints.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// HTTP addresses of tasks.
    pub addresses: Vec<String>,
    /// A folder in which processes of a launcher write their addresses.
    pub folder: Option<PathBuf>,
    /// A folder with checkpoints.
    pub checkpoints: Option<PathBuf>,
    pub trust: Trust,
}

/// The state of a job.
pub struct Board {
    sources: Sources,
    state: Mutex<BoardState>,
    browsers: Mutex<Vec<EventSender>>,
    /// What the processes of a launcher have printed.
    lines: Mutex<OutputLines>,
}

#[derive(Default)]
struct BoardState {
    /// By address.
    tasks: BTreeMap<String, TaskState>,
    /// Addresses that have not answered so far, with the last error.
    silent: BTreeMap<String, String>,
    events: VecDeque<Value>,
    stragglers: StragglerWatch,
    rate: Series,
    global: GlobalSteps,
    /// The epoch of an elastic job.
    epoch: i64,
    /// By name of the value and task.
    curves: BTreeMap<(String, String), Series>,
}

impl BoardState {
    fn job_rate(&self, now: f64) -> JobRate {
        let answering = self.tasks.values().filter(|task| task.lost.is_none());
        job_rate(answering.map(|task| (&task.now, &task.rates)), &self.global, now)
    }
}

#[derive(Default)]
struct TaskState {
    name: String,
    now: Value,
    /// Derived from the last two readings.
    rates: Value,
    work: Option<TaskWork>,
    /// The error of the last reading, if it failed.
    lost: Option<String>,
    is_read: bool,
}

impl Board {
    pub fn new(sources: Sources) -> Arc<Board> {
        let (state, browsers, lines) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Board { sources, state, browsers, lines })
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the tasks until it is dropped.
    pub async fn watch(self: Arc<Self>) {
        let mut readers = tokio::task::JoinSet::new();
        let mut known: Vec<String> = Vec::new();
        loop {
            while readers.try_join_next().is_some() {}
            for address in self.addresses() {
                if known.len() < MOST_TASKS && !known.contains(&address) {
                    known.push(address.clone());
                    readers.spawn(self.clone().read(address));
                }
            }
            tokio::time::sleep(INTERVAL).await;
            self.compare();
            self.tell();
        }
    }

    fn addresses(&self) -> Vec<String> {
        let mut all = self.sources.addresses.clone();
        let folder = self.sources.folder.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        for file in folder.into_iter().flatten().flatten() {
            let is_whole = !file.file_name().to_string_lossy().ends_with('~');
            if let (true, Ok(address)) = (is_whole, std::fs::read_to_string(file.path())) {
                all.push(address.trim().to_string());
            }
        }
        all
    }

    /// Reads one task periodically.
    async fn read(self: Arc<Self>, address: String) {
        let mut client = HttpClient::new(address.clone(), self.sources.trust.clone());
        loop {
            let found = client.json("/api/task").await;
            let tasks = self.update(&address, found.map_err(|e| e.message().to_string()));
            let share = Duration::from_secs(1) * tasks as u32 / MOST_READINGS as u32;
            tokio::time::sleep(INTERVAL.max(share)).await;
        }
    }

    /// Takes a reading. Returns the number of tasks.
    fn update(&self, address: &str, found: Result<Value, String>) -> usize {
        let time = now();
        let mut state = self.state();
        let state = &mut *state;
        let count = state.tasks.len();
        match found {
            Ok(now) => {
                state.silent.remove(address);
                let name = name_of(&now);
                // A task that was restarted has another address.
                let is_old = |(at, task): (&String, &TaskState)| {
                    *at != address && task.name == name && task.lost.is_some()
                };
                let old: Vec<String> =
                    state.tasks.iter().filter(|t| is_old(*t)).map(|(at, _)| at.clone()).collect();
                for at in &old {
                    state.tasks.remove(at);
                }
                let is_new = !state.tasks.contains_key(address);
                let task = state.tasks.entry(address.to_string()).or_default();
                let mut news = Vec::new();
                if is_new {
                    let how = if old.is_empty() { "has started" } else { "was started again" };
                    news.push(format!("{name} {how}"));
                } else if task.lost.is_some() {
                    news.push(format!("{name} answers again"));
                }
                let number = |value: &Value, key: &str| value[key].as_i64().unwrap_or(0);
                let (epoch, ranks) = (number(&now, "epoch"), number(&now, "ranks"));
                if epoch > state.epoch {
                    if state.epoch > 0 {
                        news.push(format!("epoch {epoch} of the job begins, with {ranks} ranks"));
                    }
                    state.epoch = epoch;
                }
                if task.is_read && number(&now, "recoveries") > number(&task.now, "recoveries") {
                    news.push(format!("{name} has recovered from a loss"));
                }
                for scalar in now["scalars"].as_array().into_iter().flatten() {
                    let (Some(what), Some(step), Some(value)) =
                        (scalar[0].as_str(), scalar[1].as_f64(), scalar[2].as_f64())
                    else {
                        continue;
                    };
                    if task.is_read && !task.now["scalars"].is_null() {
                        state.global.reached(step, time);
                    }
                    let key = (what.to_string(), name.clone());
                    if state.curves.len() < MOST_CURVES || state.curves.contains_key(&key) {
                        state.curves.entry(key).or_default().push(step, value);
                    }
                }
                (task.rates, task.work) = compare(&name, &task.now, &now);
                task.name = name;
                task.now = now;
                task.is_read = true;
                task.lost = None;
                // A rank that is lost does not come back: the others have gone on without it.
                let is_gone = |task: &TaskState| {
                    task.lost.is_some()
                        && task.now["job"] == "rank"
                        && number(&task.now, "task") >= ranks
                };
                if epoch > 0 && epoch == state.epoch {
                    state.tasks.retain(|_, task| !is_gone(task));
                }
                news.into_iter().for_each(|text| note(&mut state.events, text));
            }
            Err(why) => {
                // A task that never answered may still be starting.
                let Some(task) = state.tasks.get_mut(address) else {
                    state.silent.insert(address.to_string(), why);
                    return count;
                };
                if task.lost.is_none() {
                    note(&mut state.events, format!("{} does not answer", task.name));
                }
                task.lost = Some(why);
                task.rates = Value::Null;
                task.work = None;
            }
        }
        count
    }

    fn lines(&self) -> MutexGuard<'_, OutputLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a line that the process `name` has printed.
    pub fn printed(&self, name: &str, line: &str) {
        self.lines().push(name, line);
    }

    /// The last lines that the process `name` has printed.
    pub fn output_of(&self, name: &str) -> Option<Value> {
        self.lines().of(name).map(|lines| json!(lines))
    }

    /// Adds an event of the job.
    pub fn note(&self, text: impl Into<String>) {
        note(&mut self.state().events, text.into());
    }

    fn compare(&self) {
        let mut state = self.state();
        let work: Vec<TaskWork> = state.tasks.values().filter_map(|t| t.work.clone()).collect();
        let time = now();
        let found = slowest(&work, time);
        let is_running = work.iter().any(|work| work.steps > 0.0);
        state.stragglers.observe(found, is_running, time);
        if !state.tasks.is_empty() {
            let found = state.job_rate(time);
            state.rate.push(time, found.rate);
        }
    }

    fn tell(&self) {
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        if browsers.is_empty() {
            return;
        }
        let text = self.to_json().to_string();
        browsers.retain(|browser| browser.send("state", &text));
    }

    /// Sends the state to a browser from here on. Returns false if there are too many browsers.
    pub fn subscribe(&self, browser: EventSender) -> bool {
        let text = self.to_json().to_string();
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        browsers.retain(|browser| browser.send("alive", "{}"));
        if browsers.len() >= MOST_BROWSERS {
            return false;
        }
        browser.send("state", &text);
        browsers.push(browser);
        true
    }

    /// The state that changes, as browsers receive it.
    pub fn to_json(&self) -> Value {
        let checkpoints = self.sources.checkpoints.as_deref().map(checkpoints);
        let state = self.state();
        let task = |(address, task): (&String, &TaskState)| {
            let mut shown = task.now.clone();
            shown["name"] = task.name.as_str().into();
            shown["address"] = address.as_str().into();
            shown["rates"] = task.rates.clone();
            shown["lost"] = task.lost.clone().into();
            shown
        };
        let mut tasks: Vec<Value> = state.tasks.iter().map(task).collect();
        tasks.sort_by_key(|t| {
            (t["job"].as_str().map(str::to_string), t["task"].as_u64().unwrap_or(0))
        });
        let rate = state.rate.points().last();
        let progress = state.job_rate(now());
        let logs = self.lines().names().into_iter().map(str::to_string).collect::<Vec<_>>();
        json!({
            "time": now(),
            "tasks": tasks,
            "silent": state.silent,
            "rate": rate,
            "steps": {"kind": progress.kind.name(), "count": progress.steps, "rate": progress.rate},
            "epoch": state.epoch,
            "logs": logs,
            "stragglers": state.stragglers.named().map(|s| s.to_json()).collect::<Vec<_>>(),
            "events": state.events,
            "checkpoints": checkpoints,
        })
    }

    /// The curves.
    pub fn history(&self) -> Value {
        let state = self.state();
        let curve = |((what, task), series): (&(String, String), &Series)| json!({"name": what, "task": task, "points": series.points()});
        json!({
            "rate": state.rate.points(),
            "curves": state.curves.iter().map(curve).collect::<Vec<_>>(),
        })
    }

    /// The address of the task with this name; without a name, of the first one that runs steps.
    pub fn address_of(&self, name: Option<&str>) -> Option<String> {
        let state = self.state();
        let is_asked = |task: &TaskState| match name {
            Some(name) => task.name == name,
            // The chief has the graph of the whole job.
            None => task.now["steps"].as_u64() > Some(0) && task.lost.is_none(),
        };
        state.tasks.iter().find(|(_, task)| is_asked(task)).map(|(at, _)| at.clone())
    }

    pub fn trust(&self) -> &Trust {
        &self.sources.trust
    }

    /// Lines about stragglers for the end of the job: tasks that were slow during all of it, and
    /// tasks that were slow for a part of it.
    pub fn report(&self) -> Vec<String> {
        let state = self.state();
        let time = now();
        let is_long = |task: &TaskState| {
            let number = |key: &str| task.now[key].as_f64().unwrap_or(0.0);
            number("now") - number("started") >= SHORTEST
        };
        let work: Vec<TaskWork> = state
            .tasks
            .values()
            .filter(|task| is_long(task))
            .map(|task| compare(&task.name, &Value::Null, &task.now).1)
            .filter_map(|work| work.filter(|work| work.steps >= 10.0))
            .collect();
        let periods = state.stragglers.periods(time);
        let mut found = slowest(&work, time);
        for straggler in &mut found {
            let started = state.tasks.values().find(|t| t.name == straggler.name);
            let started = started.and_then(|t| t.now["started"].as_f64()).unwrap_or(0.0);
            let period = periods.iter().find(|period| period.name == straggler.name);
            straggler.since = period.map_or(started, |period| period.since);
            straggler.until = period.and_then(|period| period.until);
        }
        for period in periods {
            let is_long = period.until.unwrap_or(time) - period.since >= SHORTEST;
            if is_long && !found.iter().any(|straggler| straggler.name == period.name) {
                found.push(period.clone());
            }
        }
        found.iter().map(|straggler| straggler.text()).collect()
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn note(events: &mut VecDeque<Value>, text: String) {
    if events.len() == MOST_EVENTS {
        events.pop_front();
    }
    events.push_back(json!([now(), text]));
}

fn name_of(task: &Value) -> String {
    // The text comes from outside: names are shown as text and never as markup.
    let job: String = task["job"].as_str().unwrap_or("task").chars().take(100).collect();
    format!("{job} {}", task["task"].as_u64().unwrap_or(0))
}

/// `/job:ps/replica:0/task:1` as `ps 1`.
fn task_name(device: &str) -> String {
    let part = |name: &str| device.split('/').find_map(|part| part.strip_prefix(name));
    match (part("job:"), part("task:")) {
        (Some(job), Some(task)) => format!("{job} {task}"),
        _ => device.chars().take(100).collect(),
    }
}

/// Rates between two readings of a task, and its work. Without an earlier reading, over its
/// lifetime.
fn compare(name: &str, before: &Value, now: &Value) -> (Value, Option<TaskWork>) {
    let number = |value: &Value, keys: &[&str]| {
        keys.iter().fold(value, |value, key| &value[*key]).as_f64().unwrap_or(0.0)
    };
    let is_same = before["pid"] == now["pid"] && before["started"] == now["started"];
    let before = if is_same { before } else { &Value::Null };
    let since = if is_same { number(before, &["now"]) } else { number(now, &["started"]) };
    let time = number(now, &["now"]) - since;
    if time <= 0.0 {
        return (Value::Null, None);
    }
    let grown = |keys: &[&str]| (number(now, keys) - number(before, keys)).max(0.0);
    let phase = |i: usize| {
        let of = |value: &Value| value["phases"][i].as_f64().unwrap_or(0.0);
        (of(now) - of(before)).max(0.0)
    };
    let (steps, parts) = (grown(&["steps"]), grown(&["parts"]));
    let phases = [phase(0), phase(1), phase(2), phase(3)];
    let sent = grown(&["sent", "link"]) + grown(&["sent", "grpc"]) + grown(&["sent", "collective"]);
    let received = grown(&["received", "link"]) + grown(&["received", "grpc"]);
    let peers: Vec<Value> = now["peers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|peer| {
            let task = &peer["task"];
            let old = before["peers"].as_array();
            let old = old.and_then(|all| all.iter().find(|p| p["task"] == *task));
            let old = old.unwrap_or(&Value::Null);
            let rate = |key: &str| (number(peer, &[key]) - number(old, &[key])).max(0.0) / time;
            json!([task, rate("sent"), rate("received"), rate("waited")])
        })
        .collect();
    let waited = |peer: &Value| peer[3].as_f64().unwrap_or(0.0);
    let longest = peers.iter().max_by(|a, b| waited(a).total_cmp(&waited(b)));
    let longest = longest.filter(|peer| waited(peer) > 0.0).and_then(|peer| peer[0].as_str());
    let rates = json!({
        "steps": steps / time,
        "parts": parts / time,
        "cpu": grown(&["cpu"]) / time,
        "sent": sent / time,
        "received": received / time,
        "rpcs": grown(&["rpcs"]) / time,
        "collectives": grown(&["collectives", "count"]) / time,
        "waits": {
            "ranks": grown(&["waits", "ranks"]) / time,
            "queue": grown(&["waits", "queue"]) / time,
        },
        "phases": phases.map(|p| p / time),
        "peers": peers,
    });
    let work = TaskWork {
        name: name.to_string(),
        job: now["job"].as_str().unwrap_or_default().to_string(),
        steps: steps.max(parts),
        has_client: steps > 0.0,
        phases,
        waits_for: longest.map(task_name),
    };
    (rates, Some(work))
}

/// The checkpoints in a folder, the newest first.
fn checkpoints(folder: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".index") else { continue };
        let changed = file.metadata().ok().and_then(|about| about.modified().ok());
        let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        found.push((changed.unwrap_or_default().as_secs_f64(), name.to_string()));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MOST_CHECKPOINTS);
    found.into_iter().map(|(time, name)| json!([time, name])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(steps: u64, seconds: f64) -> Value {
        json!({"job": "worker", "task": 1, "pid": 7, "started": 100.0, "now": 100.0 + seconds,
            "steps": steps, "parts": 0, "phases": [0.0, seconds, 0.0, 0.0], "epoch": steps / 100,
            "ranks": 2, "scalars": [["loss", steps, 1.0 / steps.max(1) as f64]]})
    }

    #[test]
    fn rates_are_differences_of_two_readings() {
        let (rates, work) = compare("worker 1", &reading(10, 1.0), &reading(30, 3.0));
        assert_eq!(rates["steps"], 10.0);
        assert_eq!(work.unwrap().phases[1], 2.0);
        // After a restart the counters start at zero.
        let mut again = reading(5, 1.0);
        again["pid"] = 8.into();
        assert_eq!(compare("worker 1", &reading(30, 3.0), &again).0["steps"], 5.0);
    }

    #[test]
    fn the_task_for_whose_values_it_waits_longest_is_named() {
        let mut now = reading(30, 3.0);
        now["peers"] = json!([
            {"task": "/job:ps/replica:0/task:0", "waited": 0.1},
            {"task": "/job:ps/replica:0/task:1", "waited": 2.0},
        ]);
        let work = compare("worker 1", &Value::Null, &now).1.unwrap();
        assert!(work.has_client);
        assert_eq!(work.waits_for.as_deref(), Some("ps 1"));
        assert_eq!(compare("worker 1", &now, &now).1, None, "no time has passed");
        assert_eq!(compare("worker 1", &Value::Null, &reading(1, 1.0)).1.unwrap().waits_for, None);
    }

    #[test]
    fn a_board_keeps_curves_losses_and_epochs() {
        let board = Board::new(Sources::default());
        board.update("a:1", Err("refused".into()));
        assert_eq!(board.to_json()["tasks"].as_array().unwrap().len(), 0, "it may still start");
        assert_eq!(board.to_json()["silent"], json!({"a:1": "refused"}));
        for i in 0..3 {
            board.update("a:1", Ok(reading(i * 60, i as f64)));
        }
        board.update("a:1", Err("refused".into()));
        board.update("a:2", Ok(reading(1, 1.0)));
        let state = board.to_json();
        assert_eq!(state["tasks"].as_array().unwrap().len(), 1);
        assert_eq!(state["silent"], json!({}));
        assert_eq!(state["tasks"][0]["name"], "worker 1");
        let events: Vec<&str> =
            state["events"].as_array().unwrap().iter().map(|e| e[1].as_str().unwrap()).collect();
        let want =
            ["worker 1 has started", "worker 1 does not answer", "worker 1 was started again"];
        assert_eq!(events, want);
        assert_eq!(board.history()["curves"][0]["name"], "loss");
    }

    #[test]
    fn ranks_that_are_lost_leave_the_board_with_their_epoch() {
        let rank = |pid: u64, task: u64, epoch: u64, ranks: u64| {
            json!({"job": "rank", "task": task, "pid": pid, "started": 100.0, "now": 101.0,
                "steps": 5, "epoch": epoch, "ranks": ranks})
        };
        let board = Board::new(Sources::default());
        for (task, address) in ["a:0", "a:1", "a:2"].into_iter().enumerate() {
            board.update(address, Ok(rank(10 + task as u64, task as u64, 1, 3)));
        }
        // Rank 1 is killed. The process that was rank 2 is rank 1 from now on.
        board.update("a:1", Err("refused".into()));
        board.update("a:0", Ok(rank(10, 0, 2, 2)));
        board.update("a:2", Ok(rank(12, 1, 2, 2)));
        let names = |state: &Value| -> Vec<String> {
            let tasks = state["tasks"].as_array().unwrap().iter();
            tasks.map(|t| format!("{} {}", t["name"].as_str().unwrap(), t["lost"])).collect()
        };
        let state = board.to_json();
        assert_eq!(names(&state), ["rank 0 null", "rank 1 null"]);
        // The last rank is killed, and no other process gets its number.
        board.update("a:2", Err("refused".into()));
        board.update("a:0", Ok(rank(10, 0, 3, 1)));
        let state = board.to_json();
        assert_eq!(names(&state), ["rank 0 null"]);
        assert_eq!(state["epoch"], 3);
        let events = state["events"].to_string();
        assert_eq!(
            events.matches("epoch 2 of the job begins, with 2 ranks").count(),
            1,
            "{events}"
        );
    }

    #[test]
    fn the_rate_is_that_of_the_job() {
        let board = Board::new(Sources::default());
        for (task, address) in ["a:0", "a:1"].into_iter().enumerate() {
            for seconds in [1.0, 2.0] {
                let steps = 10.0 * seconds;
                let reading = json!({"job": "rank", "task": task, "pid": task, "started": 100.0,
                    "now": 100.0 + seconds, "steps": steps as u64, "ranks": 2});
                board.update(address, Ok(reading));
            }
        }
        let steps = &board.to_json()["steps"];
        assert_eq!(*steps, json!({"kind": "rank", "count": 20.0, "rate": 10.0}));
    }

    #[test]
    fn the_output_of_processes_is_kept_by_name() {
        let board = Board::new(Sources::default());
        board.printed("rank 0", "hello");
        assert_eq!(board.output_of("rank 0"), Some(json!(["hello"])));
        assert_eq!(
            (board.output_of("rank 1"), &board.to_json()["logs"][0]),
            (None, &"rank 0".into())
        );
    }
}
