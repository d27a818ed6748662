//! Opens the control connections of large groups. All ranks have met at rank 0 and know each
//! other's addresses. Each rank then connects to its parent in the tree and accepts its children.

use super::connect::{Deadline, connect};
use super::greeter::{Greeted, Greeter};
use super::pairs::Call;
use super::{Hello, Membership};
use crate::control::ControlTree;
use crate::wire::write_frame;
use ferroflow_core::{Result, bail};
use ferroflow_identity::{JobToken, SecureStream};
use std::net::TcpListener;

/// The control connections of a rank, and connections for data that arrived meanwhile.
pub(super) struct TreeLinks {
    pub links: Vec<Option<SecureStream>>,
    pub early: Vec<Greeted>,
}

/// Opens the control connections of a rank other than rank 0. `link` is the one to rank 0, which is
/// closed if rank 0 is not the parent.
pub(super) fn connect_tree(
    member: &Membership,
    table: &[Hello],
    listener: &TcpListener,
    link: SecureStream,
    until: &Deadline,
) -> Result<TreeLinks> {
    let (rank, tree) = (member.rank, ControlTree::of(member.size));
    let mut links: Vec<Option<SecureStream>> = (0..member.size).map(|_| None).collect();
    let parent = tree.parent(rank).unwrap_or(0);
    links[parent] = Some(match parent {
        0 => link,
        _ => {
            drop(link);
            let token = JobToken::new(member.token.as_str());
            let (address, role) = (&table[parent].address, member.role(parent));
            let mut connected = connect(address, &role, &member.trust, &token, until)
                .map_err(|e| e.context(format!("rank {parent}")))?;
            let call = Call { from: rank, to: parent, stream: Call::CONTROL };
            write_frame(&mut connected, &call.encode())
                .map_err(|e| crate::io_error(&format!("cannot send to rank {parent}"), &e))?;
            connected
        }
    });
    let mut early = Vec::new();
    let children = tree.children(rank);
    let mut missing = children.len();
    if missing > 0 {
        let mut greeter = Greeter::new(listener, member.size, &member.trust, &member.token)?;
        while missing > 0 {
            let Some(greeted) = greeter.next(until)? else {
                let late: Vec<usize> = children.filter(|&c| links[c].is_none()).collect();
                bail!(DeadlineExceeded, "ranks {late:?} did not connect");
            };
            // A connection that is not of this group, or a second one of a rank, is closed.
            let Ok(call) = Call::decode(&greeted.first) else { continue };
            if call.stream != Call::CONTROL {
                early.push(greeted);
                continue;
            }
            let is_right = children.contains(&call.from) && call.to == rank;
            if is_right
                && links[call.from].is_none()
                && greeted.stream.may_be(&member.role(call.from))
            {
                links[call.from] = Some(greeted.stream);
                missing -= 1;
            }
        }
    }
    Ok(TreeLinks { links, early })
}
