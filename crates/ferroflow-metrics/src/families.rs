//! The counters behind the metrics, and their names.

use crate::phases::{PHASES, Phase, PhaseSeconds};
use crate::process::ProcessCollector;
use crate::seconds::Seconds;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PathLabels {
    path: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabels {
    phase: Phase,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct KindLabels {
    pub kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TaskLabels {
    job_name: String,
    task: u32,
    version: &'static str,
}

/// The place of the process. The number of a rank may change.
#[derive(Debug)]
struct TaskPlace {
    job: String,
    task: Arc<AtomicU32>,
}

impl EncodeMetric for TaskPlace {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let (job_name, version) = (self.job.clone(), env!("CARGO_PKG_VERSION"));
        let task = self.task.load(Ordering::Relaxed);
        Info::new(TaskLabels { job_name, task, version }).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Info
    }
}

/// The methods of both services, sorted. Others are counted together, so that a caller cannot make
/// up labels.
const METHODS: [&str; 25] = [
    "CleanupAll",
    "CleanupGraph",
    "CloseSession",
    "CompleteGroup",
    "CompleteInstance",
    "CreateSession",
    "CreateWorkerSession",
    "DeleteWorkerSession",
    "DeregisterGraph",
    "ExtendSession",
    "GetStatus",
    "GetStepSequence",
    "ListDevices",
    "Logging",
    "MakeCallable",
    "MarkRecvFinished",
    "PartialRunSetup",
    "RecvBuf",
    "RecvTensor",
    "RegisterGraph",
    "ReleaseCallable",
    "Reset",
    "RunCallable",
    "RunGraph",
    "RunStep",
];
const OTHER: &str = "other";

/// The codes of gRPC, by number.
const CODES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// Answered calls. The counters of successful calls are looked up without a lock.
#[derive(Debug)]
pub(crate) struct RpcCounters {
    answered: Vec<(Counter, Seconds)>,
    calls: Family<CallLabels, Counter>,
}

/// A call that is being answered.
#[derive(Debug)]
pub struct RpcTimer {
    method: usize,
    started: Instant,
}

impl RpcCounters {
    pub fn begin(&self, method: &str) -> RpcTimer {
        let method = METHODS.binary_search(&method).unwrap_or(METHODS.len());
        RpcTimer { method, started: Instant::now() }
    }

    pub fn end(&self, timer: &RpcTimer, code: u32) {
        let (ok, seconds) = &self.answered[timer.method];
        seconds.inner().add(timer.started.elapsed());
        if code == 0 {
            ok.inc();
            return;
        }
        let method = METHODS.get(timer.method).copied().unwrap_or(OTHER);
        let code = CODES.get(code as usize).copied().unwrap_or("unknown");
        self.calls.get_or_create(&CallLabels { method, code }).inc();
    }

    pub fn total(&self) -> u64 {
        self.answered.iter().map(|(ok, _)| ok.get()).sum()
    }
}

/// Collectives of a rank.
#[derive(Debug)]
pub struct CollectiveCounters {
    runs: Family<KindLabels, Counter>,
    bytes: Counter,
    seconds: Histogram,
    pub(crate) count: Counter,
    pub(crate) run_seconds: Seconds,
    pub(crate) ranks: Seconds,
    pub(crate) queue: Seconds,
}

impl CollectiveCounters {
    /// A collective has run. `waited` is how long its tensor waited for other ranks, and `queued`
    /// how long the decision to run it waited.
    pub fn ran(
        &self,
        kind: &'static str,
        bytes: u64,
        run: Duration,
        waited: Duration,
        queued: Duration,
    ) {
        self.runs.get_or_create(&KindLabels { kind }).inc();
        self.count.inc();
        self.bytes.inc_by(bytes);
        self.seconds.observe(run.as_secs_f64());
        self.run_seconds.inner().add(run);
        self.ranks.inner().add(waited);
        self.queue.inner().add(queued);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// All counters of a task.
#[derive(Debug)]
pub(crate) struct Counters {
    pub steps: Counter,
    pub failed_steps: Counter,
    pub step_seconds: Histogram,
    pub parts: Counter,
    pub failed_parts: Counter,
    pub part_seconds: Histogram,
    pub sessions: Gauge,
    pub opened_sessions: Counter,
    pub sent_link: Counter,
    pub sent_grpc: Counter,
    pub received_link: Counter,
    pub received_grpc: Counter,
    pub wait_tensor: Seconds,
    pub rpcs: RpcCounters,
    pub open_connections: Gauge,
    pub grpc_connections: Counter,
    pub link_connections: Counter,
    pub http_connections: Counter,
    pub refusals: Counter,
    pub collectives: CollectiveCounters,
    pub epoch: Gauge,
    pub ranks: Gauge,
    pub recoveries: Counter,
    pub session_memory: Gauge,
    pub gpu_memory: Family<GpuLabels, Gauge>,
    pub gpu_limit: Family<GpuLabels, Gauge>,
    pub slowest_rank: Gauge,
    pub slowest_lag: Gauge<f64, AtomicU64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct GpuLabels {
    pub gpu: String,
}

/// From 50 microseconds to two minutes, about three to a factor of ten.
fn times() -> Histogram {
    const BOUNDS: [f64; 18] = [
        5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
        10.0, 30.0, 120.0,
    ];
    Histogram::new(BOUNDS)
}

/// Makes the counters of a task and registers them.
pub(crate) fn register(
    registry: &mut Registry,
    job: &str,
    task: Arc<AtomicU32>,
    started: f64,
) -> (Counters, PhaseSeconds) {
    registry.register_collector(Box::new(ProcessCollector { started }));
    let r = registry.sub_registry_with_prefix("ferroflow");
    let place = TaskPlace { job: job.into(), task };
    r.register("task", "The task that this process serves", place);

    let results = |family: &Family<ResultLabels, Counter>| {
        let one = |result| family.get_or_create(&ResultLabels { result }).clone();
        (one("ok"), one("failed"))
    };
    let steps = Family::default();
    r.register("steps", "Steps of clients or of this rank", steps.clone());
    let (steps, failed_steps) = results(&steps);
    let step_seconds = times();
    let help = "Time of a step, from the request to the answer";
    r.register_with_unit("step", help, Unit::Seconds, step_seconds.clone());
    let parts = Family::default();
    r.register("step_parts", "Parts of steps that ran on this task", parts.clone());
    let (parts, failed_parts) = results(&parts);
    let part_seconds = times();
    let help = "Time of a part of a step on this task";
    r.register_with_unit("step_part", help, Unit::Seconds, part_seconds.clone());

    let family = Family::<PhaseLabels, Seconds>::default();
    let one = |phase| family.get_or_create(&PhaseLabels { phase }).clone();
    let phases = PhaseSeconds::new(PHASES.map(one));
    r.register_with_unit("phase", "Time of steps by phase", Unit::Seconds, family.clone());

    let sessions = Gauge::default();
    r.register("sessions", "Open sessions", sessions.clone());
    let opened_sessions = Counter::default();
    r.register("opened_sessions", "Sessions that were opened", opened_sessions.clone());

    let paths = |family: &Family<PathLabels, Counter>, path| {
        family.get_or_create(&PathLabels { path }).clone()
    };
    let sent = Family::default();
    r.register_with_unit("sent", "Bytes to other tasks and clients", Unit::Bytes, sent.clone());
    let received = Family::default();
    let help = "Bytes of other tasks and clients";
    r.register_with_unit("received", help, Unit::Bytes, received.clone());

    let waits = Family::<CauseLabels, Seconds>::default();
    let help = "Time that values or tensors waited, by cause. Waits overlap";
    r.register_with_unit("wait", help, Unit::Seconds, waits.clone());
    let wait = |cause| waits.get_or_create(&CauseLabels { cause }).clone();

    let calls = Family::<CallLabels, Counter>::default();
    r.register("rpcs", "Answered calls", calls.clone());
    let seconds = Family::<MethodLabels, Seconds>::default();
    r.register_with_unit("rpc", "Time of answered calls", Unit::Seconds, seconds.clone());
    let answered = METHODS.iter().copied().chain([OTHER]).map(|method| {
        let ok = calls.get_or_create(&CallLabels { method, code: CODES[0] }).clone();
        (ok, seconds.get_or_create(&MethodLabels { method }).clone())
    });
    let rpcs = RpcCounters { answered: answered.collect(), calls: calls.clone() };

    let open_connections = Gauge::default();
    r.register("connections", "Open connections of clients and tasks", open_connections.clone());
    let accepted = Family::<KindLabels, Counter>::default();
    r.register("accepted_connections", "Connections that were let in", accepted.clone());
    let accept = |kind| accepted.get_or_create(&KindLabels { kind }).clone();
    let refusals = Counter::default();
    r.register("refused_connections", "Connections that were refused", refusals.clone());

    let runs = Family::<KindLabels, Counter>::default();
    r.register("collectives", "Collectives that this rank has run", runs.clone());
    // A family without values would be left out.
    drop(runs.get_or_create(&KindLabels { kind: "all-reduce" }));
    let seconds = times();
    let help = "Time of a collective on this rank, without waiting for other ranks";
    r.register_with_unit("collective", help, Unit::Seconds, seconds.clone());
    let bytes = paths(&sent, "collective");
    let collectives = CollectiveCounters {
        runs,
        bytes,
        seconds,
        count: Counter::default(),
        run_seconds: Seconds::default(),
        ranks: wait("ranks"),
        queue: wait("queue"),
    };

    let epoch = Gauge::default();
    r.register("elastic_epoch", "Epoch of the elastic job", epoch.clone());
    let ranks = Gauge::default();
    r.register("ranks", "Ranks of the job at present", ranks.clone());
    let recoveries = Counter::default();
    r.register("recoveries", "Recoveries after lost tasks or ranks", recoveries.clone());
    let session_memory = Gauge::default();
    let help = "Bytes of tensors that sessions hold";
    r.register_with_unit("session_memory", help, Unit::Bytes, session_memory.clone());
    let gpu_memory = Family::default();
    let help = "Bytes of GPU memory that tensors use";
    r.register_with_unit("gpu_memory_used", help, Unit::Bytes, gpu_memory.clone());
    let gpu_limit = Family::default();
    let help = "Bytes of GPU memory that tensors may use";
    r.register_with_unit("gpu_memory_limit", help, Unit::Bytes, gpu_limit.clone());
    let slowest_rank = Gauge::<i64>::default();
    slowest_rank.set(-1);
    let help = "Rank that the others have waited for longest, as rank 0 sees it; -1 if none";
    r.register("straggler_rank", help, slowest_rank.clone());
    let slowest_lag = Gauge::default();
    let help = "Time that the first rank waited for the straggler, in sum";
    r.register_with_unit("straggler_lag", help, Unit::Seconds, slowest_lag.clone());

    let counters = Counters {
        steps,
        failed_steps,
        step_seconds,
        parts,
        failed_parts,
        part_seconds,
        sessions,
        opened_sessions,
        sent_link: paths(&sent, "link"),
        sent_grpc: paths(&sent, "grpc"),
        received_link: paths(&received, "link"),
        received_grpc: paths(&received, "grpc"),
        wait_tensor: wait("tensor"),
        rpcs,
        open_connections,
        grpc_connections: accept("grpc"),
        link_connections: accept("link"),
        http_connections: accept("http"),
        refusals,
        collectives,
        epoch,
        ranks,
        recoveries,
        session_memory,
        gpu_memory,
        gpu_limit,
        slowest_rank,
        slowest_lag,
    };
    (counters, phases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_sorted_for_the_search() {
        assert!(METHODS.is_sorted());
    }
}
