//! Ports for the tasks of a job.

use crate::say::say;
use ferroflow::{Code, Error, Result};
use std::net::TcpListener;

/// Ports of this host that are free now. The caller binds them soon after.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    // Hold each port until all are found, so that none is returned twice.
    let mut held = Vec::with_capacity(count);
    let bound = (0..count).map(|_| {
        let listener = TcpListener::bind("0.0.0.0:0")?;
        let port = listener.local_addr()?.port();
        held.push(listener);
        Ok(port)
    });
    let ports: std::io::Result<Vec<u16>> = bound.collect();
    ports.map_err(|e| Error::new(Code::Unavailable, format!("no free port: {e}")))
}

/// Print free ports of this host
#[derive(clap::Args)]
pub struct Args {
    /// How many
    count: usize,
}

pub fn run(args: Args) -> Result<()> {
    let ports: Vec<String> = free_ports(args.count)?.iter().map(u16::to_string).collect();
    say!("{}", ports.join(" "));
    Ok(())
}

/// Parses the output of [`run`].
pub fn parse(said: &str, count: usize) -> Option<Vec<u16>> {
    let ports: Option<Vec<u16>> = said.split_whitespace().map(|word| word.parse().ok()).collect();
    ports.filter(|ports| ports.len() == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_comes_twice() {
        let mut ports = free_ports(20).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }

    #[test]
    fn another_hosts_answer_is_read() {
        assert_eq!(parse("1 2\r\n", 2), Some(vec![1, 2]));
        assert_eq!(parse("1\n", 2), None);
        assert_eq!(parse("welcome! 1 2\n", 2), None);
    }
}
