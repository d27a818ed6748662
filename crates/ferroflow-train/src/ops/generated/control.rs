//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::function::Function;
use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;
use ferroflow_core::Tensor;

/// The attributes of [`abort_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AbortOptions<'a> {
    /// `error_msg`: string, empty by default.
    pub error_msg: &'a str,
    /// `exit_without_error`: bool, `false` by default.
    pub exit_without_error: bool,
}

impl Default for AbortOptions<'_> {
    fn default() -> Self {
        AbortOptions { error_msg: "", exit_without_error: false }
    }
}

/// `Abort`: Fails the step; unlike TensorFlow's it never ends the process.
#[inline]
#[track_caller]
pub fn abort(g: &Graph) -> Operation {
    abort_with(g, AbortOptions::default())
}

/// [`abort()`] with other attributes.
#[inline]
#[track_caller]
pub fn abort_with(g: &Graph, options: AbortOptions<'_>) -> Operation {
    g.op("Abort")
        .attr("error_msg", options.error_msg)
        .attr("exit_without_error", options.exit_without_error)
        .operation()
}

/// The attributes of [`batch_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchOptions<'a> {
    /// `max_enqueued_batches`: int, `10` by default.
    pub max_enqueued_batches: i64,
    /// `allowed_batch_sizes`: list of ints, empty by default.
    pub allowed_batch_sizes: &'a [i64],
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `batching_queue`: string, empty by default.
    pub batching_queue: &'a str,
}

impl Default for BatchOptions<'_> {
    fn default() -> Self {
        BatchOptions {
            max_enqueued_batches: 10,
            allowed_batch_sizes: &[],
            container: "",
            shared_name: "",
            batching_queue: "",
        }
    }
}

/// `Batch`: Joins the inputs of calls that come at about the same time; the first call gets all.
///
/// Returns (`batched_tensors`, `batch_index`, `id`).
#[inline]
#[track_caller]
pub fn batch(
    g: &Graph,
    in_tensors: &[Output],
    num_batch_threads: i64,
    max_batch_size: i64,
    batch_timeout_micros: i64,
    grad_timeout_micros: i64,
) -> (Vec<Output>, Output, Output) {
    batch_with(
        g,
        in_tensors,
        num_batch_threads,
        max_batch_size,
        batch_timeout_micros,
        grad_timeout_micros,
        BatchOptions::default(),
    )
}

/// [`batch()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_with(
    g: &Graph,
    in_tensors: &[Output],
    num_batch_threads: i64,
    max_batch_size: i64,
    batch_timeout_micros: i64,
    grad_timeout_micros: i64,
    options: BatchOptions<'_>,
) -> (Vec<Output>, Output, Output) {
    let mut arguments = g
        .op("Batch")
        .list(in_tensors)
        .attr("num_batch_threads", num_batch_threads)
        .attr("max_batch_size", max_batch_size)
        .attr("batch_timeout_micros", batch_timeout_micros)
        .attr("grad_timeout_micros", grad_timeout_micros)
        .attr("max_enqueued_batches", options.max_enqueued_batches)
        .attr("allowed_batch_sizes", list(options.allowed_batch_sizes))
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("batching_queue", options.batching_queue)
        .outputs_by_argument();
    let batched_tensors = arguments.next_list();
    let batch_index = arguments.next_output();
    let id = arguments.next_output();
    (batched_tensors, batch_index, id)
}

/// The attributes of [`batch_function_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BatchFunctionOptions<'a> {
    /// `max_enqueued_batches`: int, `10` by default.
    pub max_enqueued_batches: i64,
    /// `allowed_batch_sizes`: list of ints, empty by default.
    pub allowed_batch_sizes: &'a [i64],
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `batching_queue`: string, empty by default.
    pub batching_queue: &'a str,
    /// `low_priority_max_batch_size`: int, `0` by default.
    pub low_priority_max_batch_size: i64,
    /// `low_priority_batch_timeout_micros`: int, `0` by default.
    pub low_priority_batch_timeout_micros: i64,
    /// `low_priority_allowed_batch_sizes`: list of ints, empty by default.
    pub low_priority_allowed_batch_sizes: &'a [i64],
    /// `low_priority_max_enqueued_batches`: int, `0` by default.
    pub low_priority_max_enqueued_batches: i64,
    /// `enable_large_batch_splitting`: bool, `false` by default.
    pub enable_large_batch_splitting: bool,
}

