//! What a test may need and a machine may lack.

use std::fs;
use std::net::ToSocketAddrs;
use std::process::{Command, Output, Stdio};

/// A program or a permission that a test needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Why this machine lacks it; `None` when it is there.
    pub missing: fn() -> Option<String>,
}

/// Network namespaces, which are hosts of a test: `ip netns add` takes root.
pub const NETWORK_NAMESPACES: Need = Need { missing: no_namespaces };

/// The right to mount a file system in a namespace of one's own.
pub const MOUNTS: Need = Need { missing: no_mounts };

/// A working `mpirun`.
pub const MPIRUN: Need = Need { missing: no_mpirun };

/// A working `mpiexec.hydra`, the launcher of MPICH.
pub const MPICH: Need = Need { missing: no_mpich };

/// torchrun, the launcher of PyTorch.
pub const TORCHRUN: Need = Need { missing: no_torchrun };

/// Slurm's daemons and commands, and munged, which authenticates them.
pub const SLURM: Need = Need { missing: no_slurm };

/// The library of PMIx under the name that Slurm's plugin loads.
pub const SLURM_PMIX: Need = Need { missing: no_pmix_of_slurm };

/// The programs `ssh`, `ssh-keygen` and `sshd`, and the folder that sshd wants.
pub const SSHD: Need = Need { missing: no_sshd };

/// A name of this host that leads to an address.
pub const HOST_NAME: Need = Need { missing: no_host_name };

/// The program `script`, which runs a command in a terminal.
pub const TERMINAL: Need = Need { missing: no_terminal };

/// The right and a program to run something as another user.
pub const ANOTHER_USER: Need = Need { missing: no_other_user };

/// Where Debian and others keep the ssh server, which must be started by its full path.
pub const SSHD_PATH: &str = "/usr/sbin/sshd";

/// `mpirun -n 2`, allowed to run as root and with more ranks than cores.
pub fn mpirun() -> Command {
    let mut command = Command::new("mpirun");
    command.envs(MPIRUN_ENVIRONMENT).args(["-n", "2"]).stdin(Stdio::null());
    command
}

/// Allows mpirun to run as root and with more ranks than cores.
pub const MPIRUN_ENVIRONMENT: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

fn no_namespaces() -> Option<String> {
    let name = format!("ferroflow-probe-{}", std::process::id());
    let missing = failure("ip netns add", Command::new("ip").args(["netns", "add", &name]));
    if missing.is_none() {
        let _ = Command::new("ip").args(["netns", "del", &name]).output();
    }
    missing
}

fn no_mounts() -> Option<String> {
    let script = "mount -t tmpfs -o size=64k tmpfs /tmp";
    failure("unshare -m", Command::new("unshare").args(["-m", "sh", "-c", script]))
}

/// Runs a shell script as another user, without any rights.
pub fn as_another_user(script: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", script]);
    command.stdin(Stdio::null());
    command
}

fn no_other_user() -> Option<String> {
    failure("setpriv", &mut as_another_user("true"))
}

fn no_mpirun() -> Option<String> {
    failure("mpirun", mpirun().arg("true"))
}

fn no_mpich() -> Option<String> {
    failure("mpiexec.hydra", Command::new("mpiexec.hydra").args(["-n", "1", "true"]))
}

fn no_torchrun() -> Option<String> {
    failure("torchrun", Command::new("torchrun").arg("--help"))
}

fn no_slurm() -> Option<String> {
    for (program, flag) in [("munged", "--version"), ("slurmctld", "-V"), ("slurmd", "-V")] {
        if let Some(missing) = failure(program, Command::new(program).arg(flag)) {
            return Some(missing);
        }
    }
    // It says nothing about itself without a cluster.
    failure("srun", Command::new("sh").args(["-c", "command -v srun sinfo"]))
}

fn no_pmix_of_slurm() -> Option<String> {
    // Debian's plugin looks in this folder. The name without a version is in libpmix-dev.
    let is_there = ["x86_64", "aarch64"].iter().any(|processor| {
        let folder = format!("/usr/lib/{processor}-linux-gnu/pmix2/lib");
        fs::exists(format!("{folder}/libpmix.so")).unwrap_or_default()
    });
    (!is_there).then(|| "there is no libpmix.so for Slurm (libpmix-dev on Debian)".into())
}

fn no_sshd() -> Option<String> {
    if !fs::exists(SSHD_PATH).unwrap_or_default() {
        return Some(format!("there is no {SSHD_PATH}"));
    }
    // Neither knows a flag that does nothing, but both say who they are.
    let starts = |program: &str, flag: &str| {
        let done = Command::new(program).arg(flag).stdin(Stdio::null()).output();
        done.err().map(|e| format!("{program}: {e}"))
    };
    starts("ssh", "-V").or_else(|| starts("ssh-keygen", "-?")).or_else(|| {
        // The folder of privilege separation, which a service manager makes.
        let _ = fs::create_dir_all("/run/sshd");
        let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
        let has_folder = fs::exists("/run/sshd").unwrap_or_default();
        (is_root && !has_folder).then(|| "there is no /run/sshd".into())
    })
}

fn no_host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let found = (name, 0).to_socket_addrs();
    found.err().map(|e| format!("this host's name {name:?} has no address: {e}"))
}

fn no_terminal() -> Option<String> {
    let mut script = Command::new("script");
    failure("script", script.args(["-qe", "-O", "/dev/null", "-c", "true"]).stdin(Stdio::null()))
}

/// Why a command does not work.
fn failure(name: &str, command: &mut Command) -> Option<String> {
    match command.output() {
        Err(e) => Some(format!("{name}: {e}")),
        Ok(Output { status, .. }) if status.success() => None,
        Ok(Output { status, stderr, .. }) => {
            let why = String::from_utf8_lossy(&stderr);
            let why = why.trim().lines().next().unwrap_or_default();
            Some(format!("{name}: {status} {why}").trim_end().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_work_has_a_reason() {
        assert_eq!(failure("true", &mut Command::new("true")), None);
        let why = failure("sh", Command::new("sh").args(["-c", "echo no right >&2; exit 3"]));
        assert_eq!(why.as_deref(), Some("sh: exit status: 3 no right"));
        let why = failure("nothing", &mut Command::new("no-such-program")).unwrap();
        assert!(why.starts_with("nothing: No such file"), "{why}");
    }
}
