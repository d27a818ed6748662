"""Names of programs, flags, logs, files, tests and servers."""

_FLAGS = (
    "FLAGS DEFINE_string DEFINE_integer DEFINE_float DEFINE_boolean DEFINE_bool DEFINE_enum DEFINE_list "
    "DEFINE_spaceseplist DEFINE_multi_string DEFINE_multi_integer mark_flag_as_required mark_flags_as_required "
    "register_validator validator declare_key_flag adopt_module_key_flags Error DuplicateFlagError "
    "IllegalFlagValueError UnrecognizedFlagError text_wrap"
).split()
_LOGGING = (
    "DEBUG INFO WARN ERROR FATAL debug info warn warning error fatal log vlog get_verbosity set_verbosity flush "
    "log_every_n log_first_n log_if TaskLevelStatusMessage"
).split()
_GFILE = (
    "GFile FastGFile Open Exists IsDirectory ListDirectory Glob MkDir MakeDirs Remove DeleteRecursively Copy Rename Stat Walk"
).split()
_IO_GFILE = "GFile exists isdir listdir glob mkdir makedirs remove rmtree copy rename stat walk".split()
_TEST = (
    "TestCase Benchmark get_temp_dir test_src_dir_path is_gpu_available is_built_with_cuda is_built_with_gpu_support "
    "gpu_device_name main mock create_local_cluster"
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
    "ferroflow.python.platform.test": " ".join(f"test.{n}={n}" for n in _TEST),
    "ferroflow.python.training.server_lib": "train.Server=Server train.ClusterSpec=ClusterSpec",
}