impl Default for BatchFunctionOptions<'_> {
    fn default() -> Self {
        BatchFunctionOptions {
            max_enqueued_batches: 10,
            allowed_batch_sizes: &[],
            container: "",
            shared_name: "",
            batching_queue: "",
            low_priority_max_batch_size: 0,
            low_priority_batch_timeout_micros: 0,
            low_priority_allowed_batch_sizes: &[],
            low_priority_max_enqueued_batches: 0,
            enable_large_batch_splitting: false,
        }
    }
}

/// `BatchFunction`: Calls `f` once for the inputs of calls that come at about the same time.
#[inline]
#[track_caller]
pub fn batch_function(
    g: &Graph,
    in_tensors: &[Output],
    captured_tensors: &[Output],
    f: &Function,
    num_batch_threads: i64,
    max_batch_size: i64,
    batch_timeout_micros: i64,
    tout: &[DType],
) -> Vec<Output> {
    batch_function_with(
        g,
        in_tensors,
        captured_tensors,
        f,
        num_batch_threads,
        max_batch_size,
        batch_timeout_micros,
        tout,
        BatchFunctionOptions::default(),
    )
}

/// [`batch_function()`] with other attributes.
#[inline]
#[track_caller]
pub fn batch_function_with(
    g: &Graph,
    in_tensors: &[Output],
    captured_tensors: &[Output],
    f: &Function,
    num_batch_threads: i64,
    max_batch_size: i64,
    batch_timeout_micros: i64,
    tout: &[DType],
    options: BatchFunctionOptions<'_>,
) -> Vec<Output> {
    g.op("BatchFunction")
        .list(in_tensors)
        .list(captured_tensors)
        .attr("f", f.reference())
        .attr("num_batch_threads", num_batch_threads)
        .attr("max_batch_size", max_batch_size)
        .attr("batch_timeout_micros", batch_timeout_micros)
        .attr("Tout", list(tout))
        .attr("max_enqueued_batches", options.max_enqueued_batches)
        .attr("allowed_batch_sizes", list(options.allowed_batch_sizes))
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("batching_queue", options.batching_queue)
        .attr("low_priority_max_batch_size", options.low_priority_max_batch_size)
        .attr("low_priority_batch_timeout_micros", options.low_priority_batch_timeout_micros)
        .attr("low_priority_allowed_batch_sizes", list(options.low_priority_allowed_batch_sizes))
        .attr("low_priority_max_enqueued_batches", options.low_priority_max_enqueued_batches)
        .attr("enable_large_batch_splitting", options.enable_large_batch_splitting)
        .list_outputs()
}

/// The attributes of [`case_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CaseOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for CaseOptions<'_> {
    fn default() -> Self {
        CaseOptions { output_shapes: &[] }
    }
}

/// `Case`: Calls the branch that `branch_index` picks.
#[inline]
#[track_caller]
pub fn case(
    branch_index: &Output,
    input: &[Output],
    tout: &[DType],
    branches: &[&Function],
) -> Vec<Output> {
    case_with(branch_index, input, tout, branches, CaseOptions::default())
}

/// [`case()`] with other attributes.
#[inline]
#[track_caller]
pub fn case_with(
    branch_index: &Output,
    input: &[Output],
    tout: &[DType],
    branches: &[&Function],
    options: CaseOptions<'_>,
) -> Vec<Output> {
    branch_index
        .graph()
        .op("Case")
        .input(branch_index)
        .list(input)
        .attr("Tout", list(tout))
        .attr("branches", list(branches))
        .attr("output_shapes", list(options.output_shapes))
        .list_outputs()
}

