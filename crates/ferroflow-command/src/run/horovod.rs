//! The flags of `horovodrun` and `mpirun` that `ferroflow run` understands besides its own.

use super::hosts::invalid;
use ferroflow::Result;
use std::ffi::OsString;

/// Flags whose value becomes an environment variable of all processes.
const VARIABLES: [(&str, &str); 4] = [
    ("--cycle-time-ms", "HOROVOD_CYCLE_TIME"),
    ("--timeline-filename", "HOROVOD_TIMELINE"),
    ("--stall-check-warning-time-seconds", "HOROVOD_STALL_CHECK_TIME_SECONDS"),
    ("--stall-check-shutdown-time-seconds", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"),
];

/// Flags with another name here.
const RENAMED: [(&str, &str); 7] = [
    ("--num-proc", "--np"),
    ("--min-num-proc", "--min-np"),
    ("--max-num-proc", "--max-np"),
    ("--host", "-H"),
    ("-host", "-H"),
    ("-hosts", "-H"),
    ("--hosts", "-H"),
];

/// Files with hosts.
const HOST_FILES: [&str; 4] = ["--hostfile", "-hostfile", "--machinefile", "-machinefile"];

/// Flags that become options of ssh.
const SSH: [([&str; 2], &str); 2] =
    [(["--ssh-port", "-p"], "-p"), (["--ssh-identity-file", "-i"], "-i")];

/// Flags of mpirun without a meaning here, with their number of values. This command leaves the
/// choice of processors to the system and its transport to `--transport`.
const MPI: [(&str, usize); 9] = [
    ("bind-to", 1),
    ("map-by", 1),
    ("rank-by", 1),
    ("mca", 2),
    ("gmca", 2),
    ("allow-run-as-root", 0),
    ("oversubscribe", 0),
    ("report-bindings", 0),
    ("tag-output", 0),
];

/// The number of values of a flag of [`MPI`], which has one or two dashes.
fn mpi_values(flag: &str) -> Option<usize> {
    let name = flag.strip_prefix("--").or_else(|| flag.strip_prefix('-'))?;
    MPI.iter().find(|(known, _)| *known == name).map(|(_, values)| *values)
}

/// Flags without a meaning here. The second list has those with a value.
const IGNORED: [&str; 25] = [
    "--autotune",
    "--no-autotune",
    "--disable-cache",
    "--gloo",
    "--mpi",
    "--jsrun",
    "--tcp",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--timeline-mark-cycles",
    "--no-timeline-mark-cycles",
    "--stall-check",
    "--log-with-timestamp",
    "--log-without-timestamp",
    "--log-hide-timestamp",
    "--no-log-hide-timestamp",
    "--prefix-output-with-timestamp",
    "-prefix-timestamp",
    "--mpi-threads-disable",
    "--no-mpi-threads-disable",
    "--torch-elastic",
];
const IGNORED_VALUES: [&str; 18] = [
    "--network-interfaces",
    "--network-interface",
    "--start-timeout",
    "--cache-capacity",
    "--autotune-log-file",
    "--autotune-warmup-samples",
    "--autotune-steps-per-sample",
    "--autotune-bayes-opt-max-samples",
    "--autotune-gaussian-process-noise",
    "--output-filename",
    "--log-level",
    "--mpi-args",
    "--binding-args",
    "--num-nccl-streams",
    "--thread-affinity",
    "--gloo-timeout-seconds",
    "--reset-limit",
    "--slots-per-host",
];

/// The words of `ferroflow run` with the flags of others replaced by those of this command, and the
/// flags that were left out. Words after `--` belong to the program.
pub fn translated(words: Vec<OsString>) -> Result<(Vec<OsString>, Vec<String>)> {
    let (mut out, mut ignored) = (Vec::new(), Vec::new());
    let mut ssh: Option<String> = None;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str().map(str::to_string) else {
            out.push(word);
            continue;
        };
        if text == "--" {
            if let Some(ssh) = ssh.take() {
                out.extend(["--rsh".into(), ssh.into()]);
            }
            out.push(word);
            out.extend(words);
            break;
        }
        let (flag, given) = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_string())),
            _ => (text.as_str(), None),
        };
        let mut value = || -> Result<String> {
            let next = given.clone().or_else(|| words.next()?.into_string().ok());
            next.ok_or_else(|| invalid(format!("{flag} needs a value")))
        };
        let mut set = |name: &str, value: String| {
            out.extend(["-x".into(), format!("{name}={value}").into()]);
        };
        if let Some((_, name)) = VARIABLES.iter().find(|(f, _)| *f == flag) {
            set(name, value()?);
        } else if flag == "--fusion-threshold-mb" {
            let text = value()?;
            let megabytes: f64 = text
                .parse()
                .map_err(|_| invalid(format!("--fusion-threshold-mb {text}: not a number")))?;
            set("HOROVOD_FUSION_THRESHOLD", format!("{:.0}", megabytes * 1024.0 * 1024.0));
        } else if flag == "--no-stall-check" {
            set("HOROVOD_STALL_CHECK_DISABLE", "1".into());
        } else if flag == "--verbose" {
            set("FERROFLOW_VERBOSE", "1".into());
        } else if let Some((_, name)) = RENAMED.iter().find(|(f, _)| *f == flag) {
            let value = value()?;
            out.extend([name.into(), value.into()]);
        } else if let Some((_, option)) = SSH.iter().find(|(flags, _)| flags.contains(&flag)) {
            let command = ssh.get_or_insert_with(|| "ssh -tt -o BatchMode=yes".into());
            *command += &format!(" {option} {}", value()?);
        } else if HOST_FILES.contains(&flag) {
            let path = value()?;
            let lines = std::fs::read_to_string(&path)
                .map_err(|e| invalid(format!("cannot read the host file {path}: {e}")))?;
            out.extend(["-H".into(), host_list(&lines).into()]);
        } else if let Some(values) = mpi_values(flag) {
            let mut named = flag.to_string();
            for at in 0..values {
                let value = value()?;
                // Its first value says what a flag with two is about.
                if values == 2 && at == 0 {
                    named = format!("{flag} {value}");
                }
            }
            ignored.push(named);
        } else if IGNORED.contains(&flag) {
            ignored.push(flag.to_string());
        } else if IGNORED_VALUES.contains(&flag) {
            value()?;
            ignored.push(flag.to_string());
        } else {
            out.push(word);
        }
    }
    Ok((out, ignored))
}

