//! Groups whose ranks come and go.
//!
//! A [`Driver`], which outlives all ranks, holds a connection to every process of the job. A process that
//! is ready for a place says so; when all that live are ready, the driver numbers them, survivors before
//! newcomers, and they meet as a group of a new *epoch*. A process that dies closes its connection: those
//! that are about to meet it are told, those that have met it notice by themselves, and all come back for
//! their next place. Newcomers that can reach the driver but not the ranks, so that an epoch does not meet,
//! are left out of the next. Epochs are fenced: who belongs to an old one cannot meet the new.

mod driver;
mod member;

pub use driver::{Driver, DriverOptions, DriverReport};
pub use member::ElasticMember;

use crate::wire::{FieldReader, FieldWriter};
use ferroflow_core::{Code, Error, Result, ensure, err};
use rustix::net::sockopt;
use std::net::TcpStream;
use std::time::Duration;

const MAGIC: u32 = 0xFE44_E1A6;

/// Makes a connection end when the other's host is gone without a word, though nothing is to be said for long.
fn watch(stream: &TcpStream) -> std::io::Result<()> {
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// What a process tells the driver.
#[derive(Clone, Debug, PartialEq)]
enum WorkerMessage {
    /// Who it is; the first word.
    Hello { token: String, name: String },
    /// It has left its epoch, if it was in one, and would listen here as rank 0.
    Ready { address: String },
    /// It has met the other ranks of its epoch.
    GroupFormed { epoch: u64 },
    /// It has not, and is about to be ready again.
    GroupFailed { epoch: u64, why: String },
    /// It has done its work.
    Done,
}

/// What the driver tells a process.
#[derive(Clone, Debug, PartialEq)]
enum DriverMessage {
    Assign {
        epoch: u64,
        rank: u32,
        size: u32,
        address: String,
    },
    /// Others want to come in: leave the epoch when it suits.
    NewcomersWaiting,
    /// A rank of this epoch is gone: do not wait for it.
    RankLost {
        epoch: u64,
    },
    Refused(Error),
}

impl WorkerMessage {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        match self {
            WorkerMessage::Hello { token, name } => w.u8(1).u32(MAGIC).text(token).text(name),
            WorkerMessage::Ready { address } => w.u8(2).text(address),
            WorkerMessage::Done => w.u8(3),
            WorkerMessage::GroupFormed { epoch } => w.u8(4).u64(*epoch),
            WorkerMessage::GroupFailed { epoch, why } => w.u8(5).u64(*epoch).text(why),
        };
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<WorkerMessage> {
        let mut r = FieldReader(bytes);
        Ok(match r.u8()? {
            1 => {
                ensure!(r.u32()? == MAGIC, DataLoss, "not a process of this version of Ferroflow");
                WorkerMessage::Hello { token: r.text()?, name: r.text()? }
            }
            2 => WorkerMessage::Ready { address: r.text()? },
            3 => WorkerMessage::Done,
            4 => WorkerMessage::GroupFormed { epoch: r.u64()? },
            5 => WorkerMessage::GroupFailed { epoch: r.u64()?, why: r.text()? },
            other => return Err(err!(DataLoss, "word {other} of another version")),
        })
    }
}

impl DriverMessage {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        match self {
            DriverMessage::Assign { epoch, rank, size, address } => {
                w.u8(1).u64(*epoch).u32(*rank).u32(*size).text(address)
            }
            DriverMessage::NewcomersWaiting => w.u8(2),
            DriverMessage::RankLost { epoch } => w.u8(3).u64(*epoch),
            DriverMessage::Refused(e) => w.u8(4).u32(e.code() as u32).text(e.message()),
        };
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<DriverMessage> {
        let mut r = FieldReader(bytes);
        Ok(match r.u8()? {
            1 => DriverMessage::Assign {
                epoch: r.u64()?,
                rank: r.u32()?,
                size: r.u32()?,
                address: r.text()?,
            },
            2 => DriverMessage::NewcomersWaiting,
            3 => DriverMessage::RankLost { epoch: r.u64()? },
            4 => DriverMessage::Refused(Error::new(Code::from_number(r.u32()? as i32), r.text()?)),
            other => return Err(err!(DataLoss, "answer {other} of another version")),
        })
    }
}

#[cfg(test)]
mod tests;