/// `Const`: A constant.
#[inline]
#[track_caller]
pub fn const_(g: &Graph, value: &Tensor, dtype: DType) -> Output {
    g.op("Const").attr("value", value.clone()).attr("dtype", dtype).output()
}

/// `ControlTrigger`: Runs after its control inputs, dead or alive.
#[inline]
#[track_caller]
pub fn control_trigger(g: &Graph) -> Operation {
    g.op("ControlTrigger").operation()
}

/// `DeviceIndex`: Where the kind of device it runs on is in a list of kinds.
#[inline]
#[track_caller]
pub fn device_index(g: &Graph, device_names: &[&str]) -> Output {
    g.op("DeviceIndex").attr("device_names", list(device_names)).output()
}

/// The attributes of [`enter_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct EnterOptions {
    /// `is_constant`: bool, `false` by default.
    pub is_constant: bool,
    /// `parallel_iterations`: int, `10` by default.
    pub parallel_iterations: i64,
}

impl Default for EnterOptions {
    fn default() -> Self {
        EnterOptions { is_constant: false, parallel_iterations: 10 }
    }
}

/// `Enter`: Brings a value into the loop `frame_name`.
#[inline]
#[track_caller]
pub fn enter(data: &Output, frame_name: &str) -> Output {
    enter_with(data, frame_name, EnterOptions::default())
}

/// [`enter()`] with other attributes.
#[inline]
#[track_caller]
pub fn enter_with(data: &Output, frame_name: &str, options: EnterOptions) -> Output {
    data.graph()
        .op("Enter")
        .input(data)
        .attr("frame_name", frame_name)
        .attr("is_constant", options.is_constant)
        .attr("parallel_iterations", options.parallel_iterations)
        .output()
}

/// `Exit`: Passes a value out of the loop, or to its next iteration.
#[inline]
#[track_caller]
pub fn exit(data: &Output) -> Output {
    data.graph().op("Exit").input(data).output()
}

/// `FakeParam`: A placeholder for a value that was not computed and that no node uses.
#[inline]
#[track_caller]
pub fn fake_param(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    g.op("FakeParam").attr("dtype", dtype).attr("shape", shape.clone()).output()
}

/// `For`: Applies `body` to a counter and its input, from `start` to `limit` by `delta`.
#[inline]
#[track_caller]
pub fn for_(
    start: &Output,
    limit: &Output,
    delta: &Output,
    input: &[Output],
    body: &Function,
) -> Vec<Output> {
    start
        .graph()
        .op("For")
        .input(start)
        .input(limit)
        .input(delta)
        .list(input)
        .attr("body", body.reference())
        .list_outputs()
}

/// `HostConst`: A constant in the memory of the host.
#[inline]
#[track_caller]
pub fn host_const(g: &Graph, value: &Tensor, dtype: DType) -> Output {
    g.op("HostConst").attr("value", value.clone()).attr("dtype", dtype).output()
}

/// `Identity`: Its input.
#[inline]
#[track_caller]
pub fn identity(input: &Output) -> Output {
    input.graph().op("Identity").input(input).output()
}

/// `IdentityN`: Its inputs.
#[inline]
#[track_caller]
pub fn identity_n(g: &Graph, input: &[Output]) -> Vec<Output> {
    g.op("IdentityN").list(input).list_outputs()
}

/// The attributes of [`if_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct IfOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for IfOptions<'_> {
    fn default() -> Self {
        IfOptions { output_shapes: &[] }
    }
}

/// `If`: Calls `then_branch` if `cond` is true, else `else_branch`.
#[inline]
#[track_caller]
pub fn if_(
    cond: &Output,
    input: &[Output],
    tout: &[DType],
    then_branch: &Function,
    else_branch: &Function,
) -> Vec<Output> {
    if_with(cond, input, tout, then_branch, else_branch, IfOptions::default())
}

