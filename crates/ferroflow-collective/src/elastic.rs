//! Elastic groups: ranks may join and leave while the job runs.
//!
//! A [`Driver`] outlives all ranks and has a connection to every process of the job. A process that
//! is ready for a rank says so. When all live processes are ready, the driver assigns ranks, to
//! survivors before newcomers, and the processes form the group of a new *epoch*. A process that
//! dies closes its connection. The driver informs processes that are about to connect to it, and
//! processes in its group detect the loss themselves. All of them then ask for their next rank.
//! Newcomers that can reach the driver but not the other ranks are left out of the next epoch.
//! Epochs are fenced: a process of an old epoch cannot connect to a new one.
//!
//! Reduce servers join as processes of their own kind. They count towards no limit: an epoch has
//! all servers that are ready, after its ranks.

mod driver;
mod member;

pub use driver::{Driver, DriverOptions, DriverReport};
pub use member::ElasticMember;

use crate::wire::{FieldReader, FieldWriter};
use ferroflow_core::{Code, Error, Result, ensure, err};
use rustix::net::sockopt;
use std::net::TcpStream;
use std::time::Duration;

const MAGIC: u32 = 0xFE44_E1A8;

/// The role in the certificate of the driver.
const DRIVER_ROLE: &str = "driver";

/// Why the driver refuses a process that connects after others have finished.
const JOB_IS_DONE: &str = "the job is done";

/// Whether a process got this error because others had finished before it got a rank.
pub fn is_job_done(e: &Error) -> bool {
    e.code() == Code::FailedPrecondition && e.message() == JOB_IS_DONE
}

/// Enables TCP keepalive, so that an idle connection ends when the other host goes down.
fn watch(stream: &TcpStream) -> std::io::Result<()> {
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// A message from a process to the driver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkerMessage {
    /// The first message: the name of the process, and whether it is a reduce server.
    Hello { name: String, is_server: bool },
    /// The process has left its epoch, if it was in one. It would listen at this address as rank 0.
    Ready { address: String },
    /// The process has connected to the other ranks of its epoch.
    GroupFormed { epoch: u64 },
    /// The process could not connect to the other ranks, and will be ready again.
    GroupFailed { epoch: u64, why: String },
    /// The process has finished its work.
    Done,
    /// As rank 0: the state of the job is on the parameter servers of this epoch, and on no others.
    Settled { epoch: u64 },
}

/// A message from the driver to a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DriverMessage {
    /// The process gets this rank in a new epoch.
    Assign {
        epoch: u64,
        rank: u32,
        /// The number of processes. The last ones are servers.
        size: u32,
        servers: u32,
        servers_only: bool,
        address: String,
        /// The addresses of the parameter servers, separated by commas; empty if there are none.
        ps: String,
    },
    /// Newcomers wait for a place in a group, or the parameter servers have changed: leave the
    /// epoch at the next opportunity.
    NewcomersWaiting,
    /// A rank of this epoch is gone: do not wait for it.
    RankLost { epoch: u64 },
    /// The driver refuses the process, for this reason.
    Refused(Error),
}

impl WorkerMessage {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        match self {
            WorkerMessage::Hello { name, is_server } => {
                w.u8(1).u32(MAGIC).text(name).u8(u8::from(*is_server))
            }
            WorkerMessage::Ready { address } => w.u8(2).text(address),
            WorkerMessage::Done => w.u8(3),
            WorkerMessage::GroupFormed { epoch } => w.u8(4).u64(*epoch),
            WorkerMessage::GroupFailed { epoch, why } => w.u8(5).u64(*epoch).text(why),
            WorkerMessage::Settled { epoch } => w.u8(6).u64(*epoch),
        };
        w.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<WorkerMessage> {
        let mut r = FieldReader(bytes);
        Ok(match r.u8()? {
            1 => {
                ensure!(
                    r.u32()? == MAGIC,
                    DataLoss,
                    "the peer is not a process of this version of Ferroflow"
                );
                WorkerMessage::Hello { name: r.text()?, is_server: r.u8()? != 0 }
            }
            2 => WorkerMessage::Ready { address: r.text()? },
            3 => WorkerMessage::Done,
            4 => WorkerMessage::GroupFormed { epoch: r.u64()? },
            5 => WorkerMessage::GroupFailed { epoch: r.u64()?, why: r.text()? },
            6 => WorkerMessage::Settled { epoch: r.u64()? },
            other => {
                return Err(err!(
                    DataLoss,
                    "worker message {other} comes from another version of Ferroflow"
                ));
            }
        })
    }
}

impl DriverMessage {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        match self {
            DriverMessage::Assign { epoch, rank, size, servers, servers_only, address, ps } => {
                w.u8(1).u64(*epoch).u32(*rank).u32(*size).u32(*servers);
                w.u8(u8::from(*servers_only)).text(address).text(ps)
            }
            DriverMessage::NewcomersWaiting => w.u8(2),
            DriverMessage::RankLost { epoch } => w.u8(3).u64(*epoch),
            DriverMessage::Refused(e) => w.u8(4).u32(e.code() as u32).text(e.message()),
        };
        w.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<DriverMessage> {
        let mut r = FieldReader(bytes);
        Ok(match r.u8()? {
            1 => DriverMessage::Assign {
                epoch: r.u64()?,
                rank: r.u32()?,
                size: r.u32()?,
                servers: r.u32()?,
                servers_only: r.u8()? != 0,
                address: r.text()?,
                ps: r.text()?,
            },
            2 => DriverMessage::NewcomersWaiting,
            3 => DriverMessage::RankLost { epoch: r.u64()? },
            4 => DriverMessage::Refused(Error::new(Code::from_number(r.u32()? as i32), r.text()?)),
            other => {
                return Err(err!(
                    DataLoss,
                    "driver message {other} comes from another version of Ferroflow"
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests;
