//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// The attributes of [`collective_all_to_all_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveAllToAllV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
    /// `is_stateless`: bool, `false` by default.
    pub is_stateless: bool,
}

impl Default for CollectiveAllToAllV2Options<'_> {
    fn default() -> Self {
        CollectiveAllToAllV2Options {
            communication_hint: "auto",
            timeout_seconds: 0.0,
            is_stateless: false,
        }
    }
}

/// `CollectiveAllToAllV2`: The rows of all devices of a group, each sent to the device of its
/// number.
#[inline]
#[track_caller]
pub fn collective_all_to_all_v2(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
) -> Output {
    collective_all_to_all_v2_with(
        input,
        group_size,
        group_key,
        instance_key,
        ordering_token,
        CollectiveAllToAllV2Options::default(),
    )
}

/// [`collective_all_to_all_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_all_to_all_v2_with(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    options: CollectiveAllToAllV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveAllToAllV2")
        .input(input)
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .list(ordering_token)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .attr("is_stateless", options.is_stateless)
        .output()
}

/// The attributes of [`collective_all_to_all_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveAllToAllV3Options {
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveAllToAllV3Options {
    fn default() -> Self {
        CollectiveAllToAllV3Options { timeout_seconds: 0.0 }
    }
}

/// `CollectiveAllToAllV3`: The rows of all devices of a group, each sent to the device of its
/// number.
#[inline]
#[track_caller]
pub fn collective_all_to_all_v3(
    input: &Output,
    communicator: &Output,
    group_assignment: &Output,
) -> Output {
    collective_all_to_all_v3_with(
        input,
        communicator,
        group_assignment,
        CollectiveAllToAllV3Options::default(),
    )
}