/// [`if_()`] with other attributes.
#[inline]
#[track_caller]
pub fn if_with(
    cond: &Output,
    input: &[Output],
    tout: &[DType],
    then_branch: &Function,
    else_branch: &Function,
    options: IfOptions<'_>,
) -> Vec<Output> {
    cond.graph()
        .op("If")
        .input(cond)
        .list(input)
        .attr("Tout", list(tout))
        .attr("then_branch", then_branch.reference())
        .attr("else_branch", else_branch.reference())
        .attr("output_shapes", list(options.output_shapes))
        .list_outputs()
}

/// `IsTensorFloat32Enabled`: Whether products may round their factors to 19 bits: never here.
#[inline]
#[track_caller]
pub fn is_tensor_float32_enabled(g: &Graph) -> Output {
    g.op("IsTensorFloat32Enabled").output()
}

/// `LoopCond`: Whether a loop goes on.
#[inline]
#[track_caller]
pub fn loop_cond(input: &Output) -> Output {
    input.graph().op("LoopCond").input(input).output()
}

/// `Merge`: The first of its inputs that is not dead.
///
/// Returns (`output`, `value_index`).
#[inline]
#[track_caller]
pub fn merge(g: &Graph, inputs: &[Output]) -> (Output, Output) {
    let [output, value_index] = g.op("Merge").list(inputs).split();
    (output, value_index)
}

/// `NextIteration`: Passes a value out of the loop, or to its next iteration.
#[inline]
#[track_caller]
pub fn next_iteration(data: &Output) -> Output {
    data.graph().op("NextIteration").input(data).output()
}

/// `NoOp`: Nothing; orders other nodes.
#[inline]
#[track_caller]
pub fn no_op(g: &Graph) -> Operation {
    g.op("NoOp").operation()
}

/// The attributes of [`partitioned_call_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PartitionedCallOptions<'a> {
    /// `config`: string, empty by default.
    pub config: &'a str,
    /// `config_proto`: string, empty by default.
    pub config_proto: &'a str,
    /// `executor_type`: string, empty by default.
    pub executor_type: &'a str,
}

impl Default for PartitionedCallOptions<'_> {
    fn default() -> Self {
        PartitionedCallOptions { config: "", config_proto: "", executor_type: "" }
    }
}

/// `PartitionedCall`: Calls `f` with `args`.
#[inline]
#[track_caller]
pub fn partitioned_call(g: &Graph, args: &[Output], tout: &[DType], f: &Function) -> Vec<Output> {
    partitioned_call_with(g, args, tout, f, PartitionedCallOptions::default())
}

/// [`partitioned_call()`] with other attributes.
#[inline]
#[track_caller]
pub fn partitioned_call_with(
    g: &Graph,
    args: &[Output],
    tout: &[DType],
    f: &Function,
    options: PartitionedCallOptions<'_>,
) -> Vec<Output> {
    g.op("PartitionedCall")
        .list(args)
        .attr("Tout", list(tout))
        .attr("f", f.reference())
        .attr("config", options.config)
        .attr("config_proto", options.config_proto)
        .attr("executor_type", options.executor_type)
        .list_outputs()
}

/// The attributes of [`placeholder_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PlaceholderOptions {
    /// `shape`: shape, unknown by default.
    pub shape: PartialShape,
}

impl Default for PlaceholderOptions {
    fn default() -> Self {
        PlaceholderOptions { shape: PartialShape::unknown() }
    }
}

/// `Placeholder`: A value that must be fed.
#[inline]
#[track_caller]
pub fn placeholder(g: &Graph, dtype: DType) -> Output {
    placeholder_with(g, dtype, PlaceholderOptions::default())
}

/// [`placeholder()`] with other attributes.
#[inline]
#[track_caller]
pub fn placeholder_with(g: &Graph, dtype: DType, options: PlaceholderOptions) -> Output {
    g.op("Placeholder").attr("dtype", dtype).attr("shape", options.shape).output()
}

/// `PlaceholderV2`: A value that must be fed.
#[inline]
#[track_caller]
pub fn placeholder_v2(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    g.op("PlaceholderV2").attr("dtype", dtype).attr("shape", shape.clone()).output()
}

