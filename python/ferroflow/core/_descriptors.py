"""The messages and enums of TensorFlow, written by python/tools/make_descriptors.py.

A field is `label type name number oneof`: `*` is repeated, `?` has presence, `{key` a map.
"""

MESSAGES = {
    "google.protobuf.Any": (
        ",string,type_url,1,;"
        ",bytes,value,2,;"
    ),
    "tensorflow.AllocationDescription": (
        ",int64,requested_bytes,1,;"
        ",int64,allocated_bytes,2,;"
        ",string,allocator_name,3,;"
        ",int64,allocation_id,4,;"
        ",bool,has_single_reference,5,;"
        ",uint64,ptr,6,;"
    ),
    "tensorflow.AllocationRecord": (
        ",int64,alloc_micros,1,;"
        ",int64,alloc_bytes,2,;"
    ),
    "tensorflow.AllocatorMemoryUsed": (
        ",string,allocator_name,1,;"
        ",int64,total_bytes,2,;"
        ",int64,peak_bytes,3,;"
        ",int64,live_bytes,4,;"
        ",int64,allocator_bytes_in_use,5,;"
        "*,mtensorflow.AllocationRecord,allocation_records,6,;"
    ),
    "tensorflow.AssetFileDef": (
        ",mtensorflow.TensorInfo,tensor_info,1,;"
        ",string,filename,2,;"
    ),
    "tensorflow.AttrValue": (
        ",mtensorflow.AttrValue.ListValue,list,1,value;"
        ",bytes,s,2,value;"
        ",int64,i,3,value;"
        ",float,f,4,value;"
        ",bool,b,5,value;"
        ",etensorflow.DataType,type,6,value;"
        ",mtensorflow.TensorShapeProto,shape,7,value;"
        ",mtensorflow.TensorProto,tensor,8,value;"
        ",string,placeholder,9,value;"
        ",mtensorflow.NameAttrList,func,10,value;"
    ),
    "tensorflow.AttrValue.ListValue": (
        "*,bytes,s,2,;"
        "*,int64,i,3,;"
        "*,float,f,4,;"
        "*,bool,b,5,;"
        "*,etensorflow.DataType,type,6,;"
        "*,mtensorflow.TensorShapeProto,shape,7,;"
        "*,mtensorflow.TensorProto,tensor,8,;"
        "*,mtensorflow.NameAttrList,func,9,;"
    ),
    "tensorflow.AutoParallelOptions": (
        ",bool,enable,1,;"
        ",int32,num_replicas,2,;"
    ),
    "tensorflow.BundleEntryProto": (
        ",etensorflow.DataType,dtype,1,;"
        ",mtensorflow.TensorShapeProto,shape,2,;"
        ",int32,shard_id,3,;"
        ",int64,offset,4,;"
        ",int64,size,5,;"
        ",fixed32,crc32c,6,;"
        "*,mtensorflow.TensorSliceProto,slices,7,;"
    ),
    "tensorflow.BundleHeaderProto": (
        ",int32,num_shards,1,;"
        ",etensorflow.BundleHeaderProto.Endianness,endianness,2,;"
        ",mtensorflow.VersionDef,version,3,;"
    ),
    "tensorflow.BytesList": (
        "*,bytes,value,1,;"
    ),
    "tensorflow.CallableOptions": (
        "*,string,feed,1,;"
        "*,string,fetch,2,;"
        "*,string,target,3,;"
        ",mtensorflow.RunOptions,run_options,4,;"
        "*,mtensorflow.TensorConnection,tensor_connection,5,;"
        "{string,string,feed_devices,6,;"
        "{string,string,fetch_devices,7,;"
        ",bool,fetch_skip_sync,8,;"
    ),
    "tensorflow.CheckpointState": (
        ",string,model_checkpoint_path,1,;"
        "*,string,all_model_checkpoint_paths,2,;"
        "*,double,all_model_checkpoint_timestamps,3,;"
        ",double,last_preserved_timestamp,4,;"
    ),
    "tensorflow.CleanupAllRequest": (
        "*,string,container,1,;"
    ),
    "tensorflow.CleanupAllResponse": (
        ""
    ),
    "tensorflow.CleanupGraphRequest": (
        ",int64,step_id,1,;"
    ),
    "tensorflow.CleanupGraphResponse": (
        ""
    ),
    "tensorflow.CloseSessionRequest": (
        ",string,session_handle,1,;"
    ),
    "tensorflow.CloseSessionResponse": (
        ""
    ),
    "tensorflow.ClusterDef": (
        "*,mtensorflow.JobDef,job,1,;"
    ),
    "tensorflow.ClusterDeviceFilters": (
        "*,mtensorflow.JobDeviceFilters,jobs,1,;"
    ),
    "tensorflow.CollectionDef": (
        ",mtensorflow.CollectionDef.NodeList,node_list,1,kind;"
        ",mtensorflow.CollectionDef.BytesList,bytes_list,2,kind;"
        ",mtensorflow.CollectionDef.Int64List,int64_list,3,kind;"
        ",mtensorflow.CollectionDef.FloatList,float_list,4,kind;"
        ",mtensorflow.CollectionDef.AnyList,any_list,5,kind;"
    ),
    "tensorflow.CollectionDef.AnyList": (
        "*,mgoogle.protobuf.Any,value,1,;"
    ),
    "tensorflow.CollectionDef.BytesList": (
        "*,bytes,value,1,;"
    ),
    "tensorflow.CollectionDef.FloatList": (
        "*,float,value,1,;"
    ),
    "tensorflow.CollectionDef.Int64List": (
        "*,int64,value,1,;"
    ),
    "tensorflow.CollectionDef.NodeList": (
        "*,string,value,1,;"
    ),
    "tensorflow.CompleteGroupRequest": (
        ",int32,group_key,1,;"
        ",int32,group_size,2,;"
        ",string,device_type,3,;"
        ",int32,collective_type,5,;"
        ",mtensorflow.DeviceAttributes,device_attributes,6,;"
        ",int32,ferroflow_rank,7001,;"
    ),
    "tensorflow.CompleteGroupResponse": (
        ",int32,group_key,1,;"
        ",int32,group_size,2,;"
        ",string,device_type,3,;"
        ",int32,num_tasks,4,;"
        ",bytes,communicator_key,7,;"
        "*,mtensorflow.DeviceAttributes,device_attributes,8,;"
        "*,int32,ferroflow_ranks,7001,;"
    ),
    "tensorflow.CompleteInstanceRequest": (
        ",string,name,1,;"
        ",int32,type,2,;"
        ",etensorflow.DataType,data_type,3,;"
        ",mtensorflow.TensorShapeProto,shape,4,;"
        ",int32,group_key,5,;"
        ",int32,group_size,6,;"
        ",int32,instance_key,7,;"
        ",string,device_type,8,;"
        "*,int32,subdiv_offset,9,;"
        ",string,device,10,;"
        ",bool,is_source,11,;"
        ",int64,step_id,12,;"
    ),
    "tensorflow.CompleteInstanceResponse": (
        ",int32,instance_key,1,;"
        ",int32,source_rank,2,;"
    ),
    "tensorflow.CondContextDef": (
        ",string,context_name,1,;"
        ",string,pred_name,2,;"
        ",string,pivot_name,3,;"
        ",int32,branch,4,;"
        ",mtensorflow.ValuesDef,values_def,5,;"
        "*,mtensorflow.ControlFlowContextDef,nested_contexts,6,;"
    ),
    "tensorflow.ConfigProto": (
        "{string,int32,device_count,1,;"
        ",int32,intra_op_parallelism_threads,2,;"
        ",int32,placement_period,3,;"
        "*,string,device_filters,4,;"
        ",int32,inter_op_parallelism_threads,5,;"
        ",mtensorflow.GPUOptions,gpu_options,6,;"
        ",bool,allow_soft_placement,7,;"
        ",bool,log_device_placement,8,;"
        ",bool,use_per_session_threads,9,;"
        ",mtensorflow.GraphOptions,graph_options,10,;"
        ",int64,operation_timeout_in_ms,11,;"
        "*,mtensorflow.ThreadPoolOptionProto,session_inter_op_thread_pool,12,;"
        ",mtensorflow.RPCOptions,rpc_options,13,;"
        ",mtensorflow.ClusterDef,cluster_def,14,;"
        ",bool,isolate_session_state,15,;"
        ",mtensorflow.ConfigProto.Experimental,experimental,16,;"
        ",bool,share_cluster_devices_in_session,17,;"
    ),
    "tensorflow.ConfigProto.Experimental": (
        ",string,collective_group_leader,1,;"
        ",string,executor_type,3,;"
        ",int32,recv_buf_max_chunk,4,;"
        ",bool,use_numa_affinity,5,;"
        ",bool,collective_deterministic_sequential_execution,6,;"
        ",bool,collective_nccl,7,;"
        ",bool,share_session_state_in_clusterspec_propagation,8,;"
        ",bool,disable_thread_spinning,9,;"
        ",bool,share_cluster_devices_in_session,10,;"
        ",mtensorflow.SessionMetadata,session_metadata,11,;"
        ",bool,optimize_for_static_graph,12,;"
        ",bool,enable_mlir_bridge,13,;"
        ",bool,disable_output_partition_graphs,14,;"
        ",int64,xla_fusion_autotuner_thresh,15,;"
        ",bool,enable_mlir_graph_optimization,16,;"
        ",etensorflow.ConfigProto.Experimental.MlirBridgeRollout,mlir_bridge_rollout,17,;"
        ",bool,use_tfrt,18,;"
        ",bool,disable_functional_ops_lowering,21,;"
        ",bool,xla_prefer_single_graph_cluster,22,;"
        ",mtensorflow.CoordinationServiceConfig,coordination_config,23,;"
        ",bool,disable_optimize_for_static_graph,24,;"
        ",bool,disable_eager_executor_streaming_enqueue,26,;"
    ),
    "tensorflow.ControlFlowContextDef": (
        ",mtensorflow.CondContextDef,cond_ctxt,1,ctxt;"
        ",mtensorflow.WhileContextDef,while_ctxt,2,ctxt;"
    ),
    "tensorflow.CoordinatedJob": (
        ",string,name,1,;"
        ",int32,num_tasks,2,;"
    ),
    "tensorflow.CoordinationServiceConfig": (
        ",string,service_type,1,;"
        ",string,service_leader,2,;"
        ",bool,enable_health_check,3,;"
        ",int64,cluster_register_timeout_in_ms,4,;"
        ",int64,heartbeat_timeout_in_ms,5,;"
        ",int64,shutdown_barrier_timeout_in_ms,7,;"
        ",bool,agent_destruction_without_shutdown,8,;"
        "*,string,recoverable_jobs,9,;"
        "*,mtensorflow.CoordinatedJob,coordinated_job_list,10,;"
        ",bool,allow_new_incarnation_to_reconnect,11,;"
        ",bool,force_disable,12,;"
    ),
    "tensorflow.CostGraphDef": (
        "*,mtensorflow.CostGraphDef.Node,node,1,;"
        "*,mtensorflow.CostGraphDef.AggregatedCost,cost,2,;"
    ),
    "tensorflow.CostGraphDef.AggregatedCost": (
        ",float,cost,1,;"
        ",string,dimension,2,;"
    ),
    "tensorflow.CostGraphDef.Node": (
        ",string,name,1,;"
        ",string,device,2,;"
        ",int32,id,3,;"
        "*,mtensorflow.CostGraphDef.Node.InputInfo,input_info,4,;"
        "*,mtensorflow.CostGraphDef.Node.OutputInfo,output_info,5,;"
        ",int64,temporary_memory_size,6,;"
        ",bool,is_final,7,;"
        "*,int32,control_input,8,;"
        ",int64,compute_cost,9,;"
        ",int64,host_temp_memory_size,10,;"
        ",int64,device_temp_memory_size,11,;"
        ",int64,persistent_memory_size,12,;"
        ",int64,compute_time,14,;"
        ",int64,memory_time,15,;"
        ",int64,device_persistent_memory_size,16,;"
        ",bool,inaccurate,17,;"
    ),
    "tensorflow.CostGraphDef.Node.InputInfo": (
        ",int32,preceding_node,1,;"
        ",int32,preceding_port,2,;"
    ),
    "tensorflow.CostGraphDef.Node.OutputInfo": (
        ",int64,size,1,;"
        ",int64,alias_input_port,2,;"
        ",mtensorflow.TensorShapeProto,shape,3,;"
        ",etensorflow.DataType,dtype,4,;"
    ),
    "tensorflow.CreateSessionRequest": (
        ",mtensorflow.GraphDef,graph_def,1,;"
        ",mtensorflow.ConfigProto,config,2,;"
        ",string,target,3,;"
    ),
    "tensorflow.CreateSessionResponse": (
        ",string,session_handle,1,;"
        ",int64,graph_version,2,;"
    ),
    "tensorflow.CreateWorkerSessionRequest": (
        ",string,session_handle,1,;"
        ",mtensorflow.ServerDef,server_def,2,;"
        ",bool,isolate_session_state,3,;"
        "*,mtensorflow.DeviceAttributes,cluster_device_attributes,4,;"
        ",string,master_task,5,;"
        ",int64,master_incarnation,6,;"
    ),
    "tensorflow.CreateWorkerSessionResponse": (
        ""
    ),
    "tensorflow.DebugOptions": (
        "*,mtensorflow.DebugTensorWatch,debug_tensor_watch_opts,4,;"
        ",int64,global_step,10,;"
        ",bool,reset_disk_byte_usage,11,;"
    ),
    "tensorflow.DebugTensorWatch": (
        ",string,node_name,1,;"
        ",int32,output_slot,2,;"
        "*,string,debug_ops,3,;"
        "*,string,debug_urls,4,;"
        ",bool,tolerate_debug_op_creation_failures,5,;"
    ),
    "tensorflow.DeleteWorkerSessionRequest": (
        ",string,session_handle,1,;"
    ),
    "tensorflow.DeleteWorkerSessionResponse": (
        ""
    ),
    "tensorflow.DeregisterGraphRequest": (
        ",string,graph_handle,1,;"
        ",string,session_handle,2,;"
        ",bool,create_worker_session_called,3,;"
    ),
    "tensorflow.DeregisterGraphResponse": (
        ""
    ),
    "tensorflow.DeviceAttributes": (
        ",string,name,1,;"
        ",string,device_type,2,;"
        ",int64,memory_limit,4,;"
        ",mtensorflow.DeviceLocality,locality,5,;"
        ",fixed64,incarnation,6,;"
        ",string,physical_device_desc,7,;"
        ",int64,xla_global_id,8,;"
    ),
    "tensorflow.DeviceLocality": (
        ",int32,bus_id,1,;"
        ",int32,numa_node,2,;"
        ",mtensorflow.LocalLinks,links,3,;"
    ),
    "tensorflow.DeviceStepStats": (
        ",string,device,1,;"
        "*,mtensorflow.NodeExecStats,node_stats,2,;"
        "{uint32,string,thread_names,3,;"
    ),
    "tensorflow.EmbeddingInfo": (
        ",string,tensor_name,1,;"
        ",string,metadata_path,2,;"
        ",string,bookmarks_path,3,;"
        "*,uint32,tensor_shape,4,;"
        ",mtensorflow.SpriteMetadata,sprite,5,;"
        ",string,tensor_path,6,;"
    ),
    "tensorflow.Event": (
        ",double,wall_time,1,;"
        ",int64,step,2,;"
        ",string,file_version,3,what;"
        ",bytes,graph_def,4,what;"
        ",mtensorflow.Summary,summary,5,what;"
        ",mtensorflow.LogMessage,log_message,6,what;"
        ",mtensorflow.SessionLog,session_log,7,what;"
        ",mtensorflow.TaggedRunMetadata,tagged_run_metadata,8,what;"
        ",bytes,meta_graph_def,9,what;"
        ",mtensorflow.SourceMetadata,source_metadata,10,;"
    ),
    "tensorflow.Example": (
        ",mtensorflow.Features,features,1,;"
    ),
    "tensorflow.ExecutorOpts": (
        ",bool,record_costs,1,;"
        ",bool,record_timeline,3,;"
        ",bool,record_partition_graphs,4,;"
        ",bool,report_tensor_allocations_upon_oom,5,;"
    ),
    "tensorflow.ExtendSessionRequest": (
        ",string,session_handle,1,;"
        ",mtensorflow.GraphDef,graph_def,2,;"
        ",int64,current_graph_version,3,;"
    ),
    "tensorflow.ExtendSessionResponse": (
        ",int64,new_graph_version,4,;"
    ),
    "tensorflow.Feature": (
        ",mtensorflow.BytesList,bytes_list,1,kind;"
        ",mtensorflow.FloatList,float_list,2,kind;"
        ",mtensorflow.Int64List,int64_list,3,kind;"
    ),
    "tensorflow.FeatureList": (
        "*,mtensorflow.Feature,feature,1,;"
    ),
    "tensorflow.FeatureLists": (
        "{string,mtensorflow.FeatureList,feature_list,1,;"
    ),
    "tensorflow.Features": (
        "{string,mtensorflow.Feature,feature,1,;"
    ),
    "tensorflow.FerroflowLink": (
        ",uint32,version,1,;"
        ",bytes,token,2,;"
        ",string,local_name,3,;"
    ),
    "tensorflow.FloatList": (
        "*,float,value,1,;"
    ),
    "tensorflow.FunctionDef": (
        ",mtensorflow.OpDef,signature,1,;"
        "*,mtensorflow.NodeDef,node_def,3,;"
        "{string,string,ret,4,;"
        "{string,mtensorflow.AttrValue,attr,5,;"
        "{string,string,control_ret,6,;"
        "{uint32,mtensorflow.FunctionDef.ArgAttrs,arg_attr,7,;"
        "{uint32,uint32,resource_arg_unique_id,8,;"
    ),
    "tensorflow.FunctionDef.ArgAttrs": (
        "{string,mtensorflow.AttrValue,attr,1,;"
    ),
    "tensorflow.FunctionDefLibrary": (
        "*,mtensorflow.FunctionDef,function,1,;"
        "*,mtensorflow.GradientDef,gradient,2,;"
        "*,mtensorflow.RegisteredGradient,registered_gradients,3,;"
    ),
    "tensorflow.GPUOptions": (
        ",double,per_process_gpu_memory_fraction,1,;"
        ",string,allocator_type,2,;"
        ",int64,deferred_deletion_bytes,3,;"
        ",bool,allow_growth,4,;"
        ",string,visible_device_list,5,;"
        ",int32,polling_active_delay_usecs,6,;"
        ",int32,polling_inactive_delay_msecs,7,;"
        ",bool,force_gpu_compatible,8,;"
        ",mtensorflow.GPUOptions.Experimental,experimental,9,;"
    ),
    "tensorflow.GPUOptions.Experimental": (
        "*,mtensorflow.GPUOptions.Experimental.VirtualDevices,virtual_devices,1,;"
        ",bool,use_unified_memory,2,;"
        ",int32,num_dev_to_dev_copy_streams,3,;"
        ",string,collective_ring_order,4,;"
        ",bool,timestamped_allocator,5,;"
        ",int32,kernel_tracker_max_interval,7,;"
        ",int32,kernel_tracker_max_bytes,8,;"
        ",int32,kernel_tracker_max_pending,9,;"
        ",double,internal_fragmentation_fraction,10,;"
        ",bool,use_cuda_malloc_async,11,;"
        ",bool,disallow_retry_on_allocation_failure,12,;"
        ",float,gpu_host_mem_limit_in_mb,13,;"
        ",bool,gpu_host_mem_disallow_growth,14,;"
        ",int32,num_virtual_devices_per_gpu,15,;"
        ",int32,gpu_system_memory_size_in_mb,16,;"
    ),
    "tensorflow.GPUOptions.Experimental.VirtualDevices": (
        "*,float,memory_limit_mb,1,;"
        "*,int32,priority,2,;"
        "*,int32,device_ordinal,3,;"
    ),
    "tensorflow.GetStatusRequest": (
        ""
    ),
    "tensorflow.GetStatusResponse": (
        "*,mtensorflow.DeviceAttributes,device_attributes,1,;"
        ",mtensorflow.FerroflowLink,ferroflow_link,7001,;"
    ),
    "tensorflow.GetStepSequenceRequest": (
        "*,int64,graph_key,1,;"
    ),
    "tensorflow.GetStepSequenceResponse": (
        "*,mtensorflow.StepSequence,step_sequence,1,;"
    ),
    "tensorflow.GradientDef": (
        ",string,function_name,1,;"
        ",string,gradient_func,2,;"
    ),
    "tensorflow.GraphDef": (
        "*,mtensorflow.NodeDef,node,1,;"
        ",mtensorflow.FunctionDefLibrary,library,2,;"
        ",int32,version,3,;"
        ",mtensorflow.VersionDef,versions,4,;"
        "?,bytes,debug_info,5,;"
    ),
    "tensorflow.GraphOptions": (
        ",bool,enable_recv_scheduling,2,;"
        ",mtensorflow.OptimizerOptions,optimizer_options,3,;"
        ",int64,build_cost_model,4,;"
        ",bool,infer_shapes,5,;"
        ",bool,place_pruned_graph,6,;"
        ",bool,enable_bfloat16_sendrecv,7,;"
        ",int32,timeline_step,8,;"
        ",int64,build_cost_model_after,9,;"
        ",mtensorflow.RewriterConfig,rewrite_options,10,;"
    ),
    "tensorflow.HistogramProto": (
        ",double,min,1,;"
        ",double,max,2,;"
        ",double,num,3,;"
        ",double,sum,4,;"
        ",double,sum_squares,5,;"
        "*,double,bucket_limit,6,;"
        "*,double,bucket,7,;"
    ),
    "tensorflow.Int64List": (
        "*,int64,value,1,;"
    ),
    "tensorflow.InterconnectLink": (
        ",int32,device_id,1,;"
        ",string,type,2,;"
        ",int32,strength,3,;"
    ),
    "tensorflow.JobDef": (
        ",string,name,1,;"
        "{int32,string,tasks,2,;"
    ),
    "tensorflow.JobDeviceFilters": (
        ",string,name,1,;"
        "{int32,mtensorflow.TaskDeviceFilters,tasks,2,;"
    ),
    "tensorflow.LabeledStepStats": (
        ",int64,step_id,1,;"
        ",mtensorflow.StepStats,step_stats,2,;"
    ),
    "tensorflow.ListDevicesRequest": (
        ",string,session_handle,1,;"
    ),
    "tensorflow.ListDevicesResponse": (
        "*,mtensorflow.DeviceAttributes,local_device,1,;"
        "*,mtensorflow.DeviceAttributes,remote_device,2,;"
    ),
    "tensorflow.LocalLinks": (
        "*,mtensorflow.InterconnectLink,link,1,;"
    ),
    "tensorflow.LogMessage": (
        ",etensorflow.LogMessage.Level,level,1,;"
        ",string,message,2,;"
    ),
    "tensorflow.LoggingRequest": (
        ",bool,enable_rpc_logging,1,;"
        ",bool,clear,2,;"
        "*,int64,fetch_step_id,3,;"
        ",bool,disable_rpc_logging,4,;"
    ),
    "tensorflow.LoggingResponse": (
        "*,mtensorflow.LabeledStepStats,step,1,;"
    ),
    "tensorflow.MakeCallableRequest": (
        ",string,session_handle,1,;"
        ",mtensorflow.CallableOptions,options,2,;"
        ",int64,request_id,3,;"
    ),
    "tensorflow.MakeCallableResponse": (
        ",int64,handle,1,;"
    ),
    "tensorflow.MarkRecvFinishedRequest": (
        ",int64,request_id,1,;"
    ),
    "tensorflow.MarkRecvFinishedResponse": (
        ""
    ),
    "tensorflow.MemoryStats": (
        ",int64,temp_memory_size,1,;"
        ",int64,device_temp_memory_size,2,;"
        ",int64,persistent_memory_size,3,;"
        ",int64,device_persistent_memory_size,4,;"
        "*,int64,persistent_tensor_alloc_ids,5,;"
        "*,int64,device_persistent_tensor_alloc_ids,6,;"
    ),
    "tensorflow.MetaGraphDef": (
        ",mtensorflow.MetaGraphDef.MetaInfoDef,meta_info_def,1,;"
        ",mtensorflow.GraphDef,graph_def,2,;"
        ",mtensorflow.SaverDef,saver_def,3,;"
        "{string,mtensorflow.CollectionDef,collection_def,4,;"
        "{string,mtensorflow.SignatureDef,signature_def,5,;"
        "*,mtensorflow.AssetFileDef,asset_file_def,6,;"
        "?,bytes,object_graph_def,7,;"
    ),
    "tensorflow.MetaGraphDef.MetaInfoDef": (
        ",string,meta_graph_version,1,;"
        ",mtensorflow.OpList,stripped_op_list,2,;"
        ",mgoogle.protobuf.Any,any_info,3,;"
        "*,string,tags,4,;"
        ",string,tensorflow_version,5,;"
        ",string,tensorflow_git_version,6,;"
        ",bool,stripped_default_attrs,7,;"
        "{string,string,function_aliases,8,;"
    ),
    "tensorflow.NameAttrList": (
        ",string,name,1,;"
        "{string,mtensorflow.AttrValue,attr,2,;"
    ),
    "tensorflow.NamedTensorProto": (
        ",string,name,1,;"
        ",mtensorflow.TensorProto,tensor,2,;"
    ),
    "tensorflow.NodeDef": (
        ",string,name,1,;"
        ",string,op,2,;"
        "*,string,input,3,;"
        ",string,device,4,;"
        "{string,mtensorflow.AttrValue,attr,5,;"
        ",mtensorflow.NodeDef.ExperimentalDebugInfo,experimental_debug_info,6,;"
        "?,bytes,experimental_type,7,;"
    ),
    "tensorflow.NodeDef.ExperimentalDebugInfo": (
        "*,string,original_node_names,1,;"
        "*,string,original_func_names,2,;"
    ),
    "tensorflow.NodeExecStats": (
        ",string,node_name,1,;"
        ",int64,all_start_micros,2,;"
        ",int64,op_start_rel_micros,3,;"
        ",int64,op_end_rel_micros,4,;"
        ",int64,all_end_rel_micros,5,;"
        "*,mtensorflow.AllocatorMemoryUsed,memory,6,;"
        "*,mtensorflow.NodeOutput,output,7,;"
        ",string,timeline_label,8,;"
        ",int64,scheduled_micros,9,;"
        ",uint32,thread_id,10,;"
        "*,mtensorflow.AllocationDescription,referenced_tensor,11,;"
        ",mtensorflow.MemoryStats,memory_stats,12,;"
        ",int64,all_start_nanos,13,;"
        ",int64,op_start_rel_nanos,14,;"
        ",int64,op_end_rel_nanos,15,;"
        ",int64,all_end_rel_nanos,16,;"
        ",int64,scheduled_nanos,17,;"
    ),
    "tensorflow.NodeOutput": (
        ",int32,slot,1,;"
        ",mtensorflow.TensorDescription,tensor_description,3,;"
    ),
    "tensorflow.OpDef": (
        ",string,name,1,;"
        "*,mtensorflow.OpDef.ArgDef,input_arg,2,;"
        "*,mtensorflow.OpDef.ArgDef,output_arg,3,;"
        "*,mtensorflow.OpDef.AttrDef,attr,4,;"
        ",string,summary,5,;"
        ",string,description,6,;"
        ",mtensorflow.OpDeprecation,deprecation,8,;"
        ",bool,is_aggregate,16,;"
        ",bool,is_stateful,17,;"
        ",bool,is_commutative,18,;"
        ",bool,allows_uninitialized_input,19,;"
        "*,string,control_output,20,;"
        ",bool,is_distributed_communication,21,;"
    ),
    "tensorflow.OpDef.ArgDef": (
        ",string,name,1,;"
        ",string,description,2,;"
        ",etensorflow.DataType,type,3,;"
        ",string,type_attr,4,;"
        ",string,number_attr,5,;"
        ",string,type_list_attr,6,;"
        "*,mtensorflow.ResourceHandleProto.DtypeAndShape,handle_data,7,;"
        ",bool,is_ref,16,;"
        "?,bytes,experimental_full_type,17,;"
    ),
    "tensorflow.OpDef.AttrDef": (
        ",string,name,1,;"
        ",string,type,2,;"
        ",mtensorflow.AttrValue,default_value,3,;"
        ",string,description,4,;"
        ",bool,has_minimum,5,;"
        ",int64,minimum,6,;"
        ",mtensorflow.AttrValue,allowed_values,7,;"
    ),
    "tensorflow.OpDeprecation": (
        ",int32,version,1,;"
        ",string,explanation,2,;"
    ),
    "tensorflow.OpList": (
        "*,mtensorflow.OpDef,op,1,;"
    ),
    "tensorflow.OptimizerOptions": (
        ",bool,do_common_subexpression_elimination,1,;"
        ",bool,do_constant_folding,2,;"
        ",etensorflow.OptimizerOptions.Level,opt_level,3,;"
        ",bool,do_function_inlining,4,;"
        ",etensorflow.OptimizerOptions.GlobalJitLevel,global_jit_level,5,;"
        ",int64,max_folded_constant_in_bytes,6,;"
        ",bool,cpu_global_jit,7,;"
    ),
    "tensorflow.PartialRunSetupRequest": (
        ",string,session_handle,1,;"
        "*,string,feed,2,;"
        "*,string,fetch,3,;"
        "*,string,target,4,;"
        ",int64,request_id,5,;"
    ),
    "tensorflow.PartialRunSetupResponse": (
        ",string,partial_run_handle,1,;"
    ),
    "tensorflow.ProjectorConfig": (
        ",string,model_checkpoint_path,1,;"
        "*,mtensorflow.EmbeddingInfo,embeddings,2,;"
        ",string,model_checkpoint_dir,3,;"
    ),
    "tensorflow.QueueRunnerDef": (
        ",string,queue_name,1,;"
        "*,string,enqueue_op_name,2,;"
        ",string,close_op_name,3,;"
        ",string,cancel_op_name,4,;"
        "*,etensorflow.error.Code,queue_closed_exception_types,5,;"
    ),
    "tensorflow.RPCOptions": (
        ",bool,use_rpc_for_inprocess_master,1,;"
        ",string,compression_algorithm,2,;"
        ",int32,compression_level,3,;"
        ",bool,cache_rpc_response,4,;"
        ",bool,disable_session_connection_sharing,5,;"
        ",int32,num_channels_per_target,6,;"
    ),
    "tensorflow.RecvBufRequest": (
        ",int64,step_id,1,;"
        ",string,buf_rendezvous_key,2,;"
        ",int64,num_bytes,3,;"
        ",fixed64,buf_ptr,4,;"
        ",mtensorflow.DeviceLocality,client_locality,5,;"
        ",mtensorflow.DeviceLocality,server_locality,6,;"
        ",mgoogle.protobuf.Any,transport_options,7,;"
        ",string,src_device,8,;"
        ",string,dst_device,9,;"
        ",int64,request_id,10,;"
        ",uint64,src_incarnation,11,;"
    ),
    "tensorflow.RecvBufRespExtra": (
        "*,bytes,tensor_content,1,;"
    ),
    "tensorflow.RecvBufResponse": (
        ",fixed64,buf_ptr,1,;"
        ",int64,num_bytes,2,;"
        ",bool,is_dead,3,;"
        ",mgoogle.protobuf.Any,transport_options,4,;"
        ",int64,send_start_micros,5,;"
        ",bool,require_ack,6,;"
    ),
    "tensorflow.RecvTensorRequest": (
        ",int64,step_id,1,;"
        ",string,rendezvous_key,2,;"
        ",bool,dma_ok,3,;"
        ",mtensorflow.DeviceLocality,client_locality,4,;"
        ",mtensorflow.DeviceLocality,server_locality,5,;"
        ",mgoogle.protobuf.Any,transport_options,6,;"
        ",int64,request_id,7,;"
    ),
    "tensorflow.RecvTensorResponse": (
        ",mtensorflow.TensorProto,tensor,1,;"
        ",bool,is_dead,2,;"
        ",int64,send_start_micros,3,;"
        ",mgoogle.protobuf.Any,transport_options,4,;"
        ",bool,require_ack,5,;"
    ),
    "tensorflow.RegisterGraphRequest": (
        ",string,session_handle,1,;"
        ",mtensorflow.GraphDef,graph_def,2,;"
        ",bool,has_control_flow,3,;"
        ",mtensorflow.GraphOptions,graph_options,4,;"
        ",mtensorflow.DebugOptions,debug_options,5,;"
        ",bool,create_worker_session_called,6,;"
        ",int64,collective_graph_key,7,;"
        ",mtensorflow.ConfigProto,config_proto,8,;"
    ),
    "tensorflow.RegisterGraphResponse": (
        ",string,graph_handle,1,;"
    ),
    "tensorflow.RegisteredGradient": (
        ",string,gradient_func,1,;"
        ",string,registered_op_type,2,;"
    ),
    "tensorflow.ReleaseCallableRequest": (
        ",string,session_handle,1,;"
        ",int64,handle,2,;"
    ),
    "tensorflow.ReleaseCallableResponse": (
        ""
    ),
    "tensorflow.ResetRequest": (
        "*,string,container,1,;"
        "*,string,device_filters,2,;"
    ),
    "tensorflow.ResetResponse": (
        ""
    ),
    "tensorflow.ResourceHandleProto": (
        ",string,device,1,;"
        ",string,container,2,;"
        ",string,name,3,;"
        ",uint64,hash_code,4,;"
        ",string,maybe_type_name,5,;"
        "*,mtensorflow.ResourceHandleProto.DtypeAndShape,dtypes_and_shapes,6,;"
    ),
    "tensorflow.ResourceHandleProto.DtypeAndShape": (
        ",etensorflow.DataType,dtype,1,;"
        ",mtensorflow.TensorShapeProto,shape,2,;"
    ),
    "tensorflow.RewriterConfig": (
        ",etensorflow.RewriterConfig.Toggle,layout_optimizer,1,;"
        ",bool,disable_model_pruning,2,;"
        ",etensorflow.RewriterConfig.Toggle,constant_folding,3,;"
        ",etensorflow.RewriterConfig.MemOptType,memory_optimization,4,;"
        ",mtensorflow.AutoParallelOptions,auto_parallel,5,;"
        ",string,memory_optimizer_target_node_name_scope,6,;"
        ",etensorflow.RewriterConfig.Toggle,arithmetic_optimization,7,;"
        ",etensorflow.RewriterConfig.Toggle,dependency_optimization,8,;"
        ",etensorflow.RewriterConfig.Toggle,loop_optimization,9,;"
        ",etensorflow.RewriterConfig.Toggle,function_optimization,10,;"
        ",etensorflow.RewriterConfig.Toggle,debug_stripper,11,;"
        ",etensorflow.RewriterConfig.NumIterationsType,meta_optimizer_iterations,12,;"
        ",etensorflow.RewriterConfig.Toggle,shape_optimization,13,;"
        ",etensorflow.RewriterConfig.Toggle,remapping,14,;"
        ",etensorflow.RewriterConfig.Toggle,scoped_allocator_optimization,15,;"
        ",mtensorflow.ScopedAllocatorOptions,scoped_allocator_opts,16,;"
        ",int32,min_graph_nodes,17,;"
        ",etensorflow.RewriterConfig.Toggle,pin_to_host_optimization,18,;"
        ",bool,disable_meta_optimizer,19,;"
        ",int64,meta_optimizer_timeout_ms,20,;"
        ",bool,fail_on_optimizer_errors,21,;"
        ",etensorflow.RewriterConfig.Toggle,implementation_selector,22,;"
        ",etensorflow.RewriterConfig.Toggle,auto_mixed_precision,23,;"
        ",etensorflow.RewriterConfig.Toggle,common_subgraph_elimination,24,;"
        ",etensorflow.RewriterConfig.Toggle,auto_mixed_precision_mkl,25,;"
        ",bool,experimental_disable_compressed_tensor_optimization,26,;"
        ",bool,experimental_disable_folding_quantization_emulation,27,;"
        ",etensorflow.RewriterConfig.Toggle,use_plugin_optimizers,28,;"
        ",etensorflow.RewriterConfig.Toggle,auto_mixed_precision_cpu,29,;"
        ",etensorflow.RewriterConfig.Toggle,experimental_conditional_code_motion,30,;"
        ",etensorflow.RewriterConfig.Toggle,auto_mixed_precision_onednn_bfloat16,31,;"
        ",bool,disable_tfg_optimizer,32,;"
        ",etensorflow.RewriterConfig.CpuLayout,cpu_layout_conversion,50,;"
        "*,string,optimizers,100,;"
        "*,mtensorflow.RewriterConfig.CustomGraphOptimizer,custom_optimizers,200,;"
        ",mtensorflow.VerifierConfig,inter_optimizer_verifier_config,300,;"
        ",mtensorflow.VerifierConfig,post_optimization_verifier_config,301,;"
    ),
    "tensorflow.RewriterConfig.CustomGraphOptimizer": (
        ",string,name,1,;"
        "{string,mtensorflow.AttrValue,parameter_map,2,;"
    ),
    "tensorflow.RunCallableRequest": (
        ",string,session_handle,1,;"
        ",int64,handle,2,;"
        "*,mtensorflow.TensorProto,feed,3,;"
        ",int64,request_id,4,;"
    ),
    "tensorflow.RunCallableResponse": (
        "*,mtensorflow.TensorProto,fetch,1,;"
        ",mtensorflow.RunMetadata,metadata,2,;"
    ),
    "tensorflow.RunGraphRequest": (
        ",string,graph_handle,1,;"
        ",int64,step_id,2,;"
        "*,mtensorflow.NamedTensorProto,send,3,;"
        "*,string,recv_key,4,;"
        ",mtensorflow.ExecutorOpts,exec_opts,5,;"
        ",bool,is_partial,6,;"
        ",bool,is_last_partial_run,7,;"
        ",string,session_handle,8,;"
        ",bool,store_errors_in_response_body,9,;"
        ",bool,create_worker_session_called,10,;"
        ",int64,request_id,11,;"
    ),
    "tensorflow.RunGraphResponse": (
        "*,mtensorflow.NamedTensorProto,recv,1,;"
        ",mtensorflow.StepStats,step_stats,2,;"
        ",mtensorflow.CostGraphDef,cost_graph,3,;"
        "*,mtensorflow.GraphDef,partition_graph,4,;"
        ",etensorflow.error.Code,status_code,5,;"
        ",string,status_error_message,6,;"
    ),
    "tensorflow.RunMetadata": (
        ",mtensorflow.StepStats,step_stats,1,;"
        ",mtensorflow.CostGraphDef,cost_graph,2,;"
        "*,mtensorflow.GraphDef,partition_graphs,3,;"
        "*,mtensorflow.RunMetadata.FunctionGraphs,function_graphs,4,;"
        ",mtensorflow.SessionMetadata,session_metadata,5,;"
    ),
    "tensorflow.RunMetadata.FunctionGraphs": (
        "*,mtensorflow.GraphDef,partition_graphs,1,;"
        ",mtensorflow.GraphDef,pre_optimization_graph,2,;"
        ",mtensorflow.GraphDef,post_optimization_graph,3,;"
    ),
    "tensorflow.RunOptions": (
        ",etensorflow.RunOptions.TraceLevel,trace_level,1,;"
        ",int64,timeout_in_ms,2,;"
        ",int32,inter_op_thread_pool,3,;"
        ",bool,output_partition_graphs,5,;"
        ",mtensorflow.DebugOptions,debug_options,6,;"
        ",bool,report_tensor_allocations_upon_oom,7,;"
        ",mtensorflow.RunOptions.Experimental,experimental,8,;"
    ),
    "tensorflow.RunOptions.Experimental": (
        ",int64,collective_graph_key,1,;"
        ",bool,use_run_handler_pool,2,;"
        ",mtensorflow.RunOptions.Experimental.RunHandlerPoolOptions,run_handler_pool_options,3,;"
    ),
    "tensorflow.RunOptions.Experimental.RunHandlerPoolOptions": (
        ",int64,priority,1,;"
    ),
    "tensorflow.RunStepRequest": (
        ",string,session_handle,1,;"
        "*,mtensorflow.NamedTensorProto,feed,2,;"
        "*,string,fetch,3,;"
        "*,string,target,4,;"
        ",mtensorflow.RunOptions,options,5,;"
        ",string,partial_run_handle,6,;"
        ",bool,store_errors_in_response_body,7,;"
        ",int64,request_id,8,;"
    ),
    "tensorflow.RunStepResponse": (
        "*,mtensorflow.NamedTensorProto,tensor,1,;"
        ",mtensorflow.RunMetadata,metadata,2,;"
        ",etensorflow.error.Code,status_code,3,;"
        ",string,status_error_message,4,;"
    ),
    "tensorflow.SaveSliceInfoDef": (
        ",string,full_name,1,;"
        "*,int64,full_shape,2,;"
        "*,int64,var_offset,3,;"
        "*,int64,var_shape,4,;"
    ),
    "tensorflow.SavedModel": (
        ",int64,saved_model_schema_version,1,;"
        "*,mtensorflow.MetaGraphDef,meta_graphs,2,;"
    ),
    "tensorflow.SavedSlice": (
        ",string,name,1,;"
        ",mtensorflow.TensorSliceProto,slice,2,;"
        ",mtensorflow.TensorProto,data,3,;"
    ),
    "tensorflow.SavedSliceMeta": (
        ",string,name,1,;"
        ",mtensorflow.TensorShapeProto,shape,2,;"
        ",etensorflow.DataType,type,3,;"
        "*,mtensorflow.TensorSliceProto,slice,4,;"
    ),
    "tensorflow.SavedTensorSliceMeta": (
        "*,mtensorflow.SavedSliceMeta,tensor,1,;"
        ",mtensorflow.VersionDef,versions,2,;"
    ),
    "tensorflow.SavedTensorSlices": (
        ",mtensorflow.SavedTensorSliceMeta,meta,1,;"
        ",mtensorflow.SavedSlice,data,2,;"
    ),
    "tensorflow.SaverDef": (
        ",string,filename_tensor_name,1,;"
        ",string,save_tensor_name,2,;"
        ",string,restore_op_name,3,;"
        ",int32,max_to_keep,4,;"
        ",bool,sharded,5,;"
        ",float,keep_checkpoint_every_n_hours,6,;"
        ",etensorflow.SaverDef.CheckpointFormatVersion,version,7,;"
    ),
    "tensorflow.ScopedAllocatorOptions": (
        "*,string,enable_op,1,;"
    ),
    "tensorflow.SequenceExample": (
        ",mtensorflow.Features,context,1,;"
        ",mtensorflow.FeatureLists,feature_lists,2,;"
    ),
    "tensorflow.ServerDef": (
        ",mtensorflow.ClusterDef,cluster,1,;"
        ",string,job_name,2,;"
        ",int32,task_index,3,;"
        ",mtensorflow.ConfigProto,default_session_config,4,;"
        ",string,protocol,5,;"
        ",int32,port,6,;"
        ",mtensorflow.ClusterDeviceFilters,cluster_device_filters,7,;"
        ",int32,replica,8,;"
    ),
    "tensorflow.SessionLog": (
        ",etensorflow.SessionLog.SessionStatus,status,1,;"
        ",string,checkpoint_path,2,;"
        ",string,msg,3,;"
    ),
    "tensorflow.SessionMetadata": (
        ",string,name,1,;"
        ",int64,version,2,;"
    ),
    "tensorflow.SignatureDef": (
        "{string,mtensorflow.TensorInfo,inputs,1,;"
        "{string,mtensorflow.TensorInfo,outputs,2,;"
        ",string,method_name,3,;"
        "{string,mtensorflow.TensorProto,defaults,4,;"
    ),
    "tensorflow.SourceMetadata": (
        ",string,writer,1,;"
    ),
    "tensorflow.SpriteMetadata": (
        ",string,image_path,1,;"
        "*,uint32,single_image_dim,2,;"
    ),
    "tensorflow.StepSequence": (
        ",int64,graph_key,1,;"
        ",int64,next_step_id,2,;"
    ),
    "tensorflow.StepStats": (
        "*,mtensorflow.DeviceStepStats,dev_stats,1,;"
    ),
    "tensorflow.Summary": (
        "*,mtensorflow.Summary.Value,value,1,;"
    ),
    "tensorflow.Summary.Audio": (
        ",float,sample_rate,1,;"
        ",int64,num_channels,2,;"
        ",int64,length_frames,3,;"
        ",bytes,encoded_audio_string,4,;"
        ",string,content_type,5,;"
    ),
    "tensorflow.Summary.Image": (
        ",int32,height,1,;"
        ",int32,width,2,;"
        ",int32,colorspace,3,;"
        ",bytes,encoded_image_string,4,;"
    ),
    "tensorflow.Summary.Value": (
        ",string,tag,1,;"
        ",string,node_name,7,;"
        ",mtensorflow.SummaryMetadata,metadata,9,;"
        ",float,simple_value,2,value;"
        ",bytes,obsolete_old_style_histogram,3,value;"
        ",mtensorflow.Summary.Image,image,4,value;"
        ",mtensorflow.HistogramProto,histo,5,value;"
        ",mtensorflow.Summary.Audio,audio,6,value;"
        ",mtensorflow.TensorProto,tensor,8,value;"
    ),
    "tensorflow.SummaryDescription": (
        ",string,type_hint,1,;"
    ),
    "tensorflow.SummaryMetadata": (
        ",mtensorflow.SummaryMetadata.PluginData,plugin_data,1,;"
        ",string,display_name,2,;"
        ",string,summary_description,3,;"
        ",etensorflow.DataClass,data_class,4,;"
    ),
    "tensorflow.SummaryMetadata.PluginData": (
        ",string,plugin_name,1,;"
        ",bytes,content,2,;"
    ),
    "tensorflow.TaggedRunMetadata": (
        ",string,tag,1,;"
        ",bytes,run_metadata,2,;"
    ),
    "tensorflow.TaskDeviceFilters": (
        "*,string,device_filters,1,;"
    ),
    "tensorflow.TensorConnection": (
        ",string,from_tensor,1,;"
        ",string,to_tensor,2,;"
    ),
    "tensorflow.TensorDescription": (
        ",etensorflow.DataType,dtype,1,;"
        ",mtensorflow.TensorShapeProto,shape,2,;"
        ",mtensorflow.AllocationDescription,allocation_description,4,;"
    ),
    "tensorflow.TensorInfo": (
        ",etensorflow.DataType,dtype,2,;"
        ",mtensorflow.TensorShapeProto,tensor_shape,3,;"
        ",string,name,1,encoding;"
        ",mtensorflow.TensorInfo.CooSparse,coo_sparse,4,encoding;"
        ",mtensorflow.TensorInfo.CompositeTensor,composite_tensor,5,encoding;"
    ),
    "tensorflow.TensorInfo.CompositeTensor": (
        "?,bytes,type_spec,1,;"
        "*,mtensorflow.TensorInfo,components,2,;"
    ),
    "tensorflow.TensorInfo.CooSparse": (
        ",string,values_tensor_name,1,;"
        ",string,indices_tensor_name,2,;"
        ",string,dense_shape_tensor_name,3,;"
    ),
    "tensorflow.TensorProto": (
        ",etensorflow.DataType,dtype,1,;"
        ",mtensorflow.TensorShapeProto,tensor_shape,2,;"
        ",int32,version_number,3,;"
        ",bytes,tensor_content,4,;"
        "*,float,float_val,5,;"
        "*,double,double_val,6,;"
        "*,int32,int_val,7,;"
        "*,bytes,string_val,8,;"
        "*,float,scomplex_val,9,;"
        "*,int64,int64_val,10,;"
        "*,bool,bool_val,11,;"
        "*,double,dcomplex_val,12,;"
        "*,int32,half_val,13,;"
        "*,mtensorflow.ResourceHandleProto,resource_handle_val,14,;"
        "*,mtensorflow.VariantTensorDataProto,variant_val,15,;"
        "*,uint32,uint32_val,16,;"
        "*,uint64,uint64_val,17,;"
        ",bytes,float8_val,18,;"
    ),
    "tensorflow.TensorShapeProto": (
        "*,mtensorflow.TensorShapeProto.Dim,dim,2,;"
        ",bool,unknown_rank,3,;"
    ),
    "tensorflow.TensorShapeProto.Dim": (
        ",int64,size,1,;"
        ",string,name,2,;"
    ),
    "tensorflow.TensorSliceProto": (
        "*,mtensorflow.TensorSliceProto.Extent,extent,1,;"
    ),
    "tensorflow.TensorSliceProto.Extent": (
        ",int64,start,1,;"
        ",int64,length,2,has_length;"
    ),
    "tensorflow.ThreadPoolOptionProto": (
        ",int32,num_threads,1,;"
        ",string,global_name,2,;"
    ),
    "tensorflow.TraceOpts": (
        ",double,duration,1,;"
        ",bool,use_step_profiler,2,;"
        ",bool,use_kernel_profiler,3,;"
        ",bool,use_extended_profiler,4,;"
        ",bool,use_gpu_profiler,5,;"
        ",bool,use_sample_profiler,6,;"
    ),
    "tensorflow.TracingRequest": (
        ",mtensorflow.TraceOpts,options,1,;"
    ),
    "tensorflow.TracingResponse": (
        ""
    ),
    "tensorflow.TrackableObjectGraph": (
        "*,mtensorflow.TrackableObjectGraph.TrackableObject,nodes,1,;"
    ),
    "tensorflow.TrackableObjectGraph.TrackableObject": (
        "*,mtensorflow.TrackableObjectGraph.TrackableObject.ObjectReference,children,1,;"
        "*,mtensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor,attributes,2,;"
        "*,mtensorflow.TrackableObjectGraph.TrackableObject.SlotVariableReference,slot_variables,3,;"
    ),
    "tensorflow.TrackableObjectGraph.TrackableObject.ObjectReference": (
        ",int32,node_id,1,;"
        ",string,local_name,2,;"
    ),
    "tensorflow.TrackableObjectGraph.TrackableObject.SerializedTensor": (
        ",string,name,1,;"
        ",string,full_name,2,;"
        ",string,checkpoint_key,3,;"
    ),
    "tensorflow.TrackableObjectGraph.TrackableObject.SlotVariableReference": (
        ",int32,original_variable_node_id,1,;"
        ",string,slot_name,2,;"
        ",int32,slot_variable_node_id,3,;"
    ),
    "tensorflow.ValuesDef": (
        "*,string,values,1,;"
        "{string,string,external_values,2,;"
    ),
    "tensorflow.VariableDef": (
        ",string,variable_name,1,;"
        ",string,initializer_name,2,;"
        ",string,snapshot_name,3,;"
        ",mtensorflow.SaveSliceInfoDef,save_slice_info_def,4,;"
        ",bool,is_resource,5,;"
        ",string,initial_value_name,6,;"
        ",bool,trainable,7,;"
        ",etensorflow.VariableSynchronization,synchronization,8,;"
        ",etensorflow.VariableAggregation,aggregation,9,;"
    ),
    "tensorflow.VariantTensorDataProto": (
        ",string,type_name,1,;"
        ",bytes,metadata,2,;"
        "*,mtensorflow.TensorProto,tensors,3,;"
    ),
    "tensorflow.VerifierConfig": (
        ",int64,verification_timeout_in_ms,1,;"
        ",etensorflow.VerifierConfig.Toggle,structure_verifier,2,;"
    ),
    "tensorflow.VersionDef": (
        ",int32,producer,1,;"
        ",int32,min_consumer,2,;"
        "*,int32,bad_consumers,3,;"
    ),
    "tensorflow.WhileContextDef": (
        ",string,context_name,1,;"
        ",int32,parallel_iterations,2,;"
        ",bool,back_prop,3,;"
        ",bool,swap_memory,4,;"
        ",string,pivot_name,5,;"
        ",string,pivot_for_pred_name,6,;"
        ",string,pivot_for_body_name,7,;"
        "*,string,loop_exit_names,8,;"
        ",mtensorflow.ValuesDef,values_def,9,;"
        "*,string,loop_enter_names,10,;"
        ",string,maximum_iterations_name,11,;"
        "*,mtensorflow.ControlFlowContextDef,nested_contexts,12,;"
    ),
    "tensorflow.distributed_runtime.GrpcPayloadContainer": (
        "{string,bytes,payloads,1,;"
    ),
    "tensorflow.distributed_runtime.GrpcPayloadsLost": (
        ""
    ),
    "tensorflow.distributed_runtime.WorkerPossiblyRestarted": (
        ""
    ),
}

