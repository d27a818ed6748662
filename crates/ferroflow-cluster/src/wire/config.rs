//! What a client's ConfigProto means to us.

use ferroflow_core::{Result, bail, ensure};
use ferroflow_graph::passes::CostModel;
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::{CostRuns, Placement, SessionOptions};
use pb::attr_value::Value;
use pb::rewriter_config::CustomGraphOptimizer;

/// The graph optimizer by whose name a client asks for placement by cost. TensorFlow's servers skip
/// optimizers that they do not know.
const COST_PLACEMENT: &str = "cost_placement";

/// Session options out of a ConfigProto; refuses what a distributed session cannot do.
pub(crate) fn session_options(config: &pb::ConfigProto) -> Result<SessionOptions> {
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

/// How fast the client says that devices and links are: `flops`, `memory` (bytes a second), `latency`
/// (seconds) and `bandwidth` (bytes a second).
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
    fn placement_by_cost_is_asked_for_by_name() {
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
    fn the_rest_is_placed_as_tensorflow_does() {
        let plain = session_options(&pb::ConfigProto::default()).unwrap();
        assert!(matches!(plain.placement, Placement::First));
        let graph = pb::GraphOptions { place_pruned_graph: true, ..Default::default() };
        let config = pb::ConfigProto { graph_options: Some(graph), ..Default::default() };
        let pruned = session_options(&config).unwrap();
        assert!(matches!(pruned.placement, Placement::FirstNeeded));
    }
}