/// `PlaceholderWithDefault`: Its input, unless it is fed.
#[inline]
#[track_caller]
pub fn placeholder_with_default(input: &Output, shape: &PartialShape) -> Output {
    input.graph().op("PlaceholderWithDefault").input(input).attr("shape", shape.clone()).output()
}

/// The attributes of [`recv_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RecvOptions {
    /// `client_terminated`: bool, `false` by default.
    pub client_terminated: bool,
}

impl Default for RecvOptions {
    fn default() -> Self {
        RecvOptions { client_terminated: false }
    }
}

/// `Recv`: Waits for the tensor that the sending half of the transfer publishes.
#[inline]
#[track_caller]
pub fn recv(
    g: &Graph,
    tensor_type: DType,
    tensor_name: &str,
    send_device: &str,
    send_device_incarnation: i64,
    recv_device: &str,
) -> Output {
    recv_with(
        g,
        tensor_type,
        tensor_name,
        send_device,
        send_device_incarnation,
        recv_device,
        RecvOptions::default(),
    )
}

/// [`recv()`] with other attributes.
#[inline]
#[track_caller]
pub fn recv_with(
    g: &Graph,
    tensor_type: DType,
    tensor_name: &str,
    send_device: &str,
    send_device_incarnation: i64,
    recv_device: &str,
    options: RecvOptions,
) -> Output {
    g.op("Recv")
        .attr("tensor_type", tensor_type)
        .attr("tensor_name", tensor_name)
        .attr("send_device", send_device)
        .attr("send_device_incarnation", send_device_incarnation)
        .attr("recv_device", recv_device)
        .attr("client_terminated", options.client_terminated)
        .output()
}

/// The attributes of [`ref_enter_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RefEnterOptions {
    /// `is_constant`: bool, `false` by default.
    pub is_constant: bool,
    /// `parallel_iterations`: int, `10` by default.
    pub parallel_iterations: i64,
}

impl Default for RefEnterOptions {
    fn default() -> Self {
        RefEnterOptions { is_constant: false, parallel_iterations: 10 }
    }
}

/// `RefEnter`: Brings a value into the loop `frame_name`.
#[inline]
#[track_caller]
pub fn ref_enter(data: &Output, frame_name: &str) -> Output {
    ref_enter_with(data, frame_name, RefEnterOptions::default())
}

/// [`ref_enter()`] with other attributes.
#[inline]
#[track_caller]
pub fn ref_enter_with(data: &Output, frame_name: &str, options: RefEnterOptions) -> Output {
    data.graph()
        .op("RefEnter")
        .input(data)
        .attr("frame_name", frame_name)
        .attr("is_constant", options.is_constant)
        .attr("parallel_iterations", options.parallel_iterations)
        .output()
}

/// `RefExit`: Passes a value out of the loop, or to its next iteration.
#[inline]
#[track_caller]
pub fn ref_exit(data: &Output) -> Output {
    data.graph().op("RefExit").input(data).output()
}

/// `RefIdentity`: Its input, a reference.
#[inline]
#[track_caller]
pub fn ref_identity(input: &Output) -> Output {
    input.graph().op("RefIdentity").input(input).output()
}

/// `RefMerge`: The first of its inputs that is not dead.
///
/// Returns (`output`, `value_index`).
#[inline]
#[track_caller]
pub fn ref_merge(g: &Graph, inputs: &[Output]) -> (Output, Output) {
    let [output, value_index] = g.op("RefMerge").list(inputs).split();
    (output, value_index)
}

/// `RefNextIteration`: Passes a value out of the loop, or to its next iteration.
#[inline]
#[track_caller]
pub fn ref_next_iteration(data: &Output) -> Output {
    data.graph().op("RefNextIteration").input(data).output()
}

/// `RefSelect`: The reference that `index` picks.
#[inline]
#[track_caller]
pub fn ref_select(index: &Output, inputs: &[Output]) -> Output {
    index.graph().op("RefSelect").input(index).list(inputs).output()
}

