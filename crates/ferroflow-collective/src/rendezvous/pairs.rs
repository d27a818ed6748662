//! The connections between ranks that share no memory: one or several for each pair, the same number at both ends.

use super::connect::{Deadline, accept, connect, frame};
use super::{Hello, MAGIC, Membership};
use crate::wire::{FieldReader, FieldWriter, write_frame};
use ferroflow_core::{Result, bail, ensure};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Connections of a pair at most; a network that needs more to be full is not known.
pub(crate) const MOST_STREAMS: usize = 16;

/// Connections between ranks on different hosts, where nobody asks for another number. A connection has one
/// queue of a network card and one processor that receives for it, and a lost packet halves what it sends; with
/// two, the other goes on. More pay where a network limits each connection, as clouds do, and cost a system call
/// for each chunk everywhere else: that is for those to say who know the network.
const BETWEEN_HOSTS: usize = 2;

/// How many connections two ranks have: what rank 0 was `asked` for, or what suits where they are.
fn streams_between(asked: Option<usize>, one: &Hello, other: &Hello) -> usize {
    match asked {
        Some(streams) => streams,
        // Within a host a connection is as fast as the processor that copies.
        None if one.host == other.host => 1,
        None => BETWEEN_HOSTS,
    }
}

/// A number of connections that can be asked for.
pub(crate) fn check_streams(streams: usize) -> Result<usize> {
    ensure!(
        (1..=MOST_STREAMS).contains(&streams),
        InvalidArgument,
        "{streams} connections between two ranks: there can be 1 to {MOST_STREAMS}"
    );
    Ok(streams)
}

/// What a rank says on a connection to a lower one.
struct Call {
    from: usize,
    to: usize,
    /// Which of their connections it is.
    stream: usize,
    token: String,
}

impl Call {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        w.u32(MAGIC).u32(self.from as u32).u32(self.to as u32).u32(self.stream as u32);
        w.text(&self.token);
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<Call> {
        let mut r = FieldReader(bytes);
        ensure!(r.u32()? == MAGIC, DataLoss, "not a rank of this version of Ferroflow");
        let (from, to, stream) = (r.u32()? as usize, r.u32()? as usize, r.u32()? as usize);
        Ok(Call { from, to, stream, token: r.text()? })
    }
}

/// Connects to all lower ranks and takes the connections of all higher ones: those of each, in order.
pub(super) fn connect_all(
    member: &Membership,
    asked: Option<usize>,
    listener: &TcpListener,
    table: &[Hello],
    until: &Deadline,
) -> Result<Vec<Vec<TcpStream>>> {
    let Membership { rank, size, .. } = *member;
    let mut streams: Vec<Vec<Option<TcpStream>>> = table
        .iter()
        .map(|other| match other.rank == rank {
            true => Vec::new(),
            false => (0..streams_between(asked, &table[rank], other)).map(|_| None).collect(),
        })
        .collect();
    for lower in 0..rank {
        for (number, stream) in streams[lower].iter_mut().enumerate() {
            let mut connected = connect(&table[lower].address, until)
                .map_err(|e| e.context(format!("rank {lower}")))?;
            let call = Call { from: rank, to: lower, stream: number, token: member.token.clone() };
            write_frame(&mut connected, &call.encode())
                .map_err(|e| crate::io_error(&format!("rank {lower}"), &e))?;
            *stream = Some(connected);
        }
    }
    while let Some(missing) = (rank + 1..size).find(|&r| streams[r].iter().any(Option::is_none)) {
        let Some(mut stream) = accept(listener, until)? else {
            bail!(DeadlineExceeded, "rank {missing} did not connect to rank {rank}");
        };
        let short = Deadline::after(Duration::from_secs(5));
        let Ok(call) = frame(&mut stream, &short).and_then(|f| Call::decode(&f)) else {
            continue;
        };
        if call.token != member.token || call.to != rank || call.from <= rank {
            continue;
        }
        let place = streams.get_mut(call.from).and_then(|s| s.get_mut(call.stream));
        if let Some(place @ None) = place {
            *place = Some(stream);
        }
    }
    Ok(streams.into_iter().map(|s| s.into_iter().flatten().collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_far_apart_have_two_connections_unless_rank_0_is_asked_for_others() {
        let hello = |host: &str| Hello { host: host.into(), ..Hello::default() };
        let (a, b) = (hello("a"), hello("b"));
        assert_eq!(streams_between(None, &a, &a), 1);
        assert_eq!(streams_between(None, &a, &b), 2);
        for asked in 1..=3 {
            assert_eq!(streams_between(Some(asked), &a, &a), asked);
            assert_eq!(streams_between(Some(asked), &a, &b), asked);
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_with_what_can() {
        for streams in [0, 17, usize::MAX] {
            let e = check_streams(streams).unwrap_err();
            assert!(e.message().contains("1 to 16"), "{e}");
        }
        assert_eq!(check_streams(16).unwrap(), 16);
    }
}
