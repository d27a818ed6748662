//! Counters of one task or rank, as Prometheus text and as JSON for the dashboard.
//!
//! [`TaskMetrics`] is a value that a server or an engine gets; nothing is global. Counting costs a
//! few atomic additions. Text is made only for a request.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod families;
mod lag;
mod peers;
mod phases;
mod process;
mod sample;
mod seconds;
mod snapshot;
mod steps;
mod task;
mod text;

pub use families::{CollectiveCounters, RpcTimer};
pub use lag::RankLag;
pub use peers::PeerCounters;
pub use phases::{PHASES, Phase, PhaseSeconds};
pub use sample::{GpuSample, ServerSample};
pub use steps::{CountedSession, OpenConnection, StepEnd, StepRecord, StepTimer};
pub use task::TaskMetrics;
pub use text::MetricsFormat;
