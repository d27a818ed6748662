//! Checks of the tasks of a cluster. All tasks are queried at the same time.

use super::{Finding, Health};
use ferroflow::cluster::{ClusterSpec, TaskReport, Trust, examine};
use ferroflow::{Code, Error, Result};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

/// Certificates and logs need clocks that agree better than this.
const MOST_SKEW: f64 = 2.0;
/// Longer than a packet of any network, so that several full packets travel.
const LONG: usize = 32 << 10;

pub fn check(cluster: &ClusterSpec, trust: &Trust, timeout: Duration) -> Result<Vec<Finding>> {
    let network = ferroflow::cluster::network_threads()?;
    let tasks: Vec<(String, String)> = cluster
        .tasks()
        .map(|(job, index, address)| (format!("{job} {index}"), address.to_string()))
        .collect();
    let found = network.block_on(async {
        let mut asked = tokio::task::JoinSet::new();
        for (i, (name, address)) in tasks.into_iter().enumerate() {
            let (cluster, trust) = (cluster.clone(), trust.clone());
            asked.spawn(async move { (i, one(&cluster, &trust, &name, &address, timeout).await) });
        }
        let mut all = asked.join_all().await;
        all.sort_by_key(|(i, _)| *i);
        all
    });
    network.shutdown_background();
    Ok(found.into_iter().flat_map(|(_, found)| found).collect())
}

async fn one(
    cluster: &ClusterSpec,
    trust: &Trust,
    name: &str,
    address: &str,
    timeout: Duration,
) -> Vec<Finding> {
    let at = address.to_string();
    let resolved = tokio::task::spawn_blocking(move || at.to_socket_addrs().map(Vec::from_iter));
    let resolved = match resolved.await {
        Ok(Ok(all)) if !all.is_empty() => all,
        Ok(Err(e)) => {
            return vec![Finding::fault(
                "host-names",
                format!("{name}: {address} has no address: {e}"),
                "correct the name, or add it to the DNS or to /etc/hosts of all hosts",
            )];
        }
        _ => {
            let what = format!("{name}: {address} has no address");
            return vec![Finding::fault("host-names", what, "correct the name")];
        }
    };
    let report = match examine(cluster, address, trust, 0, timeout).await {
        Ok(report) => report,
        Err(e) => return vec![unreachable(name, address, &resolved, &e)],
    };
    let mut found = judge(name, address, &report);
    found.push(match examine(cluster, address, trust, LONG, timeout).await {
        Ok(_) => Finding::good("mtu", format!("{name}: long packets arrive")),
        Err(e) => Finding::fault(
            "mtu",
            format!("{name}: {address} answers short messages, but not long ones: {}", e.message()),
            "a link on the path drops long packets: set the same MTU on all hosts and switches, or a smaller one, such as `ip link set eth0 mtu 1400`",
        ),
    });
    found
}

/// Why a task does not answer.
fn unreachable(name: &str, address: &str, resolved: &[SocketAddr], e: &Error) -> Finding {
    const CHECK: &str = "ports";
    let text = e.message();
    let is_own = resolved.iter().any(|at| TcpListener::bind((at.ip(), 0)).is_ok());
    let is_free = || resolved.iter().any(|at| TcpListener::bind(at).is_ok());
    if is_own && is_free() {
        let what =
            format!("{name}: nothing listens at {address} on this host yet; the port is free");
        return Finding::new(CHECK, Health::Doubtful, what).advise("start the task");
    }
    if e.code() == Code::PermissionDenied || text.contains("TLS") || text.contains("certificate") {
        let what = format!("{name}: {address} refuses the connection: {text}");
        let advice =
            "give credentials of the same CA with --credentials, or use `grpc` on both sides";
        return Finding::fault("certificates", what, advice);
    }
    if is_own {
        let what = format!("{name}: another program uses {address}: {text}");
        let advice = "end that program (ss -ltnp shows it) or choose another port";
        return Finding::fault(CHECK, what, advice);
    }
    if text.contains("refused") {
        let what = format!("{name}: nothing listens at {address}");
        return Finding::fault(CHECK, what, "start the task, or correct the port");
    }
    let advice = "check that the task runs and that no firewall drops packets to this port";
    Finding::fault(CHECK, format!("{name}: {address} does not answer: {text}"), advice)
}

/// Findings from a task's report about itself, compared with this host.
fn judge(name: &str, address: &str, report: &TaskReport) -> Vec<Finding> {
    let trip = report.round_trip.as_secs_f64() * 1e3;
    let mut found =
        vec![Finding::good("ports", format!("{name}: {address} answers in {trip:.1} ms"))];
    let own = env!("CARGO_PKG_VERSION");
    found.push(match &report.version {
        Some(version) if version == own => Finding::good("versions", format!("{name}: {version}")),
        Some(version) => Finding::fault(
            "versions",
            format!("{name}: version {version}, but this command has {own}"),
            "install the same version on all hosts",
        ),
        None => {
            Finding::new("versions", Health::Doubtful, format!("{name}: does not say its version"))
                .advise("it is a server of TensorFlow, or an older version of Ferroflow")
        }
    });
    if report.version.is_some() {
        // A slow answer gives only a rough idea of the clock.
        let unsure = report.round_trip.as_secs_f64() / 2.0;
        let ahead = report.clock_ahead;
        let side = if ahead > 0.0 { "ahead of" } else { "behind" };
        let what = format!("{name}: its clock is {:.2} s {side} that of this host", ahead.abs());
        found.push(match ahead.abs() > MOST_SKEW + unsure {
            true => Finding::fault("clocks", what, "run chrony or another NTP client on all hosts"),
            false => Finding::good("clocks", what),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(version: Option<&str>, clock_ahead: f64) -> TaskReport {
        let round_trip = Duration::from_millis(1);
        TaskReport {
            version: version.map(String::from),
            clock_ahead,
            round_trip,
            descriptors: None,
        }
    }

    fn faults(report: &TaskReport) -> Vec<&'static str> {
        let all = judge("ps 0", "h:1", report).into_iter();
        all.filter(|found| found.health == Health::Fault).map(|found| found.check).collect()
    }

    #[test]
    fn another_version_and_another_time_are_faults() {
        let own = Some(env!("CARGO_PKG_VERSION"));
        assert!(faults(&report(own, 0.5)).is_empty());
        assert_eq!(faults(&report(Some("0.0.1"), 0.0)), ["versions"]);
        assert_eq!(faults(&report(own, -60.0)), ["clocks"]);
        assert_eq!(faults(&report(own, 60.0)), ["clocks"]);
        assert!(faults(&report(None, 60.0)).is_empty(), "TensorFlow does not tell the time");
    }
}
