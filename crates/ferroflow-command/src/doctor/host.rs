//! Checks of this host.

use super::{Finding, Health};
use ferroflow::gpu::{CudaOptions, FoundGpus, find_gpus};
use rustix::fs::{MemfdFlags, memfd_create, statvfs};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Instant;

/// The descriptors that a task with some hundred peers, its files and its links needs.
const ENOUGH_DESCRIPTORS: u64 = 1024;
/// The bytes that frameworks put into shared memory.
const ENOUGH_SHARED: u64 = 64 << 20;
/// The bytes to write to measure a disk.
const MEASURED: usize = 32 << 20;
/// A slower disk makes checkpoints costly.
const SLOW_DISK: f64 = 20e6;

const MIB: f64 = (1 << 20) as f64;

/// Checks that the name of this host has an address, and that other hosts do not get loopback from
/// it.
pub fn name() -> Vec<Finding> {
    const CHECK: &str = "host-name";
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_string();
    let found = match (name.as_str(), 0).to_socket_addrs() {
        Ok(all) => all.map(|address| address.ip()).collect::<Vec<_>>(),
        Err(e) => {
            let what = format!("the name of this host, {name}, has no address: {e}");
            let advice = "add it to /etc/hosts or to the DNS, or give tasks by their addresses";
            return vec![Finding::new(CHECK, Health::Doubtful, what).advise(advice)];
        }
    };
    let mut shown: Vec<String> = found.iter().map(|ip| ip.to_string()).collect();
    shown.dedup();
    let what = format!("{name} is {}", shown.join(", "));
    match found.iter().all(|ip| ip.is_loopback()) {
        false => vec![Finding::good(CHECK, what)],
        true => vec![
            Finding::new(CHECK, Health::Doubtful, format!("{what}: other hosts cannot use it"))
                .advise("in a cluster of several hosts, give tasks by names or addresses that all hosts reach"),
        ],
    }
}

pub fn descriptors() -> Finding {
    const CHECK: &str = "descriptors";
    let limit = getrlimit(Resource::Nofile);
    let text = |n: Option<u64>| n.map_or("unlimited".to_string(), |n| n.to_string());
    let what = format!(
        "this process may open {} files, {} at most",
        text(limit.current),
        text(limit.maximum)
    );
    let is_enough = |n: Option<u64>| n.is_none_or(|n| n >= ENOUGH_DESCRIPTORS);
    match (is_enough(limit.current), is_enough(limit.maximum)) {
        (true, _) => Finding::good(CHECK, what),
        (false, true) => Finding::new(CHECK, Health::Doubtful, what)
            .advise(format!("raise the limit: ulimit -n {}", text(limit.maximum))),
        (false, false) => Finding::fault(
            CHECK,
            what,
            "raise the hard limit: LimitNOFILE= of the service, or /etc/security/limits.conf",
        ),
    }
}

/// Memory that processes of a host share, and the folder that frameworks use for it.
pub fn shared_memory() -> Finding {
    const CHECK: &str = "shared-memory";
    if let Err(why) = try_shared_memory() {
        let what = format!("processes of this host cannot share memory: {why}");
        return Finding::fault(
            CHECK,
            what,
            "raise the memory limit of the container or the cgroup",
        );
    }
    match statvfs("/dev/shm") {
        Ok(folder) => {
            let free = folder.f_bavail.saturating_mul(folder.f_frsize);
            let what = format!("/dev/shm has {:.0} MiB free", free as f64 / MIB);
            match free >= ENOUGH_SHARED {
                true => Finding::good(CHECK, what),
                false => Finding::fault(
                    CHECK,
                    what,
                    "data loaders of frameworks need more: docker run --shm-size=1g, or an emptyDir of medium Memory at /dev/shm",
                ),
            }
        }
        Err(e) => Finding::new(CHECK, Health::Doubtful, format!("there is no /dev/shm: {e}"))
            .advise("data loaders of frameworks may need it; Ferroflow does not"),
    }
}

fn try_shared_memory() -> std::io::Result<()> {
    let memory = memfd_create("ferroflow-doctor", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(memory);
    file.set_len(1 << 20)?;
    file.write_all(&[7; 4096])
}

pub fn gpus(expected: Option<usize>) -> Finding {
    const CHECK: &str = "gpu";
    let FoundGpus { gpus, why_not } = find_gpus(&CudaOptions::default());
    let why = why_not.map(|why| format!(": {why}")).unwrap_or_default();
    let what = match gpus.len() {
        0 => format!("no usable GPU{why}"),
        n => {
            let names: Vec<String> = gpus.iter().map(|gpu| gpu.description()).collect();
            format!("{n} GPUs: {}{why}", names.join("; "))
        }
    };
    let missing = expected.is_some_and(|expected| gpus.len() < expected);
    let is_there = has_nvidia_card();
    match (missing, gpus.is_empty()) {
        (true, _) => Finding::fault(
            CHECK,
            format!("{} GPUs were expected, but there is {what}", expected.unwrap_or(0)),
            "install NVIDIA's driver (525 or newer), give the container its GPUs, or check CUDA_VISIBLE_DEVICES",
        ),
        (false, true) if is_there => Finding::fault(
            CHECK,
            format!("this host has an NVIDIA card, but {what}"),
            "install NVIDIA's driver (525 or newer), or give the container its GPUs",
        ),
        (false, true) => Finding::new(CHECK, Health::Absent, what),
        (false, false) => Finding::good(CHECK, what),
    }
}

/// Whether the PCI bus has a display or 3D controller of NVIDIA.
fn has_nvidia_card() -> bool {
    let devices = std::fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    devices.map(|device| device.path()).any(|device| {
        read(device.join("vendor")).trim() == "0x10de"
            && read(device.join("class")).starts_with("0x03")
    })
}

/// Writes a file, forces it to the disk, and reads it again.
pub fn disk(folder: &Path) -> Vec<Finding> {
    const CHECK: &str = "disk";
    let path = folder.join(format!(".ferroflow-doctor-{}", std::process::id()));
    let measured = measure(&path);
    let _ = std::fs::remove_file(&path);
    match measured {
        Ok(rate) => {
            let what = format!("{} takes {:.0} MB/s", folder.display(), rate / 1e6);
            vec![match rate >= SLOW_DISK {
                true => Finding::good(CHECK, what),
                false => Finding::new(CHECK, Health::Doubtful, what)
                    .advise("put checkpoints on a faster disk, or save them less often"),
            }]
        }
        Err(e) => vec![Finding::fault(
            CHECK,
            format!(
                "{} cannot hold a checkpoint of {:.0} MiB: {e}",
                folder.display(),
                MEASURED as f64 / MIB
            ),
            "make room, or choose another folder for checkpoints and give it with --dir to check it",
        )],
    }
}

/// The bytes per second of writing a new file.
fn measure(path: &Path) -> std::io::Result<f64> {
    let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
    let piece: Vec<u8> =
        (0..1usize << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    let started = Instant::now();
    for _ in 0..MEASURED / piece.len() {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    let seconds = started.elapsed().as_secs_f64();
    file.seek(SeekFrom::Start(0))?;
    let mut first = vec![0; piece.len()];
    file.read_exact(&mut first)?;
    if first != piece {
        return Err(std::io::Error::other("the disk returned other bytes than were written"));
    }
    Ok(MEASURED as f64 / seconds.max(1e-9))
}
