//! The session configuration: what a client's `ConfigProto` means to us.

use crate::client::ConnectOptions;
use crate::messages::{ClusterDescription, JobDescription};
use ferroflow_core::{Result, bail, ensure, err};
use ferroflow_graph::passes::CostModel;
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::{CostRuns, Placement, SessionOptions};
use pb::attr_value::Value;
use pb::rewriter_config::CustomGraphOptimizer;
use prost::Message;

/// The name of the graph optimizer with which a client asks for placement by cost. TensorFlow's
/// servers skip unknown optimizers.
const COST_PLACEMENT: &str = "cost_placement";

/// A client's session configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionConfig {
    /// Only tasks that one of these matches belong to the session; all if there is none.
    pub device_filters: Vec<String>,
    /// Variables and queues belong to the session alone.
    pub isolate_state: bool,
    /// Graphs run as they were built.
    pub disable_optimizer: bool,
    /// Receives are scheduled by estimated costs.
    pub enable_recv_scheduling: bool,
    /// The cluster that the client describes in place of the server's own.
    pub cluster: Option<ClusterDescription>,
    /// Sessions of a cluster that a client describes share variables all the same.
    pub shares_described_state: bool,
    /// The task that orders the session's collectives, if the client names one.
    pub collective_leader: Option<String>,
    /// The whole message, for the workers that it is passed on to.
    message: pb::ConfigProto,
}

impl SessionConfig {
    pub(super) fn new(message: pb::ConfigProto) -> SessionConfig {
        let graph = message.graph_options.as_ref();
        let experimental = message.experimental.as_ref();
        let leader = experimental.map(|e| e.collective_group_leader.clone());
        SessionConfig {
            device_filters: message.device_filters.clone(),
            isolate_state: message.isolate_session_state,
            disable_optimizer: disables_optimizer(graph),
            enable_recv_scheduling: graph.is_some_and(|o| o.enable_recv_scheduling),
            cluster: message.cluster_def.as_ref().and_then(described),
            shares_described_state: experimental
                .is_some_and(|e| e.share_session_state_in_clusterspec_propagation),
            collective_leader: leader.filter(|l| !l.is_empty()),
            message,
        }
    }

    pub(super) fn into_proto(self) -> pb::ConfigProto {
        self.message
    }

    /// The configuration that a client of ours sends.
    pub(super) fn of_client(options: &ConnectOptions) -> Result<pb::ConfigProto> {
        let mut config = match &options.config {
            None => pb::ConfigProto { allow_soft_placement: true, ..Default::default() },
            Some(config) => pb::ConfigProto::decode(config.clone())
                .map_err(|e| err!(InvalidArgument, "malformed ConfigProto: {e}"))?,
        };
        config.device_filters = options.device_filters.clone();
        config.isolate_session_state = options.isolate_state;
        if let Some(placement) = placement_options(&options.placement) {
            config.graph_options = Some(placement);
        }
        Ok(config)
    }
}

pub(super) fn disables_optimizer(graph: Option<&pb::GraphOptions>) -> bool {
    graph.and_then(|o| o.rewrite_options.as_ref()).is_some_and(|r| r.disable_meta_optimizer)
}

/// A cluster with at least one job.
pub(super) fn described(cluster: &pb::ClusterDef) -> Option<ClusterDescription> {
    let job =
        |job: &pb::JobDef| JobDescription { name: job.name.clone(), tasks: job.tasks.clone() };
    let jobs: Vec<JobDescription> = cluster.job.iter().map(job).collect();
    (!jobs.is_empty()).then_some(ClusterDescription { jobs })
}

pub(super) fn cluster_to_proto(cluster: ClusterDescription) -> pb::ClusterDef {
    let job = |job: JobDescription| pb::JobDef { name: job.name, tasks: job.tasks };
    pb::ClusterDef { job: cluster.jobs.into_iter().map(job).collect() }
}

