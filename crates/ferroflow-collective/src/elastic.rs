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

use crate::wire::{Reader, Writer};
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
enum Word {
    /// Who it is; the first word.
    Hello { token: String, name: String },
    /// It has left its epoch, if it was in one, and would listen here as rank 0.
    Ready { address: String },
    /// It has met the other ranks of its epoch.
    Met { epoch: u64 },
    /// It has not, and is about to be ready again.
    Missed { epoch: u64, why: String },
    /// It has done its work.
    Done,
}

/// What the driver tells a process.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Place {
        epoch: u64,
        rank: u32,
        size: u32,
        address: String,
    },
    /// Others want to come in: leave the epoch when it suits.
    Wanted,
    /// A rank of this epoch is gone: do not wait for it.
    Lost {
        epoch: u64,
    },
    Refused(Error),
}

impl Word {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Word::Hello { token, name } => w.u8(1).u32(MAGIC).text(token).text(name),
            Word::Ready { address } => w.u8(2).text(address),
            Word::Done => w.u8(3),
            Word::Met { epoch } => w.u8(4).u64(*epoch),
            Word::Missed { epoch, why } => w.u8(5).u64(*epoch).text(why),
        };
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<Word> {
        let mut r = Reader(bytes);
        Ok(match r.u8()? {
            1 => {
                ensure!(r.u32()? == MAGIC, DataLoss, "not a process of this version of Ferroflow");
                Word::Hello { token: r.text()?, name: r.text()? }
            }
            2 => Word::Ready { address: r.text()? },
            3 => Word::Done,
            4 => Word::Met { epoch: r.u64()? },
            5 => Word::Missed { epoch: r.u64()?, why: r.text()? },
            other => return Err(err!(DataLoss, "word {other} of another version")),
        })
    }
}

impl Answer {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Answer::Place { epoch, rank, size, address } => {
                w.u8(1).u64(*epoch).u32(*rank).u32(*size).text(address)
            }
            Answer::Wanted => w.u8(2),
            Answer::Lost { epoch } => w.u8(3).u64(*epoch),
            Answer::Refused(e) => w.u8(4).u32(e.code() as u32).text(e.message()),
        };
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<Answer> {
        let mut r = Reader(bytes);
        Ok(match r.u8()? {
            1 => Answer::Place {
                epoch: r.u64()?,
                rank: r.u32()?,
                size: r.u32()?,
                address: r.text()?,
            },
            2 => Answer::Wanted,
            3 => Answer::Lost { epoch: r.u64()? },
            4 => Answer::Refused(Error::new(Code::from_number(r.u32()? as i32), r.text()?)),
            other => return Err(err!(DataLoss, "answer {other} of another version")),
        })
    }
}

#[cfg(test)]
mod tests;
