"""Names of programs, flags, logs, files, tests and servers."""

_FLAGS = (
    "FLAGS DEFINE DEFINE_alias DEFINE_bool DEFINE_boolean DEFINE_enum DEFINE_enum_class DEFINE_flag DEFINE_float "
    "DEFINE_integer DEFINE_list DEFINE_multi_enum DEFINE_multi_float DEFINE_multi_integer DEFINE_multi_string "
    "DEFINE_spaceseplist DEFINE_string ArgumentParser BooleanParser CantOpenFlagFileError DuplicateFlagError EnumParser "
    "Error Flag FlagHolder FlagValues FloatParser IllegalFlagValueError IntegerParser UnparsedFlagAccessError "
    "UnrecognizedFlagError ValidationError adopt_module_key_flags declare_key_flag doc_to_help flag_dict_to_args "
    "get_help_width mark_flag_as_required mark_flags_as_mutual_exclusive mark_flags_as_required multi_flags_validator "
    "register_multi_flags_validator register_validator text_wrap validator mark_bool_flags_as_mutual_exclusive set_default "
    "disclaim_key_flags"
).split()
_LOGGING = (
    "DEBUG INFO WARN ERROR FATAL debug info warn warning error fatal log vlog get_verbosity set_verbosity flush "
    "log_every_n log_first_n log_if TaskLevelStatusMessage"
).split()
_GFILE = (
    "GFile FastGFile Open Exists IsDirectory ListDirectory Glob MkDir MakeDirs Remove DeleteRecursively Copy Rename Stat Walk"
).split()
_IO_GFILE = "GFile exists isdir listdir glob mkdir makedirs remove rmtree copy rename stat walk join".split()
_TEST = (
    "TestCase Benchmark get_temp_dir test_src_dir_path is_gpu_available is_built_with_cuda is_built_with_gpu_support "
    "gpu_device_name main mock create_local_cluster is_built_with_rocm is_built_with_xla assert_equal_graph_def "
    "StubOutForTesting"
).split()

NAMES = {
    "ferroflow.python.platform.app": "app.run=run",
    "ferroflow.python.platform.flags": " ".join(
        [f"flags.{n}={n}" for n in _FLAGS] + [f"app.flags.{n}={n}" for n in _FLAGS]
    ),
    "ferroflow.python.platform.tf_logging": " ".join(f"logging.{n}={n}" for n in _LOGGING) + " get_logger",
    "ferroflow.python.platform.gfile": " ".join(
        [f"gfile.{n}={n}" for n in _GFILE] + [f"io.gfile.{n}={n}" for n in _IO_GFILE]
    ),
    "ferroflow.python.platform.resource_loader": (
        "resource_loader.get_data_files_path=get_data_files_path resource_loader.get_path_to_datafile=get_path_to_datafile "
        "resource_loader.get_root_dir_with_all_resources=get_root_dir_with_all_resources "
        "resource_loader.load_resource=load_resource resource_loader.readahead_file_path=readahead_file_path"
    ),
    "ferroflow.python.platform.sysconfig": "sysconfig.get_lib=get_lib sysconfig.get_build_info=get_build_info "
    "sysconfig.get_include=get_include sysconfig.get_compile_flags=get_compile_flags sysconfig.get_link_flags=get_link_flags",
    "ferroflow.python.platform.test": " ".join(f"test.{n}={n}" for n in _TEST),
    "ferroflow.python.framework.function": "function",
    "ferroflow.python.ops.script_ops": "py_func py_function numpy_function",
    "ferroflow.python.training.server_lib": "train.Server=Server train.ClusterSpec=ClusterSpec distribute.Server=Server",
}