/// The lines `HOST slots=N` of a host file as the value of `-H`.
fn host_list(lines: &str) -> String {
    let host = |line: &str| {
        let line = line.split('#').next()?.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let slots = rest.split_whitespace().find_map(|w| w.strip_prefix("slots="));
        match slots {
            _ if name.is_empty() => None,
            Some(slots) => Some(format!("{name}:{slots}")),
            None => Some(name.to_string()),
        }
    };
    lines.lines().filter_map(host).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> (Vec<String>, Vec<String>) {
        let (out, ignored) = translated(words.iter().map(OsString::from).collect()).unwrap();
        (out.into_iter().map(|w| w.into_string().unwrap()).collect(), ignored)
    }

    #[test]
    fn flags_of_horovodrun_become_those_of_this_command() {
        let given = [
            "ferroflow",
            "run",
            "--num-proc",
            "4",
            "--fusion-threshold-mb=2",
            "--cycle-time-ms",
            "5",
            "--gloo",
            "--network-interface",
            "eth0",
            "--",
            "python",
            "--gloo",
        ];
        let (out, ignored) = of(&given);
        assert_eq!(
            out,
            [
                "ferroflow",
                "run",
                "--np",
                "4",
                "-x",
                "HOROVOD_FUSION_THRESHOLD=2097152",
                "-x",
                "HOROVOD_CYCLE_TIME=5",
                "--",
                "python",
                "--gloo",
            ]
        );
        assert_eq!(ignored, ["--gloo", "--network-interface"]);
    }

    #[test]
    fn flags_of_mpirun_are_understood_or_named() {
        let given = "run -np 4 --host a:2,b:2 -bind-to none --map-by slot -x PATH -mca pml ob1 \
                     --mca btl ^openib --allow-run-as-root -- python --bind-to x";
        let (out, ignored) = of(&given.split_whitespace().collect::<Vec<_>>());
        assert_eq!(out.join(" "), "run -np 4 -H a:2,b:2 -x PATH -- python --bind-to x");
        let named = ["-bind-to", "--map-by", "-mca pml", "--mca btl", "--allow-run-as-root"];
        assert_eq!(ignored, named);
        let cut = ["run", "-mca", "pml"].map(OsString::from).to_vec();
        assert!(translated(cut).unwrap_err().message().contains("-mca needs a value"));
    }

    #[test]
    fn own_flags_stay_and_a_missing_value_is_an_error() {
        let own = ["ferroflow", "run", "-np", "2", "-H", "a:1,b:1", "--", "x"];
        assert_eq!(of(&own), (own.map(String::from).to_vec(), vec![]));
        let ssh = ["ferroflow", "run", "-p", "2222", "-i", "key", "--", "ssh", "-p", "1"];
        let rsh = "ssh -tt -o BatchMode=yes -p 2222 -i key";
        let made = ["ferroflow", "run", "--rsh", rsh, "--", "ssh", "-p", "1"];
        assert_eq!(of(&ssh).0, made);
        let cut = vec![OsString::from("--cycle-time-ms")];
        assert!(translated(cut).unwrap_err().message().contains("--cycle-time-ms needs a value"));
    }

    #[test]
    fn a_host_file_becomes_a_list_of_hosts() {
        assert_eq!(host_list("a slots=2\n# none\n\nb\nc slots=1 # last\n"), "a:2,b,c:1");
    }
}
