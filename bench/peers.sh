#!/bin/bash
# Installs the peers of allreduce.py, each in its own virtual environment under DIR:
#
#   bench/peers.sh DIR [torch] [mpi] [horovod]      # all three, if none is named
#
# torch is PyTorch with gloo (several GB), mpi is Open MPI (needs root, for apt-get) with mpi4py,
# horovod is Horovod on gloo, built from its sources against TensorFlow 2.15.1 (Python 3.11, cmake,
# about ten minutes).
set -euo pipefail
dir=$(realpath -m "${1:?where to}")
shift
python=${PYTHON:-python3}
mkdir -p "$dir"
venv() { [ -x "$dir/$1/bin/python" ] || "$python" -m venv "$dir/$1"; }

[ $# -gt 0 ] || set -- torch mpi horovod
for peer in "$@"; do
  case $peer in
  torch)
    venv torch
    "$dir/torch/bin/pip" install -q torch numpy
    ;;
  mpi)
    command -v mpirun >/dev/null || apt-get install -y -q openmpi-bin libopenmpi-dev
    venv mpi
    "$dir/mpi/bin/pip" install -q numpy==1.26.4 mpi4py
    ;;
  horovod)
    command -v cmake >/dev/null || apt-get install -y -q cmake
    venv horovod
    pip="$dir/horovod/bin/pip"
    "$pip" install -q tensorflow-cpu==2.15.1 cloudpickle psutil pyyaml packaging cffi wheel setuptools
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && "$pip" download -q --no-deps --no-binary :all: --no-build-isolation horovod==0.28.1 && tar xf horovod-0.28.1.tar.gz)
    HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 \
      HOROVOD_WITHOUT_MXNET=1 HOROVOD_CPU_OPERATIONS=GLOO \
      "$pip" install -q --no-build-isolation --no-deps "$work/horovod-0.28.1"
    ;;
  *)
    echo "no peer $peer" >&2
    exit 2
    ;;
  esac
done
echo "python bench/allreduce.py --peers $dir"
