//! What a client's ConfigProto means to us.

use ferroflow_core::{Result, ensure};
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::SessionOptions;

/// Session options out of a ConfigProto; refuses what a distributed session cannot do.
pub(crate) fn session_options(config: &pb::ConfigProto) -> Result<SessionOptions> {
    ensure!(
        !config.use_per_session_threads && config.session_inter_op_thread_pool.is_empty(),
        InvalidArgument,
        "Distributed session does not support session thread pool options."
    );
    let graph = config.graph_options.clone().unwrap_or_default();
    let disabled =
        graph.rewrite_options.as_ref().is_some_and(|rewrite| rewrite.disable_meta_optimizer);
    Ok(SessionOptions {
        isolate_state: config.isolate_session_state,
        allow_soft_placement: config.allow_soft_placement,
        log_device_placement: config.log_device_placement,
        disable_optimizer: disabled,
    })
}
