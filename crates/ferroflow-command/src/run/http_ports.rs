//! HTTP ports of the processes of a job.

use super::hosts::invalid;
use ferroflow::Result;

/// Consecutive ports from the first.
pub struct HttpPorts {
    host: String,
    first: u16,
}

impl HttpPorts {
    /// Parses `HOST:PORT`, or a port of loopback.
    pub fn parse(address: &str) -> Result<HttpPorts> {
        let (host, port) = address.rsplit_once(':').unwrap_or(("127.0.0.1", address));
        let first = port.parse::<u16>().ok().filter(|port| *port > 0);
        let first = first.ok_or_else(|| {
            invalid(format!("--http {address}: expected HOST:PORT or PORT, with a port above 0"))
        })?;
        Ok(HttpPorts { host: host.to_string(), first })
    }

    /// The port of the first process.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// The environment variable of process `index`. The process refuses a port beyond the last.
    pub fn of(&self, index: usize) -> (String, String) {
        let port = usize::from(self.first) + index;
        ("FERROFLOW_HTTP".into(), format!("{}:{port}", self.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_the_next_port() {
        let ports = HttpPorts::parse("10.1.2.3:9100").unwrap();
        assert_eq!(ports.of(2), ("FERROFLOW_HTTP".into(), "10.1.2.3:9102".into()));
        assert_eq!(HttpPorts::parse("9100").unwrap().of(0).1, "127.0.0.1:9100");
        for wrong in ["", "x", "0", "host:", "host:0", "host:70000"] {
            assert!(HttpPorts::parse(wrong).is_err(), "{wrong}");
        }
    }
}
