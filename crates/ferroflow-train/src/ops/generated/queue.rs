//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// `AccumulatorApplyGradient`: Adds a gradient, unless it is stale.
#[inline]
#[track_caller]
pub fn accumulator_apply_gradient(
    handle: &Output,
    local_step: &Output,
    gradient: &Output,
) -> Operation {
    handle
        .graph()
        .op("AccumulatorApplyGradient")
        .input(handle)
        .input(local_step)
        .input(gradient)
        .operation()
}

/// `AccumulatorNumAccumulated`: How many gradients have been added since the last were taken.
#[inline]
#[track_caller]
pub fn accumulator_num_accumulated(handle: &Output) -> Output {
    handle.graph().op("AccumulatorNumAccumulated").input(handle).output()
}

/// `AccumulatorSetGlobalStep`: Sets the step before which gradients are stale.
#[inline]
#[track_caller]
pub fn accumulator_set_global_step(handle: &Output, new_global_step: &Output) -> Operation {
    handle.graph().op("AccumulatorSetGlobalStep").input(handle).input(new_global_step).operation()
}

/// `AccumulatorTakeGradient`: The average (or sum) of the gradients, when there are enough; a new
/// step begins.
#[inline]
#[track_caller]
pub fn accumulator_take_gradient(handle: &Output, num_required: &Output, dtype: DType) -> Output {
    handle
        .graph()
        .op("AccumulatorTakeGradient")
        .input(handle)
        .input(num_required)
        .attr("dtype", dtype)
        .output()
}