ENUMS = {
    "tensorflow.BundleHeaderProto.Endianness": (
        "LITTLE=0;BIG=1"
    ),
    "tensorflow.ConfigProto.Experimental.MlirBridgeRollout": (
        "MLIR_BRIDGE_ROLLOUT_UNSPECIFIED=0;MLIR_BRIDGE_ROLLOUT_ENABLED=1;MLIR_BRIDGE_ROLL"
        "OUT_DISABLED=2"
    ),
    "tensorflow.DataClass": (
        "DATA_CLASS_UNKNOWN=0;DATA_CLASS_SCALAR=1;DATA_CLASS_TENSOR=2;DATA_CLASS_BLOB_SEQ"
        "UENCE=3"
    ),
    "tensorflow.DataType": (
        "DT_INVALID=0;DT_FLOAT=1;DT_DOUBLE=2;DT_INT32=3;DT_UINT8=4;DT_INT16=5;DT_INT8=6;D"
        "T_STRING=7;DT_COMPLEX64=8;DT_INT64=9;DT_BOOL=10;DT_QINT8=11;DT_QUINT8=12;DT_QINT"
        "32=13;DT_BFLOAT16=14;DT_QINT16=15;DT_QUINT16=16;DT_UINT16=17;DT_COMPLEX128=18;DT"
        "_HALF=19;DT_RESOURCE=20;DT_VARIANT=21;DT_UINT32=22;DT_UINT64=23;DT_FLOAT8_E5M2=2"
        "4;DT_FLOAT8_E4M3FN=25;DT_INT4=29;DT_UINT4=30;DT_FLOAT_REF=101;DT_DOUBLE_REF=102;"
        "DT_INT32_REF=103;DT_UINT8_REF=104;DT_INT16_REF=105;DT_INT8_REF=106;DT_STRING_REF"
        "=107;DT_COMPLEX64_REF=108;DT_INT64_REF=109;DT_BOOL_REF=110;DT_QINT8_REF=111;DT_Q"
        "UINT8_REF=112;DT_QINT32_REF=113;DT_BFLOAT16_REF=114;DT_QINT16_REF=115;DT_QUINT16"
        "_REF=116;DT_UINT16_REF=117;DT_COMPLEX128_REF=118;DT_HALF_REF=119;DT_RESOURCE_REF"
        "=120;DT_VARIANT_REF=121;DT_UINT32_REF=122;DT_UINT64_REF=123;DT_FLOAT8_E5M2_REF=1"
        "24;DT_FLOAT8_E4M3FN_REF=125;DT_INT4_REF=129;DT_UINT4_REF=130"
    ),
    "tensorflow.LogMessage.Level": (
        "UNKNOWN=0;DEBUGGING=10;INFO=20;WARN=30;ERROR=40;FATAL=50"
    ),
    "tensorflow.OptimizerOptions.GlobalJitLevel": (
        "DEFAULT=0;OFF=-1;ON_1=1;ON_2=2"
    ),
    "tensorflow.OptimizerOptions.Level": (
        "L1=0;L0=-1"
    ),
    "tensorflow.RewriterConfig.CpuLayout": (
        "NO_CONVERSION_ON_CPU=0;NCHW_TO_NHWC=1;NHWC_TO_NCHW=2"
    ),
    "tensorflow.RewriterConfig.MemOptType": (
        "DEFAULT_MEM_OPT=0;NO_MEM_OPT=1;MANUAL=2;HEURISTICS=3;SWAPPING_HEURISTICS=4;RECOM"
        "PUTATION_HEURISTICS=5;SCHEDULING_HEURISTICS=6"
    ),
    "tensorflow.RewriterConfig.NumIterationsType": (
        "DEFAULT_NUM_ITERS=0;ONE=1;TWO=2"
    ),
    "tensorflow.RewriterConfig.Toggle": (
        "DEFAULT=0;ON=1;OFF=2;AGGRESSIVE=3;EXPERIMENTAL_MLIR=4;EXPERIMENTAL_BOTH=5"
    ),
    "tensorflow.RunOptions.TraceLevel": (
        "NO_TRACE=0;SOFTWARE_TRACE=1;HARDWARE_TRACE=2;FULL_TRACE=3"
    ),
    "tensorflow.SaverDef.CheckpointFormatVersion": (
        "LEGACY=0;V1=1;V2=2"
    ),
    "tensorflow.SessionLog.SessionStatus": (
        "STATUS_UNSPECIFIED=0;START=1;STOP=2;CHECKPOINT=3"
    ),
    "tensorflow.VariableAggregation": (
        "VARIABLE_AGGREGATION_NONE=0;VARIABLE_AGGREGATION_SUM=1;VARIABLE_AGGREGATION_MEAN"
        "=2;VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA=3"
    ),
    "tensorflow.VariableSynchronization": (
        "VARIABLE_SYNCHRONIZATION_AUTO=0;VARIABLE_SYNCHRONIZATION_NONE=1;VARIABLE_SYNCHRO"
        "NIZATION_ON_WRITE=2;VARIABLE_SYNCHRONIZATION_ON_READ=3"
    ),
    "tensorflow.VerifierConfig.Toggle": (
        "DEFAULT=0;ON=1;OFF=2"
    ),
    "tensorflow.error.Code": (
        "OK=0;CANCELLED=1;UNKNOWN=2;INVALID_ARGUMENT=3;DEADLINE_EXCEEDED=4;NOT_FOUND=5;AL"
        "READY_EXISTS=6;PERMISSION_DENIED=7;RESOURCE_EXHAUSTED=8;FAILED_PRECONDITION=9;AB"
        "ORTED=10;OUT_OF_RANGE=11;UNIMPLEMENTED=12;INTERNAL=13;UNAVAILABLE=14;DATA_LOSS=1"
        "5;UNAUTHENTICATED=16"
    ),
}
