//! Memory, processor time and descriptors of this process, from `/proc`.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Ticks of `/proc/self/stat` in a second. Linux always shows 100 to programs.
const TICKS: f64 = 100.0;

/// What the kernel says of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessUse {
    pub resident_bytes: u64,
    pub cpu_seconds: f64,
    pub open_files: u64,
    pub threads: u64,
}

impl ProcessUse {
    /// Zeros where there is no `/proc`.
    pub fn read() -> ProcessUse {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program is in brackets and may contain spaces.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        ProcessUse {
            resident_bytes: number(21) * 4096,
            cpu_seconds: (number(11) + number(12)) as f64 / TICKS,
            open_files,
            threads: number(17),
        }
    }
}

/// Reads them for each scrape.
#[derive(Debug)]
pub(crate) struct ProcessCollector {
    /// Seconds since 1970.
    pub started: f64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let found = ProcessUse::read();
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)
        };
        let resident = found.resident_bytes as f64;
        gauge("process_resident_memory_bytes", "Resident memory of the process", resident)?;
        gauge("process_open_fds", "Open file descriptors", found.open_files as f64)?;
        gauge("process_threads", "Threads of the process", found.threads as f64)?;
        let help = "Start of the process, in seconds since 1970";
        gauge("process_start_time_seconds", help, self.started)?;
        let cpu = ConstCounter::new(found.cpu_seconds);
        let help = "Processor time of the process";
        cpu.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            help,
            None,
            cpu.metric_type(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_files() {
        let found = ProcessUse::read();
        assert!(found.resident_bytes > 4096 && found.open_files >= 3 && found.threads >= 1);
    }
}