/// What a configuration says about steps. Refuses what a distributed session cannot do.
pub(super) fn session_options(config: &pb::ConfigProto) -> Result<SessionOptions> {
    ensure!(
        !config.use_per_session_threads && config.session_inter_op_thread_pool.is_empty(),
        InvalidArgument,
        "Distributed session does not support session thread pool options."
    );
    let graph = config.graph_options.clone().unwrap_or_default();
    let rewrite = graph.rewrite_options.unwrap_or_default();
    let by_cost = rewrite.custom_optimizers.iter().find(|o| o.name == COST_PLACEMENT);
    let placement = match by_cost {
        Some(wanted) => Placement::ByCost(Box::new(cost_model(wanted)?)),
        None if graph.place_pruned_graph => Placement::FirstNeeded,
        None => Placement::First,
    };
    Ok(SessionOptions {
        isolate_state: config.isolate_session_state,
        allow_soft_placement: config.allow_soft_placement,
        log_device_placement: config.log_device_placement,
        disable_optimizer: rewrite.disable_meta_optimizer,
        placement,
        costs: CostRuns { every: graph.build_cost_model, after: graph.build_cost_model_after },
    })
}

/// How a client asks for a placement; none for the default one.
fn placement_options(placement: &Placement) -> Option<pb::GraphOptions> {
    let mut options = pb::GraphOptions::default();
    match placement {
        Placement::First => return None,
        Placement::FirstNeeded => options.place_pruned_graph = true,
        Placement::ByCost(model) => {
            let parameter = |name: &str, x: f64| {
                (name.to_string(), pb::AttrValue { value: Some(Value::F(x as f32)) })
            };
            let parameters = [
                parameter("flops", model.flops),
                parameter("memory", model.memory),
                parameter("latency", model.link.latency),
                parameter("bandwidth", model.link.bandwidth),
            ];
            let optimizer = CustomGraphOptimizer {
                name: COST_PLACEMENT.into(),
                parameter_map: parameters.into_iter().collect(),
            };
            options.rewrite_options = Some(pb::RewriterConfig {
                custom_optimizers: vec![optimizer],
                ..Default::default()
            });
        }
    }
    Some(options)
}

/// The client's parameters of the cost model: `flops`, `memory` (bytes per second), `latency`
/// (seconds) and `bandwidth` (bytes per second).
fn cost_model(wanted: &CustomGraphOptimizer) -> Result<CostModel> {
    let mut model = CostModel::default();
    for (name, value) in &wanted.parameter_map {
        let number = match value.value {
            Some(Value::F(x)) => f64::from(x),
            Some(Value::I(n)) => n as f64,
            _ => bail!(InvalidArgument, "{COST_PLACEMENT}: '{name}' is not a number"),
        };
        let known = match name.as_str() {
            "flops" => &mut model.flops,
            "memory" => &mut model.memory,
            "latency" => &mut model.link.latency,
            "bandwidth" => &mut model.link.bandwidth,
            _ => bail!(InvalidArgument, "{COST_PLACEMENT} has no parameter '{name}'"),
        };
        ensure!(
            number.is_finite() && number > 0.0,
            InvalidArgument,
            "{COST_PLACEMENT}: '{name}' is {number}, not a positive number"
        );
        *known = number;
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking_for(parameters: &[(&str, Value)]) -> pb::ConfigProto {
        let parameter = |(name, value): &(&str, Value)| {
            (name.to_string(), pb::AttrValue { value: Some(value.clone()) })
        };
        let optimizer = CustomGraphOptimizer {
            name: COST_PLACEMENT.into(),
            parameter_map: parameters.iter().map(parameter).collect(),
        };
        let rewrite =
            pb::RewriterConfig { custom_optimizers: vec![optimizer], ..Default::default() };
        let graph = pb::GraphOptions { rewrite_options: Some(rewrite), ..Default::default() };
        pb::ConfigProto { graph_options: Some(graph), ..Default::default() }
    }

    #[test]
    fn placement_by_cost_is_an_optimizer_name() {
        let options = session_options(&asking_for(&[("latency", Value::F(0.5))])).unwrap();
        let Placement::ByCost(model) = options.placement else { panic!("{options:?}") };
        assert_eq!(model.link.latency, 0.5);
        assert_eq!(model.flops, CostModel::default().flops);
        for wrong in
            [("speed", Value::F(1.0)), ("flops", Value::F(-1.0)), ("flops", Value::B(true))]
        {
            assert!(session_options(&asking_for(&[wrong])).is_err());
        }
    }

    #[test]
    fn default_placement_is_tensorflows() {
        let plain = session_options(&pb::ConfigProto::default()).unwrap();
        assert!(matches!(plain.placement, Placement::First));
        let graph = pb::GraphOptions { place_pruned_graph: true, ..Default::default() };
        let config = pb::ConfigProto { graph_options: Some(graph), ..Default::default() };
        let pruned = session_options(&config).unwrap();
        assert!(matches!(pruned.placement, Placement::FirstNeeded));
    }
}