/// `RefSwitch`: Passes `data` to the output that `pred` picks; the other one is dead.
///
/// Returns (`output_false`, `output_true`).
#[inline]
#[track_caller]
pub fn ref_switch(data: &Output, pred: &Output) -> (Output, Output) {
    let [output_false, output_true] = data.graph().op("RefSwitch").input(data).input(pred).split();
    (output_false, output_true)
}

/// `RemoteCall`: Calls `f` with `args` on the device `target`.
#[inline]
#[track_caller]
pub fn remote_call(target: &Output, args: &[Output], tout: &[DType], f: &Function) -> Vec<Output> {
    target
        .graph()
        .op("RemoteCall")
        .input(target)
        .list(args)
        .attr("Tout", list(tout))
        .attr("f", f.reference())
        .list_outputs()
}

/// The attributes of [`send_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// `client_terminated`: bool, `false` by default.
    pub client_terminated: bool,
}

impl Default for SendOptions {
    fn default() -> Self {
        SendOptions { client_terminated: false }
    }
}

/// `Send`: Publishes a tensor for the receiving half of the transfer.
#[inline]
#[track_caller]
pub fn send(
    tensor: &Output,
    tensor_name: &str,
    send_device: &str,
    send_device_incarnation: i64,
    recv_device: &str,
) -> Operation {
    send_with(
        tensor,
        tensor_name,
        send_device,
        send_device_incarnation,
        recv_device,
        SendOptions::default(),
    )
}

/// [`send()`] with other attributes.
#[inline]
#[track_caller]
pub fn send_with(
    tensor: &Output,
    tensor_name: &str,
    send_device: &str,
    send_device_incarnation: i64,
    recv_device: &str,
    options: SendOptions,
) -> Operation {
    tensor
        .graph()
        .op("Send")
        .input(tensor)
        .attr("tensor_name", tensor_name)
        .attr("send_device", send_device)
        .attr("send_device_incarnation", send_device_incarnation)
        .attr("recv_device", recv_device)
        .attr("client_terminated", options.client_terminated)
        .operation()
}

/// The attributes of [`stateful_partitioned_call_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatefulPartitionedCallOptions<'a> {
    /// `config`: string, empty by default.
    pub config: &'a str,
    /// `config_proto`: string, empty by default.
    pub config_proto: &'a str,
    /// `executor_type`: string, empty by default.
    pub executor_type: &'a str,
}

impl Default for StatefulPartitionedCallOptions<'_> {
    fn default() -> Self {
        StatefulPartitionedCallOptions { config: "", config_proto: "", executor_type: "" }
    }
}

/// `StatefulPartitionedCall`: Calls `f` with `args`.
#[inline]
#[track_caller]
pub fn stateful_partitioned_call(
    g: &Graph,
    args: &[Output],
    tout: &[DType],
    f: &Function,
) -> Vec<Output> {
    stateful_partitioned_call_with(g, args, tout, f, StatefulPartitionedCallOptions::default())
}

/// [`stateful_partitioned_call()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateful_partitioned_call_with(
    g: &Graph,
    args: &[Output],
    tout: &[DType],
    f: &Function,
    options: StatefulPartitionedCallOptions<'_>,
) -> Vec<Output> {
    g.op("StatefulPartitionedCall")
        .list(args)
        .attr("Tout", list(tout))
        .attr("f", f.reference())
        .attr("config", options.config)
        .attr("config_proto", options.config_proto)
        .attr("executor_type", options.executor_type)
        .list_outputs()
}

/// The attributes of [`stateless_case_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessCaseOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for StatelessCaseOptions<'_> {
    fn default() -> Self {
        StatelessCaseOptions { output_shapes: &[] }
    }
}

/// `StatelessCase`: Calls the branch that `branch_index` picks.
#[inline]
#[track_caller]
pub fn stateless_case(
    branch_index: &Output,
    input: &[Output],
    tout: &[DType],
    branches: &[&Function],
) -> Vec<Output> {
    stateless_case_with(branch_index, input, tout, branches, StatelessCaseOptions::default())
}

