//! Detects that the workers of a job are done: each has started, and none answers now.

use crate::error::from_status;
use crate::net::{NetworkConnector, SecureNetwork, SystemNetwork, TaskNetwork};
use crate::rpc::client::ChannelOptions;
use crate::rpc::{CallOptions, Channel, code};
use crate::spec::{ClusterSpec, task_name};
use bytes::Bytes;
use ferroflow_core::{DeviceName, Result, ensure};
use ferroflow_identity::Trust;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often the workers are probed.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long a worker may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A silent worker may be busy, stopped or cut off. After this long it counts as gone.
const SILENCE: Duration = Duration::from_secs(30);
/// All must be gone in this many rounds in a row: a worker that restarts is back by then.
const ROUNDS: u32 = 2;

const GET_STATUS: &str = "/tensorflow.WorkerService/GetStatus";

/// Completes when the tasks of the jobs `worker`, `chief` and `master` of `cluster` have answered
/// and are gone. Does not wait for those that have not answered within `start_limit` of the first.
/// An error if there is no such task.
pub async fn workers_done(cluster: &ClusterSpec, start_limit: Duration) -> Result<()> {
    workers_done_with(cluster, start_limit, &Trust::default()).await
}

/// [`workers_done`] with the credentials of a task.
pub async fn workers_done_with(
    cluster: &ClusterSpec,
    start_limit: Duration,
    trust: &Trust,
) -> Result<()> {
    let network = SecureNetwork::over(Arc::new(SystemNetwork), trust, cluster.roles());
    let is_worker = |job: &str| matches!(job, "worker" | "chief" | "master");
    let addresses = cluster.tasks().filter(|(job, _, _)| is_worker(job));
    let options = ChannelOptions { connect_timeout: TIMEOUT, ..ChannelOptions::default() };
    let workers: Result<Vec<Worker>> = addresses
        .map(|(job, index, address)| {
            Worker::at(task_name(job, index), address, options.clone(), &network)
        })
        .collect();
    let mut workers = workers?;
    ensure!(
        !workers.is_empty(),
        InvalidArgument,
        "the cluster has no job named worker, chief or master to wait for"
    );
    let mut first_seen = None;
    let mut rounds = 0;
    while rounds < ROUNDS {
        tokio::time::sleep(INTERVAL).await;
        join_all(workers.iter_mut().map(Worker::ask)).await;
        if first_seen.is_none() && workers.iter().any(|w| w.state != State::Unseen) {
            first_seen = Some(Instant::now());
        }
        let is_late = first_seen.is_some_and(|at| at.elapsed() > start_limit);
        let is_gone = |w: &Worker| match w.state {
            State::Unseen => is_late,
            State::Here(heard) => heard.elapsed() > SILENCE,
            State::Gone => true,
        };
        let all = first_seen.is_some() && workers.iter().all(is_gone);
        rounds = if all { rounds + 1 } else { 0 };
    }
    Ok(())
}

struct Worker {
    name: DeviceName,
    channel: Channel,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Unseen,
    /// When it last answered.
    Here(Instant),
    Gone,
}

impl Worker {
    fn at(
        name: DeviceName,
        address: &str,
        options: ChannelOptions,
        network: &Arc<dyn TaskNetwork>,
    ) -> Result<Worker> {
        let connector = NetworkConnector(network.clone());
        let channel = Channel::connect_with(address, options, connector);
        let channel = channel.map_err(|s| from_status(&s))?;
        Ok(Worker { name, channel, state: State::Unseen })
    }

    async fn ask(&mut self) {
        let call = self.channel.call(GET_STATUS, Bytes::new(), CallOptions::timeout(TIMEOUT));
        match call.await {
            Ok(_) => {
                if !matches!(self.state, State::Here(_)) {
                    tracing::info!("{} is there", self.name);
                }
                self.state = State::Here(Instant::now());
            }
            // The port is closed. A worker that hangs would be DEADLINE_EXCEEDED.
            Err(status)
                if status.code == code::UNAVAILABLE && matches!(self.state, State::Here(_)) =>
            {
                tracing::info!("{} is gone", self.name);
                self.state = State::Gone;
            }
            Err(_) => {}
        }
    }
}
