//! The TCP connections between ranks: one or several for each pair.

use super::connect::{Deadline, connect};
use super::greeter::{Greeted, Greeter};
use super::{Hello, MAGIC, Membership};
use crate::wire::{FieldReader, FieldWriter, write_frame};
use ferroflow_core::{Result, bail, ensure};
use ferroflow_identity::{JobToken, SecureStream};
use std::net::TcpListener;

/// Most connections of a pair. No known network needs more.
pub(crate) const MOST_STREAMS: usize = 16;

/// Connections between ranks on different hosts, by default. A connection uses one queue of a
/// network card and one processor for receiving, and a lost packet halves its speed. With two, the
/// other connection continues. More pay off only on networks that limit each connection, as clouds
/// do. Elsewhere they cost an additional system call per chunk.
const BETWEEN_HOSTS: usize = 2;

/// The number of connections between two ranks: `asked` on rank 0, or the default for their hosts.
fn streams_between(asked: Option<usize>, one: &Hello, other: &Hello) -> usize {
    match asked {
        Some(streams) => streams,
        // Within a host, one connection is as fast as the processor can copy.
        None if one.host == other.host => 1,
        None => BETWEEN_HOSTS,
    }
}

/// An error unless this number of connections is allowed.
pub(crate) fn check_streams(streams: usize) -> Result<usize> {
    ensure!(
        (1..=MOST_STREAMS).contains(&streams),
        InvalidArgument,
        "{streams} connections between two ranks are not possible: use 1 to {MOST_STREAMS}"
    );
    Ok(streams)
}

/// The first message on a connection to a lower rank.
struct Call {
    from: usize,
    to: usize,
    /// The number of the connection.
    stream: usize,
}

impl Call {
    fn encode(&self) -> Vec<u8> {
        let mut w = FieldWriter::default();
        w.u32(MAGIC).u32(self.from as u32).u32(self.to as u32).u32(self.stream as u32);
        w.0
    }

    fn decode(bytes: &[u8]) -> Result<Call> {
        let mut r = FieldReader(bytes);
        ensure!(r.u32()? == MAGIC, DataLoss, "the peer is not a rank of this version of Ferroflow");
        let (from, to, stream) = (r.u32()? as usize, r.u32()? as usize, r.u32()? as usize);
        Ok(Call { from, to, stream })
    }
}

/// Connects to all lower ranks and accepts the connections of all higher ones. Returns the
/// connections by rank.
pub(super) fn connect_all(
    member: &Membership,
    asked: Option<usize>,
    listener: &TcpListener,
    table: &[Hello],
    until: &Deadline,
) -> Result<Vec<Vec<SecureStream>>> {
    let Membership { rank, size, .. } = *member;
    let token = JobToken::new(member.token.as_str());
    let mut streams: Vec<Vec<Option<SecureStream>>> = table
        .iter()
        .map(|other| match other.rank == rank {
            true => Vec::new(),
            false => (0..streams_between(asked, &table[rank], other)).map(|_| None).collect(),
        })
        .collect();
    for lower in 0..rank {
        for (number, stream) in streams[lower].iter_mut().enumerate() {
            let (address, role) = (&table[lower].address, member.role(lower));
            let mut connected = connect(address, &role, &member.trust, &token, until)
                .map_err(|e| e.context(format!("rank {lower}")))?;
            let call = Call { from: rank, to: lower, stream: number };
            write_frame(&mut connected, &call.encode())
                .map_err(|e| crate::io_error(&format!("cannot send to rank {lower}"), &e))?;
            *stream = Some(connected);
        }
    }
    let mut greeter = Greeter::new(listener, &member.trust, &member.token)?;
    while let Some(missing) = (rank + 1..size).find(|&r| streams[r].iter().any(Option::is_none)) {
        let Some(Greeted { stream, first }) = greeter.next(until)? else {
            bail!(DeadlineExceeded, "rank {missing} did not connect to rank {rank}");
        };
        let Ok(call) = Call::decode(&first) else { continue };
        let may_be = stream.identity().may_be(&member.role(call.from));
        if !may_be || call.to != rank || call.from <= rank {
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
    fn ranks_on_different_hosts_have_two_connections_by_default() {
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
    fn an_invalid_number_of_connections_is_refused_with_the_valid_range() {
        for streams in [0, 17, usize::MAX] {
            let e = check_streams(streams).unwrap_err();
            assert!(e.message().contains("1 to 16"), "{e}");
        }
        assert_eq!(check_streams(16).unwrap(), 16);
    }
}
