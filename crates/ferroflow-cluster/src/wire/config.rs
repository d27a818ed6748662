//! The session configuration, from a client's `ConfigProto`.

use crate::client::ConnectOptions;
use crate::messages::{ClusterDescription, JobDescription};
use crate::spec::ClusterSpec;
use ferroflow_core::{DType, Result, bail, ensure, err};
use ferroflow_graph::passes::{CostModel, MixedPrecision, Rewrites};
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::{CostRuns, Placement, SessionOptions};
use pb::attr_value::Value;
use pb::optimizer_options::Level;
use pb::rewriter_config::{CustomGraphOptimizer, Toggle};
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
    /// The optimization of graphs.
    pub rewrites: Rewrites,
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
            rewrites: rewrites_of(graph),
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
        if let Some(cluster) = &options.cluster {
            let experimental = config.experimental.get_or_insert_default();
            experimental.share_session_state_in_clusterspec_propagation = true;
            config.cluster_def = Some(cluster_def(cluster));
        }
        if let Some(placement) = placement_options(&options.placement) {
            config.graph_options = Some(placement);
        }
        Ok(config)
    }
}

fn cluster_def(cluster: &ClusterSpec) -> pb::ClusterDef {
    let mut job: Vec<pb::JobDef> = Vec::new();
    for (name, index, address) in cluster.tasks() {
        if job.last().is_none_or(|last| last.name != name) {
            job.push(pb::JobDef { name: name.into(), ..Default::default() });
        }
        if let (Some(job), Ok(index)) = (job.last_mut(), i32::try_from(index)) {
            job.tasks.insert(index, address.into());
        }
    }
    pb::ClusterDef { job }
}

/// The optimization that a client requests. Each of TensorFlow's optimizers that is off turns off
/// our passes that do the same.
pub(super) fn rewrites_of(graph: Option<&pb::GraphOptions>) -> Rewrites {
    let Some(graph) = graph else { return Rewrites::ALL };
    let level = graph.optimizer_options.as_ref().map(|options| options.opt_level());
    let rewrite = graph.rewrite_options.clone().unwrap_or_default();
    if level == Some(Level::L0) || rewrite.disable_meta_optimizer {
        return Rewrites::NONE;
    }
    let is_on = |toggle: Toggle| toggle != Toggle::Off;
    Rewrites {
        folds: is_on(rewrite.constant_folding()),
        removes_identities: is_on(rewrite.dependency_optimization()),
        removes_involutions: is_on(rewrite.arithmetic_optimization()),
        merges: is_on(rewrite.common_subgraph_elimination()),
        fuses: is_on(rewrite.remapping()),
        mixed_precision: mixed_precision(&rewrite),
    }
}

/// The one of TensorFlow's mixed precision optimizers that is on, if any.
fn mixed_precision(rewrite: &pb::RewriterConfig) -> Option<MixedPrecision> {
    let half = |on_cpu| MixedPrecision { dtype: DType::Half, on_cpu };
    let bfloat16 = MixedPrecision { dtype: DType::BFloat16, on_cpu: true };
    let is_on = |toggle: Toggle| toggle == Toggle::On;
    if is_on(rewrite.auto_mixed_precision()) {
        return Some(half(false));
    }
    if is_on(rewrite.auto_mixed_precision_onednn_bfloat16())
        || is_on(rewrite.auto_mixed_precision_mkl())
    {
        return Some(bfloat16);
    }
    is_on(rewrite.auto_mixed_precision_cpu()).then(|| half(true))
}

/// The fields of a configuration that the client has set and that have no effect here.
fn unused_fields(config: &pb::ConfigProto) -> Vec<&'static str> {
    let graph = config.graph_options.clone().unwrap_or_default();
    let level = graph.optimizer_options.unwrap_or_default();
    let rewrite = graph.rewrite_options.clone().unwrap_or_default();
    let rpc = config.rpc_options.clone().unwrap_or_default();
    let experimental = config.experimental.clone().unwrap_or_default();
    let is_set = |toggle: Toggle| toggle != Toggle::Default;
    let only_off = |toggle: Toggle| !matches!(toggle, Toggle::Default | Toggle::Off | Toggle::On);
    let fields = [
        (config.intra_op_parallelism_threads != 0, "intra_op_parallelism_threads"),
        (config.inter_op_parallelism_threads != 0, "inter_op_parallelism_threads"),
        (!config.device_count.is_empty(), "device_count"),
        (config.placement_period != 0, "placement_period"),
        (config.gpu_options.as_ref().is_some_and(|g| *g != Default::default()), "gpu_options"),
        (!rpc.compression_algorithm.is_empty(), "rpc_options.compression_algorithm"),
        (rpc.num_channels_per_target > 1, "rpc_options.num_channels_per_target"),
        (rpc.cache_rpc_response, "rpc_options.cache_rpc_response"),
        (graph.infer_shapes, "graph_options.infer_shapes"),
        (graph.enable_bfloat16_sendrecv, "graph_options.enable_bfloat16_sendrecv"),
        (graph.timeline_step != 0, "graph_options.timeline_step"),
        (
            level.global_jit_level() as i32 > 0 || level.cpu_global_jit,
            "graph_options.optimizer_options.global_jit_level",
        ),
        (
            level.max_folded_constant_in_bytes != 0,
            "graph_options.optimizer_options.max_folded_constant_in_bytes",
        ),
        (only_off(rewrite.constant_folding()), "rewrite_options.constant_folding"),
        (only_off(rewrite.remapping()), "rewrite_options.remapping"),
        (is_set(rewrite.layout_optimizer()), "rewrite_options.layout_optimizer"),
        (only_off(rewrite.arithmetic_optimization()), "rewrite_options.arithmetic_optimization"),
        (is_set(rewrite.loop_optimization()), "rewrite_options.loop_optimization"),
        (is_set(rewrite.function_optimization()), "rewrite_options.function_optimization"),
        (is_set(rewrite.shape_optimization()), "rewrite_options.shape_optimization"),
        (is_set(rewrite.debug_stripper()), "rewrite_options.debug_stripper"),
        (
            is_set(rewrite.scoped_allocator_optimization()),
            "rewrite_options.scoped_allocator_optimization",
        ),
        (is_set(rewrite.pin_to_host_optimization()), "rewrite_options.pin_to_host_optimization"),
        (rewrite.memory_optimization != 0, "rewrite_options.memory_optimization"),
        (rewrite.disable_model_pruning, "rewrite_options.disable_model_pruning"),
        (rewrite.auto_parallel.as_ref().is_some_and(|p| p.enable), "rewrite_options.auto_parallel"),
        (!rewrite.optimizers.is_empty(), "rewrite_options.optimizers"),
        (!experimental.executor_type.is_empty(), "experimental.executor_type"),
        (experimental.use_numa_affinity, "experimental.use_numa_affinity"),
        (experimental.collective_nccl, "experimental.collective_nccl"),
    ];
    fields.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
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