/// [`collective_all_to_all_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_all_to_all_v3_with(
    input: &Output,
    communicator: &Output,
    group_assignment: &Output,
    options: CollectiveAllToAllV3Options,
) -> Output {
    input
        .graph()
        .op("CollectiveAllToAllV3")
        .input(input)
        .input(communicator)
        .input(group_assignment)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// `CollectiveAssignGroupV2`: The size and the key of the group that a device is in, of groups that
/// are rows of a matrix.
///
/// Returns (`group_size`, `group_key`).
#[inline]
#[track_caller]
pub fn collective_assign_group_v2(
    group_assignment: &Output,
    device_index: &Output,
    base_key: &Output,
) -> (Output, Output) {
    let [group_size, group_key] = group_assignment
        .graph()
        .op("CollectiveAssignGroupV2")
        .input(group_assignment)
        .input(device_index)
        .input(base_key)
        .split();
    (group_size, group_key)
}

/// The attributes of [`collective_bcast_recv_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveBcastRecvOptions<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveBcastRecvOptions<'_> {
    fn default() -> Self {
        CollectiveBcastRecvOptions { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveBcastRecv`: The tensor that a device of the group sends to all.
#[inline]
#[track_caller]
pub fn collective_bcast_recv(
    g: &Graph,
    t: DType,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
) -> Output {
    collective_bcast_recv_with(
        g,
        t,
        group_size,
        group_key,
        instance_key,
        shape,
        CollectiveBcastRecvOptions::default(),
    )
}

/// [`collective_bcast_recv()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_bcast_recv_with(
    g: &Graph,
    t: DType,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
    options: CollectiveBcastRecvOptions<'_>,
) -> Output {
    g.op("CollectiveBcastRecv")
        .attr("T", t)
        .attr("group_size", group_size)
        .attr("group_key", group_key)
        .attr("instance_key", instance_key)
        .attr("shape", shape.clone())
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_bcast_recv_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveBcastRecvV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveBcastRecvV2Options<'_> {
    fn default() -> Self {
        CollectiveBcastRecvV2Options { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveBcastRecvV2`: The tensor that a device of the group sends to all.
#[inline]
#[track_caller]
pub fn collective_bcast_recv_v2(
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    shape: &Output,
    t: DType,
) -> Output {
    collective_bcast_recv_v2_with(
        group_size,
        group_key,
        instance_key,
        shape,
        t,
        CollectiveBcastRecvV2Options::default(),
    )
}

/// [`collective_bcast_recv_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_bcast_recv_v2_with(
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    shape: &Output,
    t: DType,
    options: CollectiveBcastRecvV2Options<'_>,
) -> Output {
    group_size
        .graph()
        .op("CollectiveBcastRecvV2")
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .input(shape)
        .attr("T", t)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_bcast_send_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveBcastSendOptions<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveBcastSendOptions<'_> {
    fn default() -> Self {
        CollectiveBcastSendOptions { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveBcastSend`: Sends a tensor to the other devices of a group.
#[inline]
#[track_caller]
pub fn collective_bcast_send(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
) -> Output {
    collective_bcast_send_with(
        input,
        group_size,
        group_key,
        instance_key,
        shape,
        CollectiveBcastSendOptions::default(),
    )
}

/// [`collective_bcast_send()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_bcast_send_with(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
    options: CollectiveBcastSendOptions<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveBcastSend")
        .input(input)
        .attr("group_size", group_size)
        .attr("group_key", group_key)
        .attr("instance_key", instance_key)
        .attr("shape", shape.clone())
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_bcast_send_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveBcastSendV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveBcastSendV2Options<'_> {
    fn default() -> Self {
        CollectiveBcastSendV2Options { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveBcastSendV2`: Sends a tensor to the other devices of a group.
#[inline]
#[track_caller]
pub fn collective_bcast_send_v2(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
) -> Output {
    collective_bcast_send_v2_with(
        input,
        group_size,
        group_key,
        instance_key,
        CollectiveBcastSendV2Options::default(),
    )
}

/// [`collective_bcast_send_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_bcast_send_v2_with(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    options: CollectiveBcastSendV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveBcastSendV2")
        .input(input)
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_gather_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveGatherOptions<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveGatherOptions<'_> {
    fn default() -> Self {
        CollectiveGatherOptions { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveGather`: The inputs of all devices of a group, one below the other.
#[inline]
#[track_caller]
pub fn collective_gather(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
) -> Output {
    collective_gather_with(
        input,
        group_size,
        group_key,
        instance_key,
        shape,
        CollectiveGatherOptions::default(),
    )
}

/// [`collective_gather()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_gather_with(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    shape: &PartialShape,
    options: CollectiveGatherOptions<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveGather")
        .input(input)
        .attr("group_size", group_size)
        .attr("group_key", group_key)
        .attr("instance_key", instance_key)
        .attr("shape", shape.clone())
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_gather_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveGatherV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
    /// `is_stateless`: bool, `false` by default.
    pub is_stateless: bool,
}

impl Default for CollectiveGatherV2Options<'_> {
    fn default() -> Self {
        CollectiveGatherV2Options {
            communication_hint: "auto",
            timeout_seconds: 0.0,
            is_stateless: false,
        }
    }
}

/// `CollectiveGatherV2`: The inputs of all devices of a group, one below the other.
#[inline]
#[track_caller]
pub fn collective_gather_v2(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
) -> Output {
    collective_gather_v2_with(
        input,
        group_size,
        group_key,
        instance_key,
        ordering_token,
        CollectiveGatherV2Options::default(),
    )
}

/// [`collective_gather_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_gather_v2_with(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    options: CollectiveGatherV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveGatherV2")
        .input(input)
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .list(ordering_token)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .attr("is_stateless", options.is_stateless)
        .output()
}

/// The attributes of [`collective_initialize_communicator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveInitializeCommunicatorOptions<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveInitializeCommunicatorOptions<'_> {
    fn default() -> Self {
        CollectiveInitializeCommunicatorOptions { communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveInitializeCommunicator`: A device's membership in a group, once all of the group have
/// asked for theirs.
#[inline]
#[track_caller]
pub fn collective_initialize_communicator(
    group_key: &Output,
    rank: &Output,
    group_size: &Output,
) -> Output {
    collective_initialize_communicator_with(
        group_key,
        rank,
        group_size,
        CollectiveInitializeCommunicatorOptions::default(),
    )
}

/// [`collective_initialize_communicator()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_initialize_communicator_with(
    group_key: &Output,
    rank: &Output,
    group_size: &Output,
    options: CollectiveInitializeCommunicatorOptions<'_>,
) -> Output {
    group_key
        .graph()
        .op("CollectiveInitializeCommunicator")
        .input(group_key)
        .input(rank)
        .input(group_size)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_reduce_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveReduceOptions<'a> {
    /// `wait_for`: list of ints, empty by default.
    pub wait_for: &'a [i64],
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveReduceOptions<'_> {
    fn default() -> Self {
        CollectiveReduceOptions { wait_for: &[], communication_hint: "auto", timeout_seconds: 0.0 }
    }
}

/// `CollectiveReduce`: The reduction of the inputs of all devices of a group.
#[inline]
#[track_caller]
pub fn collective_reduce(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    merge_op: &str,
    final_op: &str,
    subdiv_offsets: &[i64],
) -> Output {
    collective_reduce_with(
        input,
        group_size,
        group_key,
        instance_key,
        merge_op,
        final_op,
        subdiv_offsets,
        CollectiveReduceOptions::default(),
    )
}

/// [`collective_reduce()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_reduce_with(
    input: &Output,
    group_size: i64,
    group_key: i64,
    instance_key: i64,
    merge_op: &str,
    final_op: &str,
    subdiv_offsets: &[i64],
    options: CollectiveReduceOptions<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveReduce")
        .input(input)
        .attr("group_size", group_size)
        .attr("group_key", group_key)
        .attr("instance_key", instance_key)
        .attr("merge_op", merge_op)
        .attr("final_op", final_op)
        .attr("subdiv_offsets", list(subdiv_offsets))
        .attr("wait_for", list(options.wait_for))
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}

/// The attributes of [`collective_reduce_scatter_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveReduceScatterV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
    /// `is_stateless`: bool, `false` by default.
    pub is_stateless: bool,
    /// `max_subdivs_per_device`: int, `-1` by default.
    pub max_subdivs_per_device: i64,
}

impl Default for CollectiveReduceScatterV2Options<'_> {
    fn default() -> Self {
        CollectiveReduceScatterV2Options {
            communication_hint: "auto",
            timeout_seconds: 0.0,
            is_stateless: false,
            max_subdivs_per_device: -1,
        }
    }
}

/// `CollectiveReduceScatterV2`: A part of the reduction of a group's inputs; refused on CPUs.
#[inline]
#[track_caller]
pub fn collective_reduce_scatter_v2(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    merge_op: &str,
    final_op: &str,
) -> Output {
    collective_reduce_scatter_v2_with(
        input,
        group_size,
        group_key,
        instance_key,
        ordering_token,
        merge_op,
        final_op,
        CollectiveReduceScatterV2Options::default(),
    )
}

/// [`collective_reduce_scatter_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_reduce_scatter_v2_with(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    merge_op: &str,
    final_op: &str,
    options: CollectiveReduceScatterV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveReduceScatterV2")
        .input(input)
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .list(ordering_token)
        .attr("merge_op", merge_op)
        .attr("final_op", final_op)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .attr("is_stateless", options.is_stateless)
        .attr("max_subdivs_per_device", options.max_subdivs_per_device)
        .output()
}

/// The attributes of [`collective_reduce_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveReduceV2Options<'a> {
    /// `communication_hint`: string, `"auto"` by default.
    pub communication_hint: &'a str,
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
    /// `is_stateless`: bool, `false` by default.
    pub is_stateless: bool,
    /// `max_subdivs_per_device`: int, `-1` by default.
    pub max_subdivs_per_device: i64,
}

impl Default for CollectiveReduceV2Options<'_> {
    fn default() -> Self {
        CollectiveReduceV2Options {
            communication_hint: "auto",
            timeout_seconds: 0.0,
            is_stateless: false,
            max_subdivs_per_device: -1,
        }
    }
}

/// `CollectiveReduceV2`: The reduction of the inputs of all devices of a group.
#[inline]
#[track_caller]
pub fn collective_reduce_v2(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    merge_op: &str,
    final_op: &str,
) -> Output {
    collective_reduce_v2_with(
        input,
        group_size,
        group_key,
        instance_key,
        ordering_token,
        merge_op,
        final_op,
        CollectiveReduceV2Options::default(),
    )
}

/// [`collective_reduce_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_reduce_v2_with(
    input: &Output,
    group_size: &Output,
    group_key: &Output,
    instance_key: &Output,
    ordering_token: &[Output],
    merge_op: &str,
    final_op: &str,
    options: CollectiveReduceV2Options<'_>,
) -> Output {
    input
        .graph()
        .op("CollectiveReduceV2")
        .input(input)
        .input(group_size)
        .input(group_key)
        .input(instance_key)
        .list(ordering_token)
        .attr("merge_op", merge_op)
        .attr("final_op", final_op)
        .attr("communication_hint", options.communication_hint)
        .attr("timeout_seconds", options.timeout_seconds)
        .attr("is_stateless", options.is_stateless)
        .attr("max_subdivs_per_device", options.max_subdivs_per_device)
        .output()
}

/// The attributes of [`collective_reduce_v3_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct CollectiveReduceV3Options {
    /// `timeout_seconds`: float, `0.0` by default.
    pub timeout_seconds: f32,
}

impl Default for CollectiveReduceV3Options {
    fn default() -> Self {
        CollectiveReduceV3Options { timeout_seconds: 0.0 }
    }
}

/// `CollectiveReduceV3`: The reduction of the inputs of all devices of a group.
#[inline]
#[track_caller]
pub fn collective_reduce_v3(
    input: &Output,
    communicator: &Output,
    group_assignment: &Output,
    reduction: &str,
) -> Output {
    collective_reduce_v3_with(
        input,
        communicator,
        group_assignment,
        reduction,
        CollectiveReduceV3Options::default(),
    )
}

/// [`collective_reduce_v3()`] with other attributes.
#[inline]
#[track_caller]
pub fn collective_reduce_v3_with(
    input: &Output,
    communicator: &Output,
    group_assignment: &Output,
    reduction: &str,
    options: CollectiveReduceV3Options,
) -> Output {
    input
        .graph()
        .op("CollectiveReduceV3")
        .input(input)
        .input(communicator)
        .input(group_assignment)
        .attr("reduction", reduction)
        .attr("timeout_seconds", options.timeout_seconds)
        .output()
}
