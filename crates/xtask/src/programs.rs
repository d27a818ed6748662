//! Programs that some tests need, for `cargo xtask check --install`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::background::Background;
use crate::steps::Result;

/// A file of each program, and the Debian package that contains it.
const PROGRAMS: [(&str, &str); 14] = [
    ("/usr/bin/g++", "g++"),
    ("/usr/sbin/ip", "iproute2"),
    ("/usr/bin/mpirun.openmpi", "openmpi-bin"),
    ("/usr/bin/mpiexec.hydra", "mpich"),
    ("/usr/sbin/munged", "munge"),
    ("/usr/sbin/slurmctld", "slurmctld"),
    ("/usr/sbin/slurmd", "slurmd"),
    ("/usr/bin/srun", "slurm-client"),
    // Slurm's PMIx plugin loads the library by a name that only this package has.
    ("/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so", "libpmix-dev"),
    ("/usr/sbin/sshd", "openssh-server"),
    ("/usr/lib/x86_64-linux-gnu/libucp.so.0", "libucx0"),
    // The dashboard is tested in a browser.
    ("/usr/bin/chromium", "chromium"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/npm", "npm"),
];

/// Starts to install missing programs. `None` if nothing is missing, or if this machine cannot
/// install them.
pub fn install() -> Result<Option<Background>> {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(file, _)| !Path::new(file).exists())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        println!("g++, ip, both mpiruns, Slurm with PMIx, sshd, UCX and Chromium are installed");
        return Ok(None);
    }
    if !is_root_on_debian() {
        let missing = missing.join(", ");
        println!("cannot install {missing} without root and apt-get; some tests will be skipped");
        return Ok(None);
    }
    let mut command = Command::new("sh");
    let script = "apt-get update -q && apt-get install -q -y --no-install-recommends \"$@\"";
    command.args(["-c", script, "sh"]).args(&missing).env("DEBIAN_FRONTEND", "noninteractive");
    // Installs sshd without starting it; the tests start one themselves.
    command.env("RUNLEVEL", "1");
    Background::start("install", command).map(Some)
}

fn is_root_on_debian() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let mut apt = Command::new("apt-get");
    apt.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    is_root && apt.status().is_ok_and(|status| status.success())
}