/// [`stateless_case()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_case_with(
    branch_index: &Output,
    input: &[Output],
    tout: &[DType],
    branches: &[&Function],
    options: StatelessCaseOptions<'_>,
) -> Vec<Output> {
    branch_index
        .graph()
        .op("StatelessCase")
        .input(branch_index)
        .list(input)
        .attr("Tout", list(tout))
        .attr("branches", list(branches))
        .attr("output_shapes", list(options.output_shapes))
        .list_outputs()
}

/// The attributes of [`stateless_if_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessIfOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
}

impl Default for StatelessIfOptions<'_> {
    fn default() -> Self {
        StatelessIfOptions { output_shapes: &[] }
    }
}

/// `StatelessIf`: Calls `then_branch` if `cond` is true, else `else_branch`.
#[inline]
#[track_caller]
pub fn stateless_if(
    cond: &Output,
    input: &[Output],
    tout: &[DType],
    then_branch: &Function,
    else_branch: &Function,
) -> Vec<Output> {
    stateless_if_with(cond, input, tout, then_branch, else_branch, StatelessIfOptions::default())
}

/// [`stateless_if()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_if_with(
    cond: &Output,
    input: &[Output],
    tout: &[DType],
    then_branch: &Function,
    else_branch: &Function,
    options: StatelessIfOptions<'_>,
) -> Vec<Output> {
    cond.graph()
        .op("StatelessIf")
        .input(cond)
        .list(input)
        .attr("Tout", list(tout))
        .attr("then_branch", then_branch.reference())
        .attr("else_branch", else_branch.reference())
        .attr("output_shapes", list(options.output_shapes))
        .list_outputs()
}

/// The attributes of [`stateless_while_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StatelessWhileOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
    /// `parallel_iterations`: int, `10` by default.
    pub parallel_iterations: i64,
}

impl Default for StatelessWhileOptions<'_> {
    fn default() -> Self {
        StatelessWhileOptions { output_shapes: &[], parallel_iterations: 10 }
    }
}

/// `StatelessWhile`: Applies `body` to its input again and again, as long as `cond` of it is true.
#[inline]
#[track_caller]
pub fn stateless_while(
    g: &Graph,
    input: &[Output],
    cond: &Function,
    body: &Function,
) -> Vec<Output> {
    stateless_while_with(g, input, cond, body, StatelessWhileOptions::default())
}

/// [`stateless_while()`] with other attributes.
#[inline]
#[track_caller]
pub fn stateless_while_with(
    g: &Graph,
    input: &[Output],
    cond: &Function,
    body: &Function,
    options: StatelessWhileOptions<'_>,
) -> Vec<Output> {
    g.op("StatelessWhile")
        .list(input)
        .attr("cond", cond.reference())
        .attr("body", body.reference())
        .attr("output_shapes", list(options.output_shapes))
        .attr("parallel_iterations", options.parallel_iterations)
        .list_outputs()
}

/// `Switch`: Passes `data` to the output that `pred` picks; the other one is dead.
///
/// Returns (`output_false`, `output_true`).
#[inline]
#[track_caller]
pub fn switch(data: &Output, pred: &Output) -> (Output, Output) {
    let [output_false, output_true] = data.graph().op("Switch").input(data).input(pred).split();
    (output_false, output_true)
}

/// `SymbolicGradient`: The gradient of `f`: from its arguments and the gradients of its results,
/// those of its arguments.
#[inline]
#[track_caller]
pub fn symbolic_gradient(g: &Graph, input: &[Output], tout: &[DType], f: &Function) -> Vec<Output> {
    g.op("SymbolicGradient")
        .list(input)
        .attr("Tout", list(tout))
        .attr("f", f.reference())
        .list_outputs()
}

/// `ToBool`: Whether a scalar is not zero or empty, or a larger tensor has elements.
#[inline]
#[track_caller]
pub fn to_bool(input: &Output) -> Output {
    input.graph().op("ToBool").input(input).output()
}

/// The attributes of [`unbatch_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnbatchOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for UnbatchOptions<'_> {
    fn default() -> Self {
        UnbatchOptions { container: "", shared_name: "" }
    }
}

