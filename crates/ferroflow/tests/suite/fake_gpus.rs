//! Ranks with GPUs over libraries that gcc makes: a driver whose memory is that of the processor,
//! and an NCCL for the threads of one process. They show that no rank hangs when another one
//! fails.

use ferroflow::collective::Membership;
use ferroflow::gpu::{CudaOptions, find_gpus};
use ferroflow::hvd::{self, GpuPath, Reduction, World};
use ferroflow::prelude::*;
use ferroflow_core::{Gpu, err};
use ferroflow_testing::{child, this_test};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// The libraries in a folder of their own, and a child that loads them.
struct Fakes {
    folder: PathBuf,
}

impl Fakes {
    fn new(name: &str) -> Fakes {
        let folder = std::env::temp_dir().join(format!("ferroflow-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fake_gpu");
        for (source, library) in [
            ("cuda.c", "libcuda.so.1"),
            ("nvrtc.c", "libnvrtc.so"),
            ("cublasLt.c", "libcublasLt.so"),
            ("nccl.c", "libnccl.so.2"),
        ] {
            let made = Command::new("gcc")
                .args(["-shared", "-fPIC", "-w", "-O1", "-pthread", "-o"])
                .arg(folder.join(library))
                .arg(sources.join(source))
                .output()
                .expect("gcc is installed");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        Fakes { folder }
    }

    fn command(&self, test: &str, role: &str) -> Command {
        let mut command = child::command(test, role);
        command
            .env("LD_LIBRARY_PATH", &self.folder)
            .env("FERROFLOW_NCCL", self.folder.join("libnccl.so.2"))
            .env("FERROFLOW_NCCL_JOIN_SECONDS", "1")
            .env("XDG_CACHE_HOME", &self.folder)
            .env_remove("CUDA_VISIBLE_DEVICES")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Fakes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(mut command: Command) {
    let done = command.output().unwrap();
    let (out, text) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{out}\n{text}");
}

fn gpus() -> Vec<Arc<dyn Gpu>> {
    let found = find_gpus(&CudaOptions::default());
    assert_eq!(found.gpus.len(), 8, "{:?}", found.why_not);
    found.gpus
}

/// Runs `each` on `n` ranks, each with a GPU.
fn on_ranks<R: Send>(
    n: usize,
    gpus: &[Arc<dyn Gpu>],
    each: impl Fn(&World, &Arc<dyn Gpu>) -> R + Sync,
) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Mutex::new(Some(listener));
    std::thread::scope(|scope| {
        let (each, address, listener) = (&each, &address, &listener);
        let rank = |rank: usize| {
            scope.spawn(move || {
                let config = hvd::Config {
                    membership: Some(Membership::new(rank, n, address.clone())),
                    listener: if rank == 0 { listener.lock().unwrap().take() } else { None },
                    ..hvd::Config::default()
                };
                each(&hvd::init_with(config).unwrap(), &gpus[rank])
            })
        };
        let ranks: Vec<_> = (0..n).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn session(g: &Graph, gpu: &Arc<dyn Gpu>) -> Session {
    let options = LocalOptions { gpus: vec![gpu.clone()], ..LocalOptions::default() };
    Session::local_with(g, &options).unwrap()
}

/// The sum and the mean of a tensor of all ranks, and that of rank 1.
fn reduced(world: &World, gpu: &Arc<dyn Gpu>) -> Vec<Tensor> {
    let g = world.graph();
    let (x, fetched) = g.device("/gpu:0", || {
        let x = g.placeholder::<f32>("x", [2]);
        let by = |how| world.all_reduce(&x, how);
        let fetched = [by(Reduction::Sum), by(Reduction::Average), world.broadcast(&x, 1)];
        (x, fetched)
    });
    let rank = world.rank() as f32;
    let fed = Tensor::vector(&[rank, 2.0 * rank + 1.0]);
    session(&g, gpu).run_fed((&x, fed), &fetched).unwrap()
}

#[test]
fn ranks_reduce_tensors_of_their_gpus_by_nccl() {
    if child::role().is_some() {
        let gpus = gpus();
        for n in 2..=8 {
            let got = on_ranks(n, &gpus, |world, gpu| {
                assert_eq!(world.use_gpu(gpu).unwrap(), GpuPath::Nccl);
                reduced(world, gpu)
            });
            let sum = (n * (n - 1) / 2) as f32;
            let total = [sum, 2.0 * sum + n as f32];
            let mean = total.map(|x| x / n as f32);
            let want = [total, mean, [1.0, 3.0]].map(|values| Tensor::vector(&values));
            assert!(got.iter().all(|got| got[..] == want), "{n}: {got:?} {want:?}");
        }
        return;
    }
    run(Fakes::new("fake-nccl").command(this_test!(), "ranks"));
}

#[test]
fn a_rank_that_fails_ends_the_calls_of_nccl() {
    if child::role().is_some() {
        let gpus = gpus();
        for n in [2, 5, 8] {
            let errors = on_ranks(n, &gpus, |world, gpu| {
                assert_eq!(world.use_gpu(gpu).unwrap(), GpuPath::Nccl);
                let g = world.graph();
                let sum =
                    g.device("/gpu:0", || world.all_reduce(&g.constant([1.0f32]), Reduction::Sum));
                let session = session(&g, gpu);
                session.run(&sum).unwrap();
                if world.rank() == n - 1 {
                    world.abort(err!(Aborted, "rank {} gave up", n - 1));
                    return None;
                }
                loop {
                    if let Err(e) = session.run(&sum) {
                        return Some(e);
                    }
                }
            });
            for e in errors.into_iter().flatten() {
                assert!(e.message().contains(&format!("rank {} gave up", n - 1)), "{e}");
            }
        }
        return;
    }
    run(Fakes::new("fake-nccl-fault").command(this_test!(), "ranks"));
}

#[test]
fn a_call_that_waits_for_a_rank_ends_when_it_is_aborted() {
    if child::role().is_some() {
        let gpus = gpus();
        let group = gpus[0].new_group().unwrap();
        let join = |rank: usize| gpus[rank].communicator(&group, rank, 2).unwrap();
        let (waits, never_calls) = std::thread::scope(|scope| {
            let other = scope.spawn(|| join(1));
            (join(0), other.join().unwrap())
        });
        let x = Tensor::vector(&[1.0f32]).to_device(&gpus[0]).unwrap();
        let at = x.device_address().unwrap();
        std::thread::scope(|scope| {
            let called = scope.spawn(|| {
                waits.all_reduce(at, at, 1, DType::Float, ferroflow_core::GpuReduction::Sum)
            });
            waits.abort(err!(Aborted, "the other rank is gone"));
            let e = called.join().unwrap().unwrap_err();
            assert!(e.message().contains("the other rank is gone"), "{e}");
        });
        assert!(waits.failure().is_some() && never_calls.failure().is_none());
        // One rank never joins, so the others time out.
        let e = gpus[0].communicator(&gpus[0].new_group().unwrap(), 0, 2).err().unwrap();
        assert!(e.message().contains("not all of the 2 ranks joined"), "{e}");
        return;
    }
    run(Fakes::new("fake-nccl-abort").command(this_test!(), "rank"));
}

#[test]
fn two_processes_share_the_memory_of_one_gpu() {
    if let Some(role) = child::role() {
        let (rank, address) = role.split_once(' ').unwrap();
        let rank: usize = rank.parse().unwrap();
        let config = hvd::Config {
            membership: Some(Membership::new(rank, 2, address.to_string())),
            ..hvd::Config::default()
        };
        let world = hvd::init_with(config).unwrap();
        let gpu = &gpus()[0];
        assert_eq!(world.use_gpu(gpu).unwrap(), GpuPath::Shared);
        let g = world.graph();
        let (x, from) = g.device("/gpu:0", || {
            let x = g.placeholder::<f32>("x", [1000]);
            let from = world.broadcast(&x, 1);
            (x, from)
        });
        let session = session(&g, gpu);
        for step in 0..3 {
            let fed = Tensor::vector(&vec![(10 * rank + step) as f32; 1000]);
            let got = session.run_fed((&x, fed), &from).unwrap();
            assert_eq!(got, Tensor::vector(&vec![(10 + step) as f32; 1000]));
        }
        return;
    }
    let fakes = Fakes::new("fake-ipc");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ranks = [0, 1].map(|rank| {
        fakes.command(this_test!(), &format!("{rank} {port}")).spawn().expect("a child")
    });
    for rank in ranks {
        let done = rank.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
