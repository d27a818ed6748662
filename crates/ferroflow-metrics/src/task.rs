//! The metrics of one task or rank.

use crate::families::{CollectiveCounters, Counters, GpuLabels, RpcTimer, register};
use crate::lag::{LagTable, RankLag};
use crate::peers::{PeerCounters, PeerTable};
use crate::phases::PhaseSeconds;
use crate::sample::{SampleSource, ServerSample};
use crate::seconds::nanos;
use crate::steps::{CountedSession, LONGEST_INPUT, RecentStep, RecentSteps, StepEnd};
use crate::text::MetricsFormat;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines of the log that are kept, and the most characters of each.
const LOG_LINES: usize = 200;
const LOG_WIDTH: usize = 2000;

/// Names of scalars that a program may report.
const MOST_SCALARS: usize = 64;

/// The counters of one task or rank of a job.
pub struct TaskMetrics {
    pub(crate) job: String,
    /// Changes when the ranks of an elastic job get new numbers.
    pub(crate) task: Arc<AtomicU32>,
    /// Seconds since 1970.
    pub(crate) started: f64,
    /// False to measure what counting costs.
    is_counting: bool,
    registry: Registry,
    pub(crate) counters: Counters,
    /// Time in each phase.
    pub phases: PhaseSeconds,
    /// Nanoseconds in which a rank has prepared the input of its present step.
    rank_input: AtomicU64,
    pub(crate) recent: RecentSteps,
    pub(crate) peers: PeerTable,
    pub(crate) lags: LagTable,
    pub(crate) sample: SampleSource,
    pub(crate) scalars: Mutex<BTreeMap<String, (i64, f64)>>,
    pub(crate) graph: Mutex<Option<Arc<serde_json::Value>>>,
    logs: Mutex<VecDeque<String>>,
}

impl fmt::Debug for TaskMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (job, task) = self.place();
        write!(f, "TaskMetrics({job} {task})")
    }
}

impl TaskMetrics {
    /// The metrics of task `task` of `job`. A rank is a task of the job `rank`.
    pub fn new(job: &str, task: u32) -> Arc<TaskMetrics> {
        TaskMetrics::counting(job, task, true)
    }

    /// [`TaskMetrics::new`]. With `FERROFLOW_METRICS=0` steps, calls, values and collectives are
    /// not counted: a comparison with that shows what counting costs.
    pub fn from_env(job: &str, task: u32) -> Arc<TaskMetrics> {
        let is_off = std::env::var("FERROFLOW_METRICS").is_ok_and(|v| v == "0");
        TaskMetrics::counting(job, task, !is_off)
    }