/// `Unbatch`: The rows of a batch that belong to this call.
#[inline]
#[track_caller]
pub fn unbatch(
    batched_tensor: &Output,
    batch_index: &Output,
    id: &Output,
    timeout_micros: i64,
) -> Output {
    unbatch_with(batched_tensor, batch_index, id, timeout_micros, UnbatchOptions::default())
}

/// [`unbatch()`] with other attributes.
#[inline]
#[track_caller]
pub fn unbatch_with(
    batched_tensor: &Output,
    batch_index: &Output,
    id: &Output,
    timeout_micros: i64,
    options: UnbatchOptions<'_>,
) -> Output {
    batched_tensor
        .graph()
        .op("Unbatch")
        .input(batched_tensor)
        .input(batch_index)
        .input(id)
        .attr("timeout_micros", timeout_micros)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`unbatch_grad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnbatchGradOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for UnbatchGradOptions<'_> {
    fn default() -> Self {
        UnbatchGradOptions { container: "", shared_name: "" }
    }
}

/// `UnbatchGrad`: The gradient of Unbatch: collects the gradients of all calls of a batch.
#[inline]
#[track_caller]
pub fn unbatch_grad(
    original_input: &Output,
    batch_index: &Output,
    grad: &Output,
    id: &Output,
) -> Output {
    unbatch_grad_with(original_input, batch_index, grad, id, UnbatchGradOptions::default())
}

/// [`unbatch_grad()`] with other attributes.
#[inline]
#[track_caller]
pub fn unbatch_grad_with(
    original_input: &Output,
    batch_index: &Output,
    grad: &Output,
    id: &Output,
    options: UnbatchGradOptions<'_>,
) -> Output {
    original_input
        .graph()
        .op("UnbatchGrad")
        .input(original_input)
        .input(batch_index)
        .input(grad)
        .input(id)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`while_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct WhileOpOptions<'a> {
    /// `output_shapes`: list of shapes, empty by default.
    pub output_shapes: &'a [PartialShape],
    /// `parallel_iterations`: int, `10` by default.
    pub parallel_iterations: i64,
}

impl Default for WhileOpOptions<'_> {
    fn default() -> Self {
        WhileOpOptions { output_shapes: &[], parallel_iterations: 10 }
    }
}

/// `While`: Applies `body` to its input again and again, as long as `cond` of it is true.
#[inline]
#[track_caller]
pub fn while_(g: &Graph, input: &[Output], cond: &Function, body: &Function) -> Vec<Output> {
    while_with(g, input, cond, body, WhileOpOptions::default())
}

/// [`while_()`] with other attributes.
#[inline]
#[track_caller]
pub fn while_with(
    g: &Graph,
    input: &[Output],
    cond: &Function,
    body: &Function,
    options: WhileOpOptions<'_>,
) -> Vec<Output> {
    g.op("While")
        .list(input)
        .attr("cond", cond.reference())
        .attr("body", body.reference())
        .attr("output_shapes", list(options.output_shapes))
        .attr("parallel_iterations", options.parallel_iterations)
        .list_outputs()
}

/// `XlaIf`: Calls `then_branch` if `cond` is true, else `else_branch`.
#[inline]
#[track_caller]
pub fn xla_if(
    cond: &Output,
    inputs: &[Output],
    then_branch: &Function,
    else_branch: &Function,
    tout: &[DType],
) -> Vec<Output> {
    cond.graph()
        .op("XlaIf")
        .input(cond)
        .list(inputs)
        .attr("then_branch", then_branch.reference())
        .attr("else_branch", else_branch.reference())
        .attr("Tout", list(tout))
        .list_outputs()
}

/// `XlaWhile`: Applies `body` to its input again and again, as long as `cond` of it is true.
#[inline]
#[track_caller]
pub fn xla_while(g: &Graph, input: &[Output], cond: &Function, body: &Function) -> Vec<Output> {
    g.op("XlaWhile")
        .list(input)
        .attr("cond", cond.reference())
        .attr("body", body.reference())
        .list_outputs()
}
