//! Ranks that srun starts on two nodes, which are network namespaces of this host.

use crate::common::netns::Cable;
use crate::common::{FOREVER, Running, folder};
use crate::example::{self, Example};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A controller, two nodes and the service that authenticates them. They end when it is dropped.
struct Slurm {
    folder: PathBuf,
    near: String,
    daemons: Vec<Running>,
}

/// Two nodes of one host: each has folders and a port of its own.
fn configuration(folder: &str, host: &str, near: &str, far: &str) -> String {
    format!(
        "ClusterName=test\nSlurmctldHost={host}({near})\nSlurmctldPort=17000\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={folder}/munge.socket\n\
         StateSaveLocation={folder}/state\nSlurmctldPidFile={folder}/controller.pid\n\
         SlurmdSpoolDir={folder}/spool-%n\nSlurmdPidFile={folder}/%n.pid\nTmpFS={folder}/tmp-%n\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/linear\n\
         ReturnToService=2\nMpiDefault=none\n\
         NodeName=n1 NodeHostname={host} NodeAddr={near} Port=17001 CPUs=1\n\
         NodeName=n2 NodeHostname={host} NodeAddr={far} Port=17002 CPUs=1\n\
         PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n"
    )
}

impl Slurm {
    fn start(cable: &Cable) -> Slurm {
        let folder = folder("slurm");
        let path = folder.to_str().unwrap().to_string();
        for name in ["state", "spool-n1", "spool-n2", "tmp-n1", "tmp-n2"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let text = configuration(&path, host.trim(), cable.near(), cable.far());
        std::fs::write(folder.join("slurm.conf"), text).unwrap();
        let cgroups = "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n";
        let is_v2 = std::fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap();
        let cgroups = if is_v2 { cgroups.replace("v1", "v2") } else { cgroups.into() };
        std::fs::write(folder.join("cgroup.conf"), cgroups).unwrap();
        let key = folder.join("munge.key");
        std::fs::write(&key, [7; 128]).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o400))
            .unwrap();
        let mut slurm = Slurm { folder, near: cable.near().into(), daemons: Vec::new() };
        let flags = ["key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid"];
        let more = ["log-file=munge.log", "seed-file=munge.seed"];
        let mut munge = vec!["munged".to_string(), "--foreground".into(), "--force".into()];
        for flag in flags.iter().chain(&more) {
            munge.push(format!("--{}", flag.replace('=', &format!("={path}/"))));
        }
        slurm.daemon(None, &munge.iter().map(String::as_str).collect::<Vec<_>>());
        slurm.daemon(Some(cable.near()), &["slurmctld", "-D"]);
        slurm.daemon(Some(cable.near()), &["slurmd", "-D", "-N", "n1"]);
        slurm.daemon(Some(cable.far()), &["slurmd", "-D", "-N", "n2"]);
        let until = Instant::now() + FOREVER;
        while !slurm.says(&["sinfo", "-h", "-o", "%D %t"]).contains("2 idle") {
            let logs = slurm.logs();
            assert!(Instant::now() < until, "the nodes do not come: {logs}");
            std::thread::sleep(Duration::from_millis(100));
        }
        slurm
    }

    /// Without `ip netns exec`, which hides the control groups that slurmd needs.
    fn in_namespace(&self, namespace: Option<&str>, words: &[&str]) -> Command {
        let mut command = match namespace {
            Some(name) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{name}")).args(words);
                command
            }
            None => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                command
            }
        };
        command.env("SLURM_CONF", self.folder.join("slurm.conf")).stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, namespace: Option<&str>, words: &[&str]) {
        let log = self.folder.join(format!("{}.out", self.daemons.len()));
        let log = std::fs::File::create(log).unwrap();
        let mut command = self.in_namespace(namespace, words);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.daemons.push(Running(child));
    }

    fn says(&self, words: &[&str]) -> String {
        let out = self.in_namespace(Some(&self.near), words).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    }

    fn logs(&self) -> String {
        let log = |i| std::fs::read_to_string(self.folder.join(format!("{i}.out")));
        (0..self.daemons.len()).map(|i| log(i).unwrap_or_default()).collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.daemons.clear();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn srun_runs_the_example_on_two_nodes_by_pmix() {
    two_nodes("--mpi=pmix");
}

pub fn srun_runs_the_example_on_two_nodes_by_pmi2() {
    two_nodes("--mpi=pmi2");
}

fn two_nodes(store: &str) {
    let (cable, train) = (Cable::between_two(), Example::new());
    let slurm = Slurm::start(&cable);
    let job: Vec<&str> = ["srun", store, "-N2", "-n2"].into_iter().chain(train.words()).collect();
    let out = slurm.in_namespace(Some(&slurm.near), &job).output().unwrap();
    example::check(&out);
}