    fn counting(job: &str, task: u32, is_counting: bool) -> Arc<TaskMetrics> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut registry, started) = (Registry::default(), now.as_secs_f64());
        let task = Arc::new(AtomicU32::new(task));
        let (counters, phases) = register(&mut registry, job, task.clone(), started);
        Arc::new(TaskMetrics {
            job: job.to_string(),
            task,
            started,
            is_counting,
            registry,
            counters,
            phases,
            rank_input: AtomicU64::new(0),
            recent: RecentSteps::default(),
            peers: PeerTable::default(),
            lags: LagTable::default(),
            sample: SampleSource::default(),
            scalars: Mutex::default(),
            graph: Mutex::default(),
            logs: Mutex::default(),
        })
    }

    /// The job and the number of the task.
    pub fn place(&self) -> (String, u32) {
        (self.job.clone(), self.task.load(Ordering::Relaxed))
    }

    /// The task has another number from now on: the ranks of an elastic job change.
    pub fn set_task(&self, task: u32) {
        self.task.store(task, Ordering::Relaxed);
    }

    /// Whether steps and collectives are counted.
    pub fn is_counting(&self) -> bool {
        self.is_counting
    }

    /// A session was opened.
    pub fn open_session(self: &Arc<Self>) -> CountedSession {
        CountedSession::new(self.clone())
    }

    /// Counts a step of a client.
    pub(crate) fn count_step(&self, end: StepEnd, time: Duration) {
        if !self.is_counting {
            return;
        }
        match end {
            StepEnd::Ok => self.counters.steps.inc(),
            StepEnd::Failed => self.counters.failed_steps.inc(),
        };
        self.counters.step_seconds.observe(time.as_secs_f64());
    }

    /// Counts a part of a step that ran here and ends now. It has sent values for `send` and waited
    /// for `wait`.
    pub fn part_ended(
        &self,
        id: i64,
        end: StepEnd,
        started: Instant,
        send: Duration,
        wait: Duration,
    ) {
        if !self.is_counting {
            return;
        }
        let total = started.elapsed();
        match end {
            StepEnd::Ok => self.counters.parts.inc(),
            StepEnd::Failed => self.counters.failed_parts.inc(),
        };
        self.counters.part_seconds.observe(total.as_secs_f64());
        self.record(id, started, total, Duration::ZERO, send, wait);
    }

    /// The program of a rank was between two steps for this long.
    pub fn rank_prepared(&self, input: Duration) {
        if self.is_counting && input < LONGEST_INPUT {
            self.rank_input.fetch_add(input.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Counts a step of a rank. `send` is the time of its collectives and `wait` the time that it
    /// waited for other ranks.
    pub fn rank_step(&self, id: i64, total: Duration, send: Duration, wait: Duration) {
        if !self.is_counting {
            return;
        }
        self.count_step(StepEnd::Ok, total);
        let input = Duration::from_nanos(self.rank_input.swap(0, Ordering::Relaxed));
        let now = Instant::now();
        self.record(id, now.checked_sub(total).unwrap_or(now), total, input, send, wait);
    }

    fn record(
        &self,
        id: i64,
        started: Instant,
        total: Duration,
        input: Duration,
        send: Duration,
        wait: Duration,
    ) {
        let total = nanos(total);
        // Waits of several values overlap: they may be longer than the step.
        let wait = nanos(wait).min(total);
        let send = nanos(send).min(total - wait);
        let input = nanos(input).min(total - wait - send);
        let phases = [input, total - wait - send - input, send, wait];
        self.phases.add_all(phases);
        self.recent.push(RecentStep { id, started, phases });
    }

    /// Counts a value that a link carries to another task.
    pub fn sent_value(&self, task: &str, bytes: usize) {
        if !self.is_counting {
            return;
        }
        self.counters.sent_link.inc_by(bytes as u64);
        self.peers.sent(task, bytes);
    }

    /// Counts a value that a link brought from `peer`.
    pub fn received_value(&self, peer: &PeerCounters, bytes: usize) {
        if !self.is_counting {
            return;
        }
        self.counters.received_link.inc_by(bytes as u64);
        peer.received(bytes);
    }

    /// Counts time that a receiver waited for a value of `peer`.
    pub fn waited_for(&self, peer: &PeerCounters, time: Duration) {
        if !self.is_counting {
            return;
        }
        self.counters.wait_tensor.inner().add(time);
        peer.waited(time);
    }

    /// The counters of a peer.
    pub fn peer(&self, task: &str) -> Arc<PeerCounters> {
        self.peers.get(task)
    }

    /// Begins a call.
    pub fn begin_rpc(&self, method: &str) -> RpcTimer {
        self.counters.rpcs.begin(method)
    }

    /// A call was answered with this code of gRPC.
    pub fn end_rpc(&self, timer: &RpcTimer, code: u32, received: usize, sent: usize) {
        if !self.is_counting {
            return;
        }
        self.counters.rpcs.end(timer, code);
        self.counters.received_grpc.inc_by(received as u64);
        self.counters.sent_grpc.inc_by(sent as u64);
    }

    /// A gRPC connection was let in.
    pub fn connected_grpc(&self) {
        self.counters.grpc_connections.inc();
    }

    /// A link was let in.
    pub fn connected_link(&self) {
        self.counters.link_connections.inc();
    }

    /// An HTTP connection was let in.
    pub fn connected_http(&self) {
        self.counters.http_connections.inc();
    }

    /// A connection was refused.
    pub fn refused_connection(&self) {
        self.counters.refusals.inc();
    }

    /// Collectives of this rank.
    pub fn collectives(&self) -> &CollectiveCounters {
        &self.counters.collectives
    }

    /// Rank 0 only: `rank` submitted a tensor last, `lag` after the first rank.
    pub fn was_last(&self, rank: u32, lag: Duration) {
        self.lags.was_last(rank, lag);
    }

    /// Ranks that the others waited for, the latest first.
    pub fn late_ranks(&self, most: usize) -> Vec<RankLag> {
        self.lags.latest(most)
    }

    /// The ranks of the job, and its epoch if it is elastic.
    pub fn set_ranks(&self, ranks: usize, epoch: Option<u64>) {
        self.counters.ranks.set(ranks as i64);
        if let Some(epoch) = epoch {
            let before = self.counters.epoch.set(epoch as i64);
            if before != epoch as i64 {
                self.lags.clear();
            }
        }
    }

    /// The job has recovered from a loss.
    pub fn recovered(&self) {
        self.counters.recoveries.inc();
    }

    /// A value that the program reports, such as its loss.
    pub fn report_scalar(&self, name: &str, step: i64, value: f64) {
        let mut scalars = self.scalars.lock();
        if scalars.len() < MOST_SCALARS || scalars.contains_key(name) {
            scalars.insert(name.to_string(), (step, value));
        }
    }

    /// The last graph that a client has run, for the dashboard.
    pub fn set_graph(&self, graph: serde_json::Value) {
        *self.graph.lock() = Some(Arc::new(graph));
    }

    /// The last graph that a client has run.
    pub fn graph(&self) -> Option<Arc<serde_json::Value>> {
        self.graph.lock().clone()
    }

    /// Keeps a line of the process's log for the dashboard.
    pub fn log_line(&self, line: &str) {
        let line: String = line.chars().take(LOG_WIDTH).collect();
        let mut logs = self.logs.lock();
        if logs.len() == LOG_LINES {
            logs.pop_front();
        }
        logs.push_back(line);
    }

    /// The last lines of the log.
    pub fn logs(&self) -> Vec<String> {
        self.logs.lock().iter().cloned().collect()
    }

    /// How to read the present state of the server.
    pub fn set_sampler(&self, sampler: impl Fn() -> Option<ServerSample> + Send + Sync + 'static) {
        self.sample.set(Box::new(sampler));
    }

    /// Whether the task takes new steps. A rank always does.
    pub fn is_serving(&self) -> bool {
        self.sample.read().is_none_or(|sample| sample.is_serving)
    }

    /// All metrics as text.
    pub fn encode(&self, format: MetricsFormat) -> String {
        if let Some(sample) = self.sample.read() {
            self.counters.session_memory.set(sample.session_memory as i64);
            for gpu in sample.gpus {
                let labels = GpuLabels { gpu: gpu.name };
                self.counters.gpu_memory.get_or_create(&labels).set(gpu.in_use as i64);
                self.counters.gpu_limit.get_or_create(&labels).set(gpu.limit as i64);
            }
        }
        if let Some(slowest) = self.lags.latest(1).first() {
            self.counters.slowest_rank.set(i64::from(slowest.rank));
            self.counters.slowest_lag.set(slowest.lag.as_secs_f64());
        }
        let mut text = String::with_capacity(16 << 10);
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        format.convert(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_what_was_counted() {
        let metrics = TaskMetrics::new("worker", 3);
        let session = metrics.open_session();
        session.begin_step().end(StepEnd::Ok);
        let ms = Duration::from_millis;
        let started = Instant::now() - ms(10);
        metrics.part_ended(1, StepEnd::Ok, started, ms(1), ms(4));
        metrics.sent_value("/job:ps/replica:0/task:0", 100);
        let call = metrics.begin_rpc("RunStep");
        metrics.end_rpc(&call, 0, 10, 20);
        let call = metrics.begin_rpc("../../made up");
        metrics.end_rpc(&call, 12, 0, 0);
        metrics.collectives().ran("all-reduce", 4096, ms(2), ms(1), ms(0));
        metrics.was_last(5, ms(30));
        let text = metrics.encode(MetricsFormat::Text);
        for line in [
            "ferroflow_task_info{job_name=\"worker\",task=\"3\",version=\"",
            "ferroflow_steps_total{result=\"ok\"} 1\n",
            "ferroflow_step_seconds_count 1\n",
            "ferroflow_phase_seconds_total{phase=\"wait\"} 0.004\n",
            "ferroflow_sent_bytes_total{path=\"link\"} 100\n",
            "ferroflow_sent_bytes_total{path=\"collective\"} 4096\n",
            "ferroflow_rpcs_total{method=\"RunStep\",code=\"ok\"} 1\n",
            "ferroflow_rpcs_total{method=\"other\",code=\"unimplemented\"} 1\n",
            "ferroflow_sessions 1\n",
            "ferroflow_straggler_rank 5\n",
            "process_resident_memory_bytes ",
            "process_cpu_seconds_total ",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
        assert!(!text.contains("made up"));
        drop(session);
        let open = metrics.encode(MetricsFormat::OpenMetrics);
        assert!(open.contains("ferroflow_sessions 0\n") && open.ends_with("# EOF\n"));
    }

    #[test]
    fn counting_can_be_switched_off() {
        let metrics = TaskMetrics::counting("worker", 0, false);
        let session = metrics.open_session();
        session.begin_step().end(StepEnd::Ok);
        session.begin_step().end(StepEnd::Ok);
        let ms = Duration::from_millis;
        let started = Instant::now() - ms(10);
        metrics.part_ended(1, StepEnd::Ok, started, ms(1), ms(4));
        metrics.sent_value("/job:ps/replica:0/task:0", 100);
        metrics.end_rpc(&metrics.begin_rpc("RunStep"), 0, 10, 20);
        let text = metrics.encode(MetricsFormat::Text);
        for line in [
            "ferroflow_steps_total{result=\"ok\"} 0\n",
            "ferroflow_step_parts_total{result=\"ok\"} 0\n",
            "ferroflow_phase_seconds_total{phase=\"input\"} 0.0\n",
            "ferroflow_sent_bytes_total{path=\"link\"} 0\n",
            "ferroflow_rpcs_total{method=\"RunStep\",code=\"ok\"} 0\n",
            "ferroflow_sessions 1\n",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }

    #[test]
    fn the_number_of_scalars_is_bounded() {
        let metrics = TaskMetrics::new("worker", 0);
        (0..1000).for_each(|i| metrics.report_scalar(&format!("s{i}"), 1, 0.5));
        assert_eq!(metrics.scalars.lock().len(), MOST_SCALARS);
    }

    #[test]
    fn a_rank_of_an_elastic_job_gets_another_number() {
        let metrics = TaskMetrics::new("rank", 3);
        metrics.set_ranks(4, Some(1));
        metrics.was_last(2, Duration::from_millis(5));
        metrics.set_task(1);
        metrics.set_ranks(3, Some(2));
        assert_eq!(metrics.place(), ("rank".into(), 1));
        assert_eq!(metrics.snapshot()["task"], 1);
        assert!(metrics.late_ranks(8).is_empty(), "rank 2 is another process now");
        let text = metrics.encode(MetricsFormat::OpenMetrics);
        assert!(text.contains("ferroflow_task_info{job_name=\"rank\",task=\"1\","), "{text}");
    }

    /// Metrics of GPUs appear with the first GPU.
    #[test]
    fn the_files_for_grafana_and_prometheus_name_metrics_that_exist() {
        let text = TaskMetrics::new("rank", 0).encode(MetricsFormat::Text);
        let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/");
        for file in ["grafana.json", "alerts.yaml"] {
            let content = std::fs::read_to_string(format!("{files}{file}")).unwrap();
            let words = content.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let names: Vec<&str> = words
                .filter(|word| word.starts_with("ferroflow_") || word.starts_with("process_"))
                .collect();
            assert!(names.len() > 5, "{file}");
            for name in names.into_iter().filter(|name| !name.starts_with("ferroflow_gpu_")) {
                let is_there = |line: &str| {
                    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                };
                assert!(text.lines().any(is_there), "{file}: no metric {name}");
            }
        }
    }
}