/// The options of steps in a configuration. Refuses options that a distributed session does not
/// have.
pub(super) fn session_options(config: &pb::ConfigProto) -> Result<SessionOptions> {
    ensure!(
        !config.use_per_session_threads && config.session_inter_op_thread_pool.is_empty(),
        InvalidArgument,
        "Distributed session does not support session thread pool options."
    );
    let unused = unused_fields(config);
    if !unused.is_empty() {
        let fields = unused.join(", ");
        tracing::warn!("fields of the session's ConfigProto without an effect: {fields}");
    }
    let graph = config.graph_options.clone().unwrap_or_default();
    let rewrites = rewrites_of(Some(&graph));
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
        disable_optimizer: rewrites == Rewrites::NONE,
        rewrites,
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
            let mut parameters = vec![
                parameter("latency", model.link.latency),
                parameter("bandwidth", model.link.bandwidth),
            ];
            if !model.measured_devices {
                parameters.push(parameter("flops", model.flops));
                parameters.push(parameter("memory", model.memory));
            }
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
/// (seconds) and `bandwidth` (bytes per second). The first two apply to all devices, which are then
/// not measured.
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
        model.measured_devices &= !matches!(name.as_str(), "flops" | "memory");
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
    fn optimizers_that_are_off_turn_off_passes() {
        let rewrites = |rewrite: pb::RewriterConfig| {
            let graph = pb::GraphOptions { rewrite_options: Some(rewrite), ..Default::default() };
            rewrites_of(Some(&graph))
        };
        let off = Toggle::Off as i32;
        assert_eq!(rewrites(Default::default()), Rewrites::ALL);
        let fold = pb::RewriterConfig { constant_folding: off, ..Default::default() };
        assert_eq!(rewrites(fold), Rewrites { folds: false, ..Rewrites::ALL });
        let fuse = pb::RewriterConfig { remapping: off, ..Default::default() };
        assert_eq!(rewrites(fuse), Rewrites { fuses: false, ..Rewrites::ALL });
        let simplify = pb::RewriterConfig { arithmetic_optimization: off, ..Default::default() };
        let want = Rewrites { removes_involutions: false, ..Rewrites::ALL };
        assert_eq!(rewrites(simplify), want);
        let options = pb::OptimizerOptions { opt_level: Level::L0 as i32, ..Default::default() };
        let graph = pb::GraphOptions { optimizer_options: Some(options), ..Default::default() };
        assert_eq!(rewrites_of(Some(&graph)), Rewrites::NONE);
    }

    #[test]
    fn fields_without_an_effect_are_named() {
        assert!(unused_fields(&pb::ConfigProto::default()).is_empty());
        let rewrite = pb::RewriterConfig {
            layout_optimizer: Toggle::Off as i32,
            constant_folding: Toggle::Off as i32,
            ..Default::default()
        };
        let config = pb::ConfigProto {
            intra_op_parallelism_threads: 3,
            allow_soft_placement: true,
            graph_options: Some(pb::GraphOptions {
                rewrite_options: Some(rewrite),
                ..Default::default()
            }),
            ..Default::default()
        };
        let named = unused_fields(&config);
        assert_eq!(named, ["intra_op_parallelism_threads", "rewrite_options.layout_optimizer"]);
    }

    #[test]
    fn placement_by_cost_is_an_optimizer_name() {
        let options = session_options(&asking_for(&[("latency", Value::F(0.5))])).unwrap();
        let Placement::ByCost(model) = options.placement else { panic!("{options:?}") };
        assert_eq!(model.link.latency, 0.5);
        assert_eq!(model.flops, CostModel::default().flops);
        assert!(model.measured_devices);
        let options = session_options(&asking_for(&[("flops", Value::F(1e9))])).unwrap();
        let Placement::ByCost(model) = options.placement else { panic!("{options:?}") };
        assert!(!model.measured_devices, "the client has said how fast they are");
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