/// The attributes of [`barrier_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BarrierOptions<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for BarrierOptions<'_> {
    fn default() -> Self {
        BarrierOptions { shapes: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `Barrier`: A place where tuples are put together by key.
#[inline]
#[track_caller]
pub fn barrier(g: &Graph, component_types: &[DType]) -> Output {
    barrier_with(g, component_types, BarrierOptions::default())
}

/// [`barrier()`] with other attributes.
#[inline]
#[track_caller]
pub fn barrier_with(g: &Graph, component_types: &[DType], options: BarrierOptions<'_>) -> Output {
    g.op("Barrier")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`barrier_close_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BarrierCloseOptions {
    /// `cancel_pending_enqueues`: bool, `false` by default.
    pub cancel_pending_enqueues: bool,
}

impl Default for BarrierCloseOptions {
    fn default() -> Self {
        BarrierCloseOptions { cancel_pending_enqueues: false }
    }
}

/// `BarrierClose`: Lets no new keys in.
#[inline]
#[track_caller]
pub fn barrier_close(handle: &Output) -> Operation {
    barrier_close_with(handle, BarrierCloseOptions::default())
}

/// [`barrier_close()`] with other attributes.
#[inline]
#[track_caller]
pub fn barrier_close_with(handle: &Output, options: BarrierCloseOptions) -> Operation {
    handle
        .graph()
        .op("BarrierClose")
        .input(handle)
        .attr("cancel_pending_enqueues", options.cancel_pending_enqueues)
        .operation()
}

/// `BarrierIncompleteSize`: How many tuples wait for components.
#[inline]
#[track_caller]
pub fn barrier_incomplete_size(handle: &Output) -> Output {
    handle.graph().op("BarrierIncompleteSize").input(handle).output()
}

/// `BarrierInsertMany`: Gives a component to each of several keys.
#[inline]
#[track_caller]
pub fn barrier_insert_many(
    handle: &Output,
    keys: &Output,
    values: &Output,
    component_index: i64,
) -> Operation {
    handle
        .graph()
        .op("BarrierInsertMany")
        .input(handle)
        .input(keys)
        .input(values)
        .attr("component_index", component_index)
        .operation()
}

/// `BarrierReadySize`: How many tuples are complete.
#[inline]
#[track_caller]
pub fn barrier_ready_size(handle: &Output) -> Output {
    handle.graph().op("BarrierReadySize").input(handle).output()
}

/// The attributes of [`barrier_take_many_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct BarrierTakeManyOptions {
    /// `allow_small_batch`: bool, `false` by default.
    pub allow_small_batch: bool,
    /// `wait_for_incomplete`: bool, `false` by default.
    pub wait_for_incomplete: bool,
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for BarrierTakeManyOptions {
    fn default() -> Self {
        BarrierTakeManyOptions {
            allow_small_batch: false,
            wait_for_incomplete: false,
            timeout_ms: -1,
        }
    }
}

/// `BarrierTakeMany`: Takes tuples that are complete, when there are enough.
///
/// Returns (`indices`, `keys`, `values`).
#[inline]
#[track_caller]
pub fn barrier_take_many(
    handle: &Output,
    num_elements: &Output,
    component_types: &[DType],
) -> (Output, Output, Vec<Output>) {
    barrier_take_many_with(handle, num_elements, component_types, BarrierTakeManyOptions::default())
}

/// [`barrier_take_many()`] with other attributes.
#[inline]
#[track_caller]
pub fn barrier_take_many_with(
    handle: &Output,
    num_elements: &Output,
    component_types: &[DType],
    options: BarrierTakeManyOptions,
) -> (Output, Output, Vec<Output>) {
    let mut arguments = handle
        .graph()
        .op("BarrierTakeMany")
        .input(handle)
        .input(num_elements)
        .attr("component_types", list(component_types))
        .attr("allow_small_batch", options.allow_small_batch)
        .attr("wait_for_incomplete", options.wait_for_incomplete)
        .attr("timeout_ms", options.timeout_ms)
        .outputs_by_argument();
    let indices = arguments.next_output();
    let keys = arguments.next_output();
    let values = arguments.next_list();
    (indices, keys, values)
}

/// The attributes of [`conditional_accumulator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ConditionalAccumulatorOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `reduction_type`: string, `"MEAN"` by default.
    pub reduction_type: &'a str,
}

impl Default for ConditionalAccumulatorOptions<'_> {
    fn default() -> Self {
        ConditionalAccumulatorOptions { container: "", shared_name: "", reduction_type: "MEAN" }
    }
}

/// `ConditionalAccumulator`: An accumulator of dense gradients.
#[inline]
#[track_caller]
pub fn conditional_accumulator(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    conditional_accumulator_with(g, dtype, shape, ConditionalAccumulatorOptions::default())
}

/// [`conditional_accumulator()`] with other attributes.
#[inline]
#[track_caller]
pub fn conditional_accumulator_with(
    g: &Graph,
    dtype: DType,
    shape: &PartialShape,
    options: ConditionalAccumulatorOptions<'_>,
) -> Output {
    g.op("ConditionalAccumulator")
        .attr("dtype", dtype)
        .attr("shape", shape.clone())
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("reduction_type", options.reduction_type)
        .output()
}

/// `ConsumeMutexLock`: The end of a lock's life, for steps that need it for nothing else.
#[inline]
#[track_caller]
pub fn consume_mutex_lock(mutex_lock: &Output) -> Operation {
    mutex_lock.graph().op("ConsumeMutexLock").input(mutex_lock).operation()
}

/// The attributes of [`fifo_queue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FIFOQueueOptions<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for FIFOQueueOptions<'_> {
    fn default() -> Self {
        FIFOQueueOptions { shapes: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `FIFOQueue`: A queue whose elements leave in the order they came.
#[inline]
#[track_caller]
pub fn fifo_queue(g: &Graph, component_types: &[DType]) -> Output {
    fifo_queue_with(g, component_types, FIFOQueueOptions::default())
}

/// [`fifo_queue()`] with other attributes.
#[inline]
#[track_caller]
pub fn fifo_queue_with(
    g: &Graph,
    component_types: &[DType],
    options: FIFOQueueOptions<'_>,
) -> Output {
    g.op("FIFOQueue")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`fifo_queue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct FIFOQueueV2Options<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for FIFOQueueV2Options<'_> {
    fn default() -> Self {
        FIFOQueueV2Options { shapes: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `FIFOQueueV2`: A queue whose elements leave in the order they came.
#[inline]
#[track_caller]
pub fn fifo_queue_v2(g: &Graph, component_types: &[DType]) -> Output {
    fifo_queue_v2_with(g, component_types, FIFOQueueV2Options::default())
}

/// [`fifo_queue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn fifo_queue_v2_with(
    g: &Graph,
    component_types: &[DType],
    options: FIFOQueueV2Options<'_>,
) -> Output {
    g.op("FIFOQueueV2")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `FakeQueue`: A reference handle for a queue that has a resource handle.
#[inline]
#[track_caller]
pub fn fake_queue(resource: &Output) -> Output {
    resource.graph().op("FakeQueue").input(resource).output()
}

/// The attributes of [`map_clear_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapClearOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapClearOptions<'_> {
    fn default() -> Self {
        MapClearOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapClear`: Drops all elements.
#[inline]
#[track_caller]
pub fn map_clear(g: &Graph, dtypes: &[DType]) -> Operation {
    map_clear_with(g, dtypes, MapClearOptions::default())
}

/// [`map_clear()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_clear_with(g: &Graph, dtypes: &[DType], options: MapClearOptions<'_>) -> Operation {
    g.op("MapClear")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`map_incomplete_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapIncompleteSizeOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapIncompleteSizeOptions<'_> {
    fn default() -> Self {
        MapIncompleteSizeOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapIncompleteSize`: How many elements wait for components.
#[inline]
#[track_caller]
pub fn map_incomplete_size(g: &Graph, dtypes: &[DType]) -> Output {
    map_incomplete_size_with(g, dtypes, MapIncompleteSizeOptions::default())
}

/// [`map_incomplete_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_incomplete_size_with(
    g: &Graph,
    dtypes: &[DType],
    options: MapIncompleteSizeOptions<'_>,
) -> Output {
    g.op("MapIncompleteSize")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`map_peek_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapPeekOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapPeekOptions<'_> {
    fn default() -> Self {
        MapPeekOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapPeek`: Looks at components of the element with some key, when it is complete.
#[inline]
#[track_caller]
pub fn map_peek(key: &Output, indices: &Output, dtypes: &[DType]) -> Vec<Output> {
    map_peek_with(key, indices, dtypes, MapPeekOptions::default())
}

/// [`map_peek()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_peek_with(
    key: &Output,
    indices: &Output,
    dtypes: &[DType],
    options: MapPeekOptions<'_>,
) -> Vec<Output> {
    key.graph()
        .op("MapPeek")
        .input(key)
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}

/// The attributes of [`map_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapSizeOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapSizeOptions<'_> {
    fn default() -> Self {
        MapSizeOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapSize`: How many elements are complete.
#[inline]
#[track_caller]
pub fn map_size(g: &Graph, dtypes: &[DType]) -> Output {
    map_size_with(g, dtypes, MapSizeOptions::default())
}

/// [`map_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_size_with(g: &Graph, dtypes: &[DType], options: MapSizeOptions<'_>) -> Output {
    g.op("MapSize")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`map_stage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapStageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapStageOptions<'_> {
    fn default() -> Self {
        MapStageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapStage`: Adds components of the element with some key, when there is room.
#[inline]
#[track_caller]
pub fn map_stage(key: &Output, indices: &Output, values: &[Output], dtypes: &[DType]) -> Operation {
    map_stage_with(key, indices, values, dtypes, MapStageOptions::default())
}

/// [`map_stage()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_stage_with(
    key: &Output,
    indices: &Output,
    values: &[Output],
    dtypes: &[DType],
    options: MapStageOptions<'_>,
) -> Operation {
    key.graph()
        .op("MapStage")
        .input(key)
        .input(indices)
        .list(values)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`map_unstage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapUnstageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapUnstageOptions<'_> {
    fn default() -> Self {
        MapUnstageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapUnstage`: Takes components of the element with some key, when it is complete.
#[inline]
#[track_caller]
pub fn map_unstage(key: &Output, indices: &Output, dtypes: &[DType]) -> Vec<Output> {
    map_unstage_with(key, indices, dtypes, MapUnstageOptions::default())
}

/// [`map_unstage()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_unstage_with(
    key: &Output,
    indices: &Output,
    dtypes: &[DType],
    options: MapUnstageOptions<'_>,
) -> Vec<Output> {
    key.graph()
        .op("MapUnstage")
        .input(key)
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}

/// The attributes of [`map_unstage_no_key_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MapUnstageNoKeyOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MapUnstageNoKeyOptions<'_> {
    fn default() -> Self {
        MapUnstageNoKeyOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `MapUnstageNoKey`: Takes components of the complete element with the lowest key.
///
/// Returns (`key`, `values`).
#[inline]
#[track_caller]
pub fn map_unstage_no_key(indices: &Output, dtypes: &[DType]) -> (Output, Vec<Output>) {
    map_unstage_no_key_with(indices, dtypes, MapUnstageNoKeyOptions::default())
}

/// [`map_unstage_no_key()`] with other attributes.
#[inline]
#[track_caller]
pub fn map_unstage_no_key_with(
    indices: &Output,
    dtypes: &[DType],
    options: MapUnstageNoKeyOptions<'_>,
) -> (Output, Vec<Output>) {
    let mut arguments = indices
        .graph()
        .op("MapUnstageNoKey")
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .outputs_by_argument();
    let key = arguments.next_output();
    let values = arguments.next_list();
    (key, values)
}

/// `MutexLock`: Waits for a mutex; it is held as long as the output lives.
#[inline]
#[track_caller]
pub fn mutex_lock(mutex: &Output) -> Output {
    mutex.graph().op("MutexLock").input(mutex).output()
}

/// The attributes of [`mutex_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct MutexV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for MutexV2Options<'_> {
    fn default() -> Self {
        MutexV2Options { container: "", shared_name: "" }
    }
}

/// `MutexV2`: A mutex.
#[inline]
#[track_caller]
pub fn mutex_v2(g: &Graph) -> Output {
    mutex_v2_with(g, MutexV2Options::default())
}

/// [`mutex_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn mutex_v2_with(g: &Graph, options: MutexV2Options<'_>) -> Output {
    g.op("MutexV2")
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`ordered_map_clear_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapClearOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapClearOptions<'_> {
    fn default() -> Self {
        OrderedMapClearOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `OrderedMapClear`: Drops all elements.
#[inline]
#[track_caller]
pub fn ordered_map_clear(g: &Graph, dtypes: &[DType]) -> Operation {
    ordered_map_clear_with(g, dtypes, OrderedMapClearOptions::default())
}

/// [`ordered_map_clear()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_clear_with(
    g: &Graph,
    dtypes: &[DType],
    options: OrderedMapClearOptions<'_>,
) -> Operation {
    g.op("OrderedMapClear")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`ordered_map_incomplete_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapIncompleteSizeOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapIncompleteSizeOptions<'_> {
    fn default() -> Self {
        OrderedMapIncompleteSizeOptions {
            capacity: 0,
            memory_limit: 0,
            container: "",
            shared_name: "",
        }
    }
}

/// `OrderedMapIncompleteSize`: How many elements wait for components.
#[inline]
#[track_caller]
pub fn ordered_map_incomplete_size(g: &Graph, dtypes: &[DType]) -> Output {
    ordered_map_incomplete_size_with(g, dtypes, OrderedMapIncompleteSizeOptions::default())
}

/// [`ordered_map_incomplete_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_incomplete_size_with(
    g: &Graph,
    dtypes: &[DType],
    options: OrderedMapIncompleteSizeOptions<'_>,
) -> Output {
    g.op("OrderedMapIncompleteSize")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`ordered_map_peek_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapPeekOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapPeekOptions<'_> {
    fn default() -> Self {
        OrderedMapPeekOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `OrderedMapPeek`: Looks at components of the element with some key, when it is complete.
#[inline]
#[track_caller]
pub fn ordered_map_peek(key: &Output, indices: &Output, dtypes: &[DType]) -> Vec<Output> {
    ordered_map_peek_with(key, indices, dtypes, OrderedMapPeekOptions::default())
}

/// [`ordered_map_peek()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_peek_with(
    key: &Output,
    indices: &Output,
    dtypes: &[DType],
    options: OrderedMapPeekOptions<'_>,
) -> Vec<Output> {
    key.graph()
        .op("OrderedMapPeek")
        .input(key)
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}

/// The attributes of [`ordered_map_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapSizeOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapSizeOptions<'_> {
    fn default() -> Self {
        OrderedMapSizeOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `OrderedMapSize`: How many elements are complete.
#[inline]
#[track_caller]
pub fn ordered_map_size(g: &Graph, dtypes: &[DType]) -> Output {
    ordered_map_size_with(g, dtypes, OrderedMapSizeOptions::default())
}

/// [`ordered_map_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_size_with(
    g: &Graph,
    dtypes: &[DType],
    options: OrderedMapSizeOptions<'_>,
) -> Output {
    g.op("OrderedMapSize")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`ordered_map_stage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapStageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapStageOptions<'_> {
    fn default() -> Self {
        OrderedMapStageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `OrderedMapStage`: Adds components of the element with some key, when there is room.
#[inline]
#[track_caller]
pub fn ordered_map_stage(
    key: &Output,
    indices: &Output,
    values: &[Output],
    dtypes: &[DType],
) -> Operation {
    ordered_map_stage_with(key, indices, values, dtypes, OrderedMapStageOptions::default())
}

/// [`ordered_map_stage()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_stage_with(
    key: &Output,
    indices: &Output,
    values: &[Output],
    dtypes: &[DType],
    options: OrderedMapStageOptions<'_>,
) -> Operation {
    key.graph()
        .op("OrderedMapStage")
        .input(key)
        .input(indices)
        .list(values)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`ordered_map_unstage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapUnstageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapUnstageOptions<'_> {
    fn default() -> Self {
        OrderedMapUnstageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `OrderedMapUnstage`: Takes components of the element with some key, when it is complete.
#[inline]
#[track_caller]
pub fn ordered_map_unstage(key: &Output, indices: &Output, dtypes: &[DType]) -> Vec<Output> {
    ordered_map_unstage_with(key, indices, dtypes, OrderedMapUnstageOptions::default())
}

/// [`ordered_map_unstage()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_unstage_with(
    key: &Output,
    indices: &Output,
    dtypes: &[DType],
    options: OrderedMapUnstageOptions<'_>,
) -> Vec<Output> {
    key.graph()
        .op("OrderedMapUnstage")
        .input(key)
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}

/// The attributes of [`ordered_map_unstage_no_key_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct OrderedMapUnstageNoKeyOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for OrderedMapUnstageNoKeyOptions<'_> {
    fn default() -> Self {
        OrderedMapUnstageNoKeyOptions {
            capacity: 0,
            memory_limit: 0,
            container: "",
            shared_name: "",
        }
    }
}

/// `OrderedMapUnstageNoKey`: Takes components of the complete element with the lowest key.
///
/// Returns (`key`, `values`).
#[inline]
#[track_caller]
pub fn ordered_map_unstage_no_key(indices: &Output, dtypes: &[DType]) -> (Output, Vec<Output>) {
    ordered_map_unstage_no_key_with(indices, dtypes, OrderedMapUnstageNoKeyOptions::default())
}

/// [`ordered_map_unstage_no_key()`] with other attributes.
#[inline]
#[track_caller]
pub fn ordered_map_unstage_no_key_with(
    indices: &Output,
    dtypes: &[DType],
    options: OrderedMapUnstageNoKeyOptions<'_>,
) -> (Output, Vec<Output>) {
    let mut arguments = indices
        .graph()
        .op("OrderedMapUnstageNoKey")
        .input(indices)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .outputs_by_argument();
    let key = arguments.next_output();
    let values = arguments.next_list();
    (key, values)
}

/// The attributes of [`padding_fifo_queue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PaddingFIFOQueueOptions<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for PaddingFIFOQueueOptions<'_> {
    fn default() -> Self {
        PaddingFIFOQueueOptions { shapes: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `PaddingFIFOQueue`: A first-in, first-out queue that pads components to one shape when it
/// batches.
#[inline]
#[track_caller]
pub fn padding_fifo_queue(g: &Graph, component_types: &[DType]) -> Output {
    padding_fifo_queue_with(g, component_types, PaddingFIFOQueueOptions::default())
}

/// [`padding_fifo_queue()`] with other attributes.
#[inline]
#[track_caller]
pub fn padding_fifo_queue_with(
    g: &Graph,
    component_types: &[DType],
    options: PaddingFIFOQueueOptions<'_>,
) -> Output {
    g.op("PaddingFIFOQueue")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`padding_fifo_queue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PaddingFIFOQueueV2Options<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for PaddingFIFOQueueV2Options<'_> {
    fn default() -> Self {
        PaddingFIFOQueueV2Options { shapes: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `PaddingFIFOQueueV2`: A first-in, first-out queue that pads components to one shape when it
/// batches.
#[inline]
#[track_caller]
pub fn padding_fifo_queue_v2(g: &Graph, component_types: &[DType]) -> Output {
    padding_fifo_queue_v2_with(g, component_types, PaddingFIFOQueueV2Options::default())
}

/// [`padding_fifo_queue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn padding_fifo_queue_v2_with(
    g: &Graph,
    component_types: &[DType],
    options: PaddingFIFOQueueV2Options<'_>,
) -> Output {
    g.op("PaddingFIFOQueueV2")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`priority_queue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PriorityQueueOptions<'a> {
    /// `component_types`: list of types, empty by default.
    pub component_types: &'a [DType],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for PriorityQueueOptions<'_> {
    fn default() -> Self {
        PriorityQueueOptions { component_types: &[], capacity: -1, container: "", shared_name: "" }
    }
}

/// `PriorityQueue`: A queue whose elements leave by their first component, lowest first.
#[inline]
#[track_caller]
pub fn priority_queue(g: &Graph, shapes: &[PartialShape]) -> Output {
    priority_queue_with(g, shapes, PriorityQueueOptions::default())
}

/// [`priority_queue()`] with other attributes.
#[inline]
#[track_caller]
pub fn priority_queue_with(
    g: &Graph,
    shapes: &[PartialShape],
    options: PriorityQueueOptions<'_>,
) -> Output {
    g.op("PriorityQueue")
        .attr("shapes", list(shapes))
        .attr("component_types", list(options.component_types))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`priority_queue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct PriorityQueueV2Options<'a> {
    /// `component_types`: list of types, empty by default.
    pub component_types: &'a [DType],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for PriorityQueueV2Options<'_> {
    fn default() -> Self {
        PriorityQueueV2Options {
            component_types: &[],
            capacity: -1,
            container: "",
            shared_name: "",
        }
    }
}

/// `PriorityQueueV2`: A queue whose elements leave by their first component, lowest first.
#[inline]
#[track_caller]
pub fn priority_queue_v2(g: &Graph, shapes: &[PartialShape]) -> Output {
    priority_queue_v2_with(g, shapes, PriorityQueueV2Options::default())
}

/// [`priority_queue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn priority_queue_v2_with(
    g: &Graph,
    shapes: &[PartialShape],
    options: PriorityQueueV2Options<'_>,
) -> Output {
    g.op("PriorityQueueV2")
        .attr("shapes", list(shapes))
        .attr("component_types", list(options.component_types))
        .attr("capacity", options.capacity)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`queue_close_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueCloseOptions {
    /// `cancel_pending_enqueues`: bool, `false` by default.
    pub cancel_pending_enqueues: bool,
}

impl Default for QueueCloseOptions {
    fn default() -> Self {
        QueueCloseOptions { cancel_pending_enqueues: false }
    }
}

/// `QueueClose`: Ends enqueueing.
#[inline]
#[track_caller]
pub fn queue_close(handle: &Output) -> Operation {
    queue_close_with(handle, QueueCloseOptions::default())
}

/// [`queue_close()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_close_with(handle: &Output, options: QueueCloseOptions) -> Operation {
    handle
        .graph()
        .op("QueueClose")
        .input(handle)
        .attr("cancel_pending_enqueues", options.cancel_pending_enqueues)
        .operation()
}

/// The attributes of [`queue_close_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueCloseV2Options {
    /// `cancel_pending_enqueues`: bool, `false` by default.
    pub cancel_pending_enqueues: bool,
}

impl Default for QueueCloseV2Options {
    fn default() -> Self {
        QueueCloseV2Options { cancel_pending_enqueues: false }
    }
}

/// `QueueCloseV2`: Ends enqueueing.
#[inline]
#[track_caller]
pub fn queue_close_v2(handle: &Output) -> Operation {
    queue_close_v2_with(handle, QueueCloseV2Options::default())
}

/// [`queue_close_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_close_v2_with(handle: &Output, options: QueueCloseV2Options) -> Operation {
    handle
        .graph()
        .op("QueueCloseV2")
        .input(handle)
        .attr("cancel_pending_enqueues", options.cancel_pending_enqueues)
        .operation()
}

/// The attributes of [`queue_dequeue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueOptions {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueOptions {
    fn default() -> Self {
        QueueDequeueOptions { timeout_ms: -1 }
    }
}

/// `QueueDequeue`: Takes an element, when there is one.
#[inline]
#[track_caller]
pub fn queue_dequeue(handle: &Output, component_types: &[DType]) -> Vec<Output> {
    queue_dequeue_with(handle, component_types, QueueDequeueOptions::default())
}

/// [`queue_dequeue()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_with(
    handle: &Output,
    component_types: &[DType],
    options: QueueDequeueOptions,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeue")
        .input(handle)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_dequeue_many_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueManyOptions {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueManyOptions {
    fn default() -> Self {
        QueueDequeueManyOptions { timeout_ms: -1 }
    }
}

/// `QueueDequeueMany`: Takes `n` elements as a batch, when there are as many.
#[inline]
#[track_caller]
pub fn queue_dequeue_many(handle: &Output, n: &Output, component_types: &[DType]) -> Vec<Output> {
    queue_dequeue_many_with(handle, n, component_types, QueueDequeueManyOptions::default())
}

/// [`queue_dequeue_many()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_many_with(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
    options: QueueDequeueManyOptions,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeueMany")
        .input(handle)
        .input(n)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_dequeue_many_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueManyV2Options {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueManyV2Options {
    fn default() -> Self {
        QueueDequeueManyV2Options { timeout_ms: -1 }
    }
}

/// `QueueDequeueManyV2`: Takes `n` elements as a batch, when there are as many.
#[inline]
#[track_caller]
pub fn queue_dequeue_many_v2(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
) -> Vec<Output> {
    queue_dequeue_many_v2_with(handle, n, component_types, QueueDequeueManyV2Options::default())
}

/// [`queue_dequeue_many_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_many_v2_with(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
    options: QueueDequeueManyV2Options,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeueManyV2")
        .input(handle)
        .input(n)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_dequeue_up_to_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueUpToOptions {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueUpToOptions {
    fn default() -> Self {
        QueueDequeueUpToOptions { timeout_ms: -1 }
    }
}

/// `QueueDequeueUpTo`: Takes `n` elements as a batch, or the rest of a closed queue.
#[inline]
#[track_caller]
pub fn queue_dequeue_up_to(handle: &Output, n: &Output, component_types: &[DType]) -> Vec<Output> {
    queue_dequeue_up_to_with(handle, n, component_types, QueueDequeueUpToOptions::default())
}

/// [`queue_dequeue_up_to()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_up_to_with(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
    options: QueueDequeueUpToOptions,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeueUpTo")
        .input(handle)
        .input(n)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_dequeue_up_to_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueUpToV2Options {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueUpToV2Options {
    fn default() -> Self {
        QueueDequeueUpToV2Options { timeout_ms: -1 }
    }
}

/// `QueueDequeueUpToV2`: Takes `n` elements as a batch, or the rest of a closed queue.
#[inline]
#[track_caller]
pub fn queue_dequeue_up_to_v2(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
) -> Vec<Output> {
    queue_dequeue_up_to_v2_with(handle, n, component_types, QueueDequeueUpToV2Options::default())
}

/// [`queue_dequeue_up_to_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_up_to_v2_with(
    handle: &Output,
    n: &Output,
    component_types: &[DType],
    options: QueueDequeueUpToV2Options,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeueUpToV2")
        .input(handle)
        .input(n)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_dequeue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueDequeueV2Options {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueDequeueV2Options {
    fn default() -> Self {
        QueueDequeueV2Options { timeout_ms: -1 }
    }
}

/// `QueueDequeueV2`: Takes an element, when there is one.
#[inline]
#[track_caller]
pub fn queue_dequeue_v2(handle: &Output, component_types: &[DType]) -> Vec<Output> {
    queue_dequeue_v2_with(handle, component_types, QueueDequeueV2Options::default())
}

/// [`queue_dequeue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_dequeue_v2_with(
    handle: &Output,
    component_types: &[DType],
    options: QueueDequeueV2Options,
) -> Vec<Output> {
    handle
        .graph()
        .op("QueueDequeueV2")
        .input(handle)
        .attr("component_types", list(component_types))
        .attr("timeout_ms", options.timeout_ms)
        .list_outputs()
}

/// The attributes of [`queue_enqueue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueEnqueueOptions {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueEnqueueOptions {
    fn default() -> Self {
        QueueEnqueueOptions { timeout_ms: -1 }
    }
}

/// `QueueEnqueue`: Adds an element, when there is room.
#[inline]
#[track_caller]
pub fn queue_enqueue(handle: &Output, components: &[Output]) -> Operation {
    queue_enqueue_with(handle, components, QueueEnqueueOptions::default())
}

/// [`queue_enqueue()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_enqueue_with(
    handle: &Output,
    components: &[Output],
    options: QueueEnqueueOptions,
) -> Operation {
    handle
        .graph()
        .op("QueueEnqueue")
        .input(handle)
        .list(components)
        .attr("timeout_ms", options.timeout_ms)
        .operation()
}

/// The attributes of [`queue_enqueue_many_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueEnqueueManyOptions {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueEnqueueManyOptions {
    fn default() -> Self {
        QueueEnqueueManyOptions { timeout_ms: -1 }
    }
}

/// `QueueEnqueueMany`: Adds the rows of its inputs as elements, as there is room.
#[inline]
#[track_caller]
pub fn queue_enqueue_many(handle: &Output, components: &[Output]) -> Operation {
    queue_enqueue_many_with(handle, components, QueueEnqueueManyOptions::default())
}

/// [`queue_enqueue_many()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_enqueue_many_with(
    handle: &Output,
    components: &[Output],
    options: QueueEnqueueManyOptions,
) -> Operation {
    handle
        .graph()
        .op("QueueEnqueueMany")
        .input(handle)
        .list(components)
        .attr("timeout_ms", options.timeout_ms)
        .operation()
}

/// The attributes of [`queue_enqueue_many_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueEnqueueManyV2Options {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueEnqueueManyV2Options {
    fn default() -> Self {
        QueueEnqueueManyV2Options { timeout_ms: -1 }
    }
}

/// `QueueEnqueueManyV2`: Adds the rows of its inputs as elements, as there is room.
#[inline]
#[track_caller]
pub fn queue_enqueue_many_v2(handle: &Output, components: &[Output]) -> Operation {
    queue_enqueue_many_v2_with(handle, components, QueueEnqueueManyV2Options::default())
}

/// [`queue_enqueue_many_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_enqueue_many_v2_with(
    handle: &Output,
    components: &[Output],
    options: QueueEnqueueManyV2Options,
) -> Operation {
    handle
        .graph()
        .op("QueueEnqueueManyV2")
        .input(handle)
        .list(components)
        .attr("timeout_ms", options.timeout_ms)
        .operation()
}

/// The attributes of [`queue_enqueue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct QueueEnqueueV2Options {
    /// `timeout_ms`: int, `-1` by default.
    pub timeout_ms: i64,
}

impl Default for QueueEnqueueV2Options {
    fn default() -> Self {
        QueueEnqueueV2Options { timeout_ms: -1 }
    }
}

/// `QueueEnqueueV2`: Adds an element, when there is room.
#[inline]
#[track_caller]
pub fn queue_enqueue_v2(handle: &Output, components: &[Output]) -> Operation {
    queue_enqueue_v2_with(handle, components, QueueEnqueueV2Options::default())
}

/// [`queue_enqueue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn queue_enqueue_v2_with(
    handle: &Output,
    components: &[Output],
    options: QueueEnqueueV2Options,
) -> Operation {
    handle
        .graph()
        .op("QueueEnqueueV2")
        .input(handle)
        .list(components)
        .attr("timeout_ms", options.timeout_ms)
        .operation()
}

/// `QueueIsClosed`: Whether a queue is closed.
#[inline]
#[track_caller]
pub fn queue_is_closed(handle: &Output) -> Output {
    handle.graph().op("QueueIsClosed").input(handle).output()
}

/// `QueueIsClosedV2`: Whether a queue is closed.
#[inline]
#[track_caller]
pub fn queue_is_closed_v2(handle: &Output) -> Output {
    handle.graph().op("QueueIsClosedV2").input(handle).output()
}

/// `QueueSize`: How many elements a queue holds.
#[inline]
#[track_caller]
pub fn queue_size(handle: &Output) -> Output {
    handle.graph().op("QueueSize").input(handle).output()
}

/// `QueueSizeV2`: How many elements a queue holds.
#[inline]
#[track_caller]
pub fn queue_size_v2(handle: &Output) -> Output {
    handle.graph().op("QueueSizeV2").input(handle).output()
}

/// The attributes of [`random_shuffle_queue_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomShuffleQueueOptions<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `min_after_dequeue`: int, `0` by default.
    pub min_after_dequeue: i64,
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for RandomShuffleQueueOptions<'_> {
    fn default() -> Self {
        RandomShuffleQueueOptions {
            shapes: &[],
            capacity: -1,
            min_after_dequeue: 0,
            seed: 0,
            seed2: 0,
            container: "",
            shared_name: "",
        }
    }
}

/// `RandomShuffleQueue`: A queue whose elements leave in random order.
#[inline]
#[track_caller]
pub fn random_shuffle_queue(g: &Graph, component_types: &[DType]) -> Output {
    random_shuffle_queue_with(g, component_types, RandomShuffleQueueOptions::default())
}

/// [`random_shuffle_queue()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_shuffle_queue_with(
    g: &Graph,
    component_types: &[DType],
    options: RandomShuffleQueueOptions<'_>,
) -> Output {
    g.op("RandomShuffleQueue")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("min_after_dequeue", options.min_after_dequeue)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`random_shuffle_queue_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct RandomShuffleQueueV2Options<'a> {
    /// `shapes`: list of shapes, empty by default.
    pub shapes: &'a [PartialShape],
    /// `capacity`: int, `-1` by default.
    pub capacity: i64,
    /// `min_after_dequeue`: int, `0` by default.
    pub min_after_dequeue: i64,
    /// `seed`: int, `0` by default.
    pub seed: i64,
    /// `seed2`: int, `0` by default.
    pub seed2: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for RandomShuffleQueueV2Options<'_> {
    fn default() -> Self {
        RandomShuffleQueueV2Options {
            shapes: &[],
            capacity: -1,
            min_after_dequeue: 0,
            seed: 0,
            seed2: 0,
            container: "",
            shared_name: "",
        }
    }
}

/// `RandomShuffleQueueV2`: A queue whose elements leave in random order.
#[inline]
#[track_caller]
pub fn random_shuffle_queue_v2(g: &Graph, component_types: &[DType]) -> Output {
    random_shuffle_queue_v2_with(g, component_types, RandomShuffleQueueV2Options::default())
}

/// [`random_shuffle_queue_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn random_shuffle_queue_v2_with(
    g: &Graph,
    component_types: &[DType],
    options: RandomShuffleQueueV2Options<'_>,
) -> Output {
    g.op("RandomShuffleQueueV2")
        .attr("component_types", list(component_types))
        .attr("shapes", list(options.shapes))
        .attr("capacity", options.capacity)
        .attr("min_after_dequeue", options.min_after_dequeue)
        .attr("seed", options.seed)
        .attr("seed2", options.seed2)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// `ResourceAccumulatorApplyGradient`: Adds a gradient, unless it is stale.
#[inline]
#[track_caller]
pub fn resource_accumulator_apply_gradient(
    handle: &Output,
    local_step: &Output,
    gradient: &Output,
) -> Operation {
    handle
        .graph()
        .op("ResourceAccumulatorApplyGradient")
        .input(handle)
        .input(local_step)
        .input(gradient)
        .operation()
}

/// `ResourceAccumulatorNumAccumulated`: How many gradients have been added since the last were
/// taken.
#[inline]
#[track_caller]
pub fn resource_accumulator_num_accumulated(handle: &Output) -> Output {
    handle.graph().op("ResourceAccumulatorNumAccumulated").input(handle).output()
}

/// `ResourceAccumulatorSetGlobalStep`: Sets the step before which gradients are stale.
#[inline]
#[track_caller]
pub fn resource_accumulator_set_global_step(
    handle: &Output,
    new_global_step: &Output,
) -> Operation {
    handle
        .graph()
        .op("ResourceAccumulatorSetGlobalStep")
        .input(handle)
        .input(new_global_step)
        .operation()
}

/// `ResourceAccumulatorTakeGradient`: The average (or sum) of the gradients, when there are enough;
/// a new step begins.
#[inline]
#[track_caller]
pub fn resource_accumulator_take_gradient(
    handle: &Output,
    num_required: &Output,
    dtype: DType,
) -> Output {
    handle
        .graph()
        .op("ResourceAccumulatorTakeGradient")
        .input(handle)
        .input(num_required)
        .attr("dtype", dtype)
        .output()
}

/// The attributes of [`resource_conditional_accumulator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceConditionalAccumulatorOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `reduction_type`: string, `"MEAN"` by default.
    pub reduction_type: &'a str,
}

impl Default for ResourceConditionalAccumulatorOptions<'_> {
    fn default() -> Self {
        ResourceConditionalAccumulatorOptions {
            container: "",
            shared_name: "",
            reduction_type: "MEAN",
        }
    }
}

/// `ResourceConditionalAccumulator`: An accumulator of dense gradients.
#[inline]
#[track_caller]
pub fn resource_conditional_accumulator(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    resource_conditional_accumulator_with(
        g,
        dtype,
        shape,
        ResourceConditionalAccumulatorOptions::default(),
    )
}

/// [`resource_conditional_accumulator()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_conditional_accumulator_with(
    g: &Graph,
    dtype: DType,
    shape: &PartialShape,
    options: ResourceConditionalAccumulatorOptions<'_>,
) -> Output {
    g.op("ResourceConditionalAccumulator")
        .attr("dtype", dtype)
        .attr("shape", shape.clone())
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("reduction_type", options.reduction_type)
        .output()
}

/// `SparseAccumulatorApplyGradient`: Adds a sparse gradient, unless it is stale.
#[inline]
#[track_caller]
pub fn sparse_accumulator_apply_gradient(
    handle: &Output,
    local_step: &Output,
    gradient_indices: &Output,
    gradient_values: &Output,
    gradient_shape: &Output,
    has_known_shape: bool,
) -> Operation {
    handle
        .graph()
        .op("SparseAccumulatorApplyGradient")
        .input(handle)
        .input(local_step)
        .input(gradient_indices)
        .input(gradient_values)
        .input(gradient_shape)
        .attr("has_known_shape", has_known_shape)
        .operation()
}

/// `SparseAccumulatorTakeGradient`: The average (or sum) of the gradients, when there are enough; a
/// new step begins.
///
/// Returns (`indices`, `values`, `shape`).
#[inline]
#[track_caller]
pub fn sparse_accumulator_take_gradient(
    handle: &Output,
    num_required: &Output,
    dtype: DType,
) -> (Output, Output, Output) {
    let [indices, values, shape] = handle
        .graph()
        .op("SparseAccumulatorTakeGradient")
        .input(handle)
        .input(num_required)
        .attr("dtype", dtype)
        .split();
    (indices, values, shape)
}

/// The attributes of [`sparse_conditional_accumulator_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseConditionalAccumulatorOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `reduction_type`: string, `"MEAN"` by default.
    pub reduction_type: &'a str,
}

impl Default for SparseConditionalAccumulatorOptions<'_> {
    fn default() -> Self {
        SparseConditionalAccumulatorOptions {
            container: "",
            shared_name: "",
            reduction_type: "MEAN",
        }
    }
}

/// `SparseConditionalAccumulator`: An accumulator of sparse gradients.
#[inline]
#[track_caller]
pub fn sparse_conditional_accumulator(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    sparse_conditional_accumulator_with(
        g,
        dtype,
        shape,
        SparseConditionalAccumulatorOptions::default(),
    )
}

/// [`sparse_conditional_accumulator()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_conditional_accumulator_with(
    g: &Graph,
    dtype: DType,
    shape: &PartialShape,
    options: SparseConditionalAccumulatorOptions<'_>,
) -> Output {
    g.op("SparseConditionalAccumulator")
        .attr("dtype", dtype)
        .attr("shape", shape.clone())
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("reduction_type", options.reduction_type)
        .output()
}

/// The attributes of [`stage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StageOptions<'_> {
    fn default() -> Self {
        StageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `Stage`: Adds an element to a staging area, when there is room.
#[inline]
#[track_caller]
pub fn stage(g: &Graph, values: &[Output]) -> Operation {
    stage_with(g, values, StageOptions::default())
}

/// [`stage()`] with other attributes.
#[inline]
#[track_caller]
pub fn stage_with(g: &Graph, values: &[Output], options: StageOptions<'_>) -> Operation {
    g.op("Stage")
        .list(values)
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`stage_clear_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StageClearOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StageClearOptions<'_> {
    fn default() -> Self {
        StageClearOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `StageClear`: Drops all elements of a staging area.
#[inline]
#[track_caller]
pub fn stage_clear(g: &Graph, dtypes: &[DType]) -> Operation {
    stage_clear_with(g, dtypes, StageClearOptions::default())
}

/// [`stage_clear()`] with other attributes.
#[inline]
#[track_caller]
pub fn stage_clear_with(g: &Graph, dtypes: &[DType], options: StageClearOptions<'_>) -> Operation {
    g.op("StageClear")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .operation()
}

/// The attributes of [`stage_peek_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StagePeekOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StagePeekOptions<'_> {
    fn default() -> Self {
        StagePeekOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `StagePeek`: Looks at an element of a staging area, when it is there.
#[inline]
#[track_caller]
pub fn stage_peek(index: &Output, dtypes: &[DType]) -> Vec<Output> {
    stage_peek_with(index, dtypes, StagePeekOptions::default())
}

/// [`stage_peek()`] with other attributes.
#[inline]
#[track_caller]
pub fn stage_peek_with(
    index: &Output,
    dtypes: &[DType],
    options: StagePeekOptions<'_>,
) -> Vec<Output> {
    index
        .graph()
        .op("StagePeek")
        .input(index)
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}

/// The attributes of [`stage_size_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StageSizeOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for StageSizeOptions<'_> {
    fn default() -> Self {
        StageSizeOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `StageSize`: How many elements a staging area holds.
#[inline]
#[track_caller]
pub fn stage_size(g: &Graph, dtypes: &[DType]) -> Output {
    stage_size_with(g, dtypes, StageSizeOptions::default())
}

/// [`stage_size()`] with other attributes.
#[inline]
#[track_caller]
pub fn stage_size_with(g: &Graph, dtypes: &[DType], options: StageSizeOptions<'_>) -> Output {
    g.op("StageSize")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`unstage_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct UnstageOptions<'a> {
    /// `capacity`: int, `0` by default.
    pub capacity: i64,
    /// `memory_limit`: int, `0` by default.
    pub memory_limit: i64,
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for UnstageOptions<'_> {
    fn default() -> Self {
        UnstageOptions { capacity: 0, memory_limit: 0, container: "", shared_name: "" }
    }
}

/// `Unstage`: Takes the oldest element of a staging area, when there is one.
#[inline]
#[track_caller]
pub fn unstage(g: &Graph, dtypes: &[DType]) -> Vec<Output> {
    unstage_with(g, dtypes, UnstageOptions::default())
}

/// [`unstage()`] with other attributes.
#[inline]
#[track_caller]
pub fn unstage_with(g: &Graph, dtypes: &[DType], options: UnstageOptions<'_>) -> Vec<Output> {
    g.op("Unstage")
        .attr("dtypes", list(dtypes))
        .attr("capacity", options.capacity)
        .attr("memory_limit", options.memory_limit)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .list_outputs()
}
