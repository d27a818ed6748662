#!/usr/bin/env bash
# Checks and measures Ferroflow on this machine's GPU. `cargo xtask gpu` packs it with the programs
# that it runs. Results go to $OUT. A step that fails does not stop the next. Arguments name the
# steps to run, by how they begin: `run.sh train-block ranks`. Without any, all of them run.
wanted=("$@")
cd "$(dirname "$0")" || exit 1
OUT=${OUT:-.}
chmod +x ferroflow-oracle

# Folders of NVIDIA's libraries, which may come with Python packages.
folders() {
  local site
  site=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null)
  for name in libcublasLt.so libnvrtc.so libcudnn.so libnccl.so; do
    for root in /usr/local/cuda* /usr/lib /opt "$site" /usr/local/lib; do
      find "$root" -name "$name*" -printf '%h\n' 2>/dev/null | head -1
    done
  done | sort -u | paste -sd:
}
LD_LIBRARY_PATH="$(folders):$LD_LIBRARY_PATH"
XDG_CACHE_HOME=$PWD/cache
export LD_LIBRARY_PATH XDG_CACHE_HOME
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$OUT/machine.txt"

is_wanted() {
  [ ${#wanted[@]} -eq 0 ] && return 0
  for prefix in "${wanted[@]}"; do
    case $1 in "$prefix"*) return 0 ;; esac
  done
  return 1
}

step() {
  local name=$1 began=$SECONDS
  shift
  is_wanted "$name" || return
  "$@" >"$OUT/$name.log" 2>&1
  echo "== $name: exit code $?, $((SECONDS - began)) s"
  tail -c 1500 "$OUT/$name.log"
}
# The first step, with an empty cache of kernels and again with a full one.
first() {
  XDG_CACHE_HOME=$PWD/first-$1 ./ferroflow-oracle gpu-train "$1" --seconds 0
}
export -f first
for model in mlp cnn resnet50 block; do
  step first-cold-$model timeout 60 bash -c "first $model"
  step first-warm-$model timeout 60 bash -c "first $model"
done
step train-cold timeout 60 ./ferroflow-oracle gpu-train mlp --seconds 3 --compare
step train-warm timeout 60 ./ferroflow-oracle gpu-train mlp --seconds 3
step train-cnn timeout 60 ./ferroflow-oracle gpu-train cnn --seconds 3 --compare
step train-resnet50 timeout 60 ./ferroflow-oracle gpu-train resnet50 --seconds 3
step train-block timeout 60 ./ferroflow-oracle gpu-train block --seconds 3
# Again, with kernels from the cache.
step train-resnet50-warm timeout 60 ./ferroflow-oracle gpu-train resnet50 --seconds 1
step train-block-warm timeout 60 ./ferroflow-oracle gpu-train block --seconds 1
ranks() {
  # $1 ranks share the one GPU of this machine.
  for rank in $(seq 0 $(($1 - 1))); do
    RANK=$rank WORLD_SIZE=$1 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 \
      ./ferroflow-oracle gpu-ranks --megabytes 100 &
  done
  wait
}
export -f ranks
step ranks-1 timeout 60 ./ferroflow-oracle gpu-ranks --megabytes 100
step ranks-1-train timeout 60 ./ferroflow-oracle gpu-ranks --train
step ranks-2 timeout 90 bash -c 'ranks 2'
step tasks timeout 90 ./ferroflow-oracle gpu-tasks --megabytes 100
if python3 -c 'import torch' 2>/dev/null; then
  step torch-models timeout 90 python3 torch_models.py --modes eager --seconds 2
fi
if python3 -c 'import jax' 2>/dev/null; then
  step jax-models timeout 60 python3 jax_models.py --models mlp,cnn --seconds 2
fi
# The same weights and data in JAX.
losses() {
  local folders=()
  for model in mlp cnn resnet50 block; do
    ./ferroflow-oracle gpu-losses "$model" "losses/$model" && folders+=("losses/$model")
  done
  python3 compare_losses.py "${folders[@]}"
}
export -f losses
if python3 -c 'import jax' 2>/dev/null; then
  step losses timeout 200 bash -c losses
fi
step check timeout 200 ./ferroflow-oracle gpu-check recorded.bin.gz --out "$OUT/ops.jsonl"
profiler=$(command -v ncu || ls /usr/local/cuda*/bin/ncu 2>/dev/null | head -1)
if [ -n "$profiler" ]; then
  # The time of each kernel, without changing the clocks.
  step kernels timeout 120 "$profiler" --clock-control none --metrics gpu__time_duration.sum --csv \
    ./ferroflow-oracle gpu-train block --seconds 0
fi
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
if [ -n "$sanitizer" ]; then
  # Six steps each: racecheck follows every access to shared memory.
  step racecheck timeout 90 "$sanitizer" --tool racecheck ./ferroflow-oracle gpu-train mlp --batch 4 --seconds 0
  step racecheck-cnn timeout 120 "$sanitizer" --tool racecheck ./ferroflow-oracle gpu-train cnn --batch 2 --seconds 0
  # Without the products of cuBLASLt and cuDNN, whose barriers racecheck does not know.
  own=(--kernel-name-exclude kernel_substring=cutlass --kernel-name-exclude kernel_substring=nvjet
    --kernel-name-exclude kernel_substring=gemm --kernel-name-exclude kernel_substring=cudnn)
  for model in block resnet50; do
    step racecheck-$model timeout 150 "$sanitizer" --tool racecheck "${own[@]}" \
      ./ferroflow-oracle gpu-train $model --batch 1 --seconds 0
  done
  step memcheck timeout 90 "$sanitizer" --tool memcheck ./ferroflow-oracle gpu-train cnn --batch 4 --seconds 0
  step memcheck-block timeout 90 "$sanitizer" --tool memcheck ./ferroflow-oracle gpu-train block --batch 1 --seconds 0
fi
