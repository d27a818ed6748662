"""Names of graphs, types, sessions and messages."""

_CONFIG = (
    "PhysicalDevice LogicalDevice LogicalDeviceConfiguration list_physical_devices list_logical_devices get_visible_devices "
    "set_visible_devices get_logical_device_configuration set_logical_device_configuration get_soft_device_placement "
    "set_soft_device_placement"
).split()
_CONFIG_EXPERIMENTAL = (
    "VirtualDeviceConfiguration list_physical_devices list_logical_devices get_visible_devices set_visible_devices "
    "get_memory_growth set_memory_growth get_virtual_device_configuration set_virtual_device_configuration "
    "get_device_details get_device_policy set_device_policy get_synchronous_execution set_synchronous_execution "
    "tensor_float_32_execution_enabled enable_tensor_float_32_execution"
).split()

NAMES = {
    "ferroflow.python.framework.ops": (
        "Graph GraphKeys Operation Tensor RegisterGradient NotDifferentiable NoGradient add_to_collection "
        "add_to_collections get_collection get_collection_ref colocate_with container control_dependencies device "
        "name_scope op_scope get_default_graph get_default_session reset_default_graph init_scope "
        "no_gradient register_tensor_conversion_function convert_to_tensor=convert_to_tensor "
        "executing_eagerly convert_to_tensor_or_indexed_slices"
    ),
    "ferroflow.python.framework.dtypes": (
        "DType as_dtype float16 half float32 float64 double bfloat16 complex64 complex128 int8 int16 int32 int64 uint8 "
        "uint16 uint32 uint64 bool string resource variant qint8 quint8 qint16 quint16 qint32 QUANTIZED_DTYPES "
        "dtypes.DType=DType dtypes.as_dtype=as_dtype dtypes.float32=float32 dtypes.float64=float64 dtypes.int32=int32 "
        "dtypes.int64=int64 dtypes.string=string dtypes.bool=bool dtypes.uint8=uint8 dtypes.float16=float16 "
        "dtypes.complex64=complex64 dtypes.complex128=complex128 dtypes.bfloat16=bfloat16 dtypes.half=half "
        "dtypes.double=double dtypes.int8=int8 dtypes.int16=int16 dtypes.uint16=uint16 dtypes.uint32=uint32 "
        "dtypes.uint64=uint64 dtypes.qint8=qint8 dtypes.quint8=quint8 dtypes.qint16=qint16 dtypes.quint16=quint16 "
        "dtypes.qint32=qint32 dtypes.resource=resource dtypes.variant=variant dtypes.QUANTIZED_DTYPES=QUANTIZED_DTYPES"
    ),
    "ferroflow.python.framework.tensor_shape": "TensorShape Dimension dimension_value dimension_at_index "
    "compat.dimension_value=dimension_value compat.dimension_at_index=dimension_at_index",
    "ferroflow.python.framework.device": "DeviceSpec",
    "ferroflow.python.framework.constant_op": "constant=constant_v1",
    "ferroflow.python.framework.tensor_util": "make_tensor_proto make_ndarray=MakeNdarray is_tensor "
    "get_static_value=constant_value contrib.util.make_tensor_proto=make_tensor_proto "
    "contrib.util.make_ndarray=MakeNdarray contrib.util.constant_value=constant_value",
    "ferroflow.python.framework.importer": "import_graph_def graph_util.import_graph_def=import_graph_def",
    "ferroflow.python.framework.random_seed": "set_random_seed random.set_random_seed=set_random_seed get_seed random.get_seed=get_seed",
    "ferroflow.python.framework.indexed_slices": "IndexedSlices IndexedSlicesValue",
    "ferroflow.python.framework.sparse_tensor": "SparseTensor SparseTensorValue convert_to_tensor_or_sparse_tensor "
    "sparse.SparseTensor=SparseTensor",
    "ferroflow.python.framework.errors_impl": (
        "OpError errors.OpError=OpError errors.CancelledError=CancelledError errors.UnknownError=UnknownError "
        "errors.InvalidArgumentError=InvalidArgumentError errors.DeadlineExceededError=DeadlineExceededError "
        "errors.NotFoundError=NotFoundError errors.AlreadyExistsError=AlreadyExistsError "
        "errors.PermissionDeniedError=PermissionDeniedError errors.UnauthenticatedError=UnauthenticatedError "
        "errors.ResourceExhaustedError=ResourceExhaustedError errors.FailedPreconditionError=FailedPreconditionError "
        "errors.AbortedError=AbortedError errors.OutOfRangeError=OutOfRangeError "
        "errors.UnimplementedError=UnimplementedError errors.InternalError=InternalError "
        "errors.UnavailableError=UnavailableError errors.DataLossError=DataLossError errors.OK=OK "
        "errors.CANCELLED=CANCELLED errors.UNKNOWN=UNKNOWN errors.INVALID_ARGUMENT=INVALID_ARGUMENT "
        "errors.DEADLINE_EXCEEDED=DEADLINE_EXCEEDED errors.NOT_FOUND=NOT_FOUND errors.ALREADY_EXISTS=ALREADY_EXISTS "
        "errors.PERMISSION_DENIED=PERMISSION_DENIED errors.UNAUTHENTICATED=UNAUTHENTICATED "
        "errors.RESOURCE_EXHAUSTED=RESOURCE_EXHAUSTED errors.FAILED_PRECONDITION=FAILED_PRECONDITION "
        "errors.ABORTED=ABORTED errors.OUT_OF_RANGE=OUT_OF_RANGE errors.UNIMPLEMENTED=UNIMPLEMENTED "
        "errors.INTERNAL=INTERNAL errors.UNAVAILABLE=UNAVAILABLE errors.DATA_LOSS=DATA_LOSS "
        "errors.exception_type_from_error_code=exception_type_from_error_code "
        "errors.error_code_from_exception_type=error_code_from_exception_type"
    ),
    "ferroflow.python.client.session": "Session InteractiveSession",
    "ferroflow.core.messages": (
        "ConfigProto GPUOptions OptimizerOptions GraphOptions RunOptions RunMetadata GraphDef NodeDef AttrValue "
        "HistogramProto Event LogMessage SessionLog Summary SummaryMetadata MetaGraphDef NameAttrList TensorInfo "
        "summary.Event=Event summary.Summary=Summary summary.SummaryDescription=SummaryDescription "
        "summary.SessionLog=SessionLog summary.TaggedRunMetadata=TaggedRunMetadata "
        "train.Example=Example train.SequenceExample=SequenceExample train.Feature=Feature train.Features=Features "
        "train.FeatureList=FeatureList train.FeatureLists=FeatureLists train.BytesList=BytesList "
        "train.FloatList=FloatList train.Int64List=Int64List train.ClusterDef=ClusterDef train.JobDef=JobDef "
        "train.SaverDef=SaverDef train.ServerDef=ServerDef"
    ),
    "ferroflow.python.framework.config": (
        " ".join(f"config.{n}={n}" for n in _CONFIG)
        + " "
        + " ".join(f"config.experimental.{n}={n}" for n in _CONFIG_EXPERIMENTAL)
        + " config.threading.get_inter_op_parallelism_threads=get_inter_op_parallelism_threads "
        "config.threading.set_inter_op_parallelism_threads=set_inter_op_parallelism_threads "
        "config.threading.get_intra_op_parallelism_threads=get_intra_op_parallelism_threads "
        "config.threading.set_intra_op_parallelism_threads=set_intra_op_parallelism_threads "
        "config.optimizer.get_jit=get_jit config.optimizer.set_jit=set_jit "
        "config.optimizer.get_experimental_options=get_experimental_options "
        "config.optimizer.set_experimental_options=set_experimental_options"
    ),
    "ferroflow.python.framework.load_library": "load_op_library load_library load_file_system_library",
    "ferroflow.python.framework.versions": "__version__ version.VERSION=VERSION VERSION GIT_VERSION COMPILER_VERSION "
    "CXX11_ABI_FLAG MONOLITHIC_BUILD __git_version__ __compiler_version__ GRAPH_DEF_VERSION_MIN_CONSUMER "
    "GRAPH_DEF_VERSION_MIN_PRODUCER version.GRAPH_DEF_VERSION_MIN_CONSUMER=GRAPH_DEF_VERSION_MIN_CONSUMER "
    "version.GRAPH_DEF_VERSION_MIN_PRODUCER=GRAPH_DEF_VERSION_MIN_PRODUCER GRAPH_DEF_VERSION "
    "version.GRAPH_DEF_VERSION=GRAPH_DEF_VERSION version.COMPILER_VERSION=COMPILER_VERSION "
    "version.GIT_VERSION=GIT_VERSION disable_v2_behavior enable_v2_behavior disable_eager_execution "
    "enable_eager_execution enable_resource_variables disable_resource_variables resource_variables_enabled "
    "disable_control_flow_v2 enable_control_flow_v2 control_flow_v2_enabled disable_tensor_equality "
    "enable_tensor_equality disable_v2_tensorshape enable_v2_tensorshape",
    "ferroflow.python.framework.tensor_spec": "TensorSpec SparseTensorSpec TypeSpec",
    "ferroflow.python.util.compat": "compat.as_bytes=as_bytes compat.as_text=as_text compat.as_str=as_str "
    "compat.as_str_any=as_str_any compat.path_to_str=path_to_str compat.bytes_or_text_types=bytes_or_text_types "
    "compat.complex_types=complex_types compat.integral_types=integral_types compat.real_types=real_types",
    "ferroflow.compat.v1": "compat.v1=*",
}
