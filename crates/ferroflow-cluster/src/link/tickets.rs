//! Tickets authorize links. A task gives a ticket to each identity that asks for its status. A link
//! that shows the ticket belongs to that identity, even if its connection has no certificate.

use super::Token;
use ferroflow_core::{HashMap, Result};
use ferroflow_identity::{JobToken, PeerIdentity};
use parking_lot::Mutex;
use std::sync::Arc;

/// The tickets of one task.
pub(crate) struct LinkTickets {
    secret: JobToken,
    holders: Mutex<HashMap<Token, Arc<PeerIdentity>>>,
}

impl LinkTickets {
    pub fn new() -> Result<LinkTickets> {
        Ok(LinkTickets { secret: JobToken::random()?, holders: Mutex::default() })
    }

    /// The ticket of a caller. The same caller always gets the same one.
    pub fn ticket(&self, caller: &Arc<PeerIdentity>) -> Token {
        let proof = self.secret.prove("link", &[format!("{caller:?}").as_bytes()]);
        let mut ticket = Token::default();
        let len = ticket.len();
        ticket.copy_from_slice(&proof[..len]);
        self.holders.lock().entry(ticket).or_insert_with(|| caller.clone());
        ticket
    }

    /// The identity that has this ticket.
    pub fn holder(&self, ticket: &Token) -> Option<Arc<PeerIdentity>> {
        self.holders.lock().get(ticket).cloned()
    }

    /// Tickets of a test, one of them known.
    #[cfg(test)]
    pub fn with(ticket: Token) -> LinkTickets {
        let holders = [(ticket, Arc::new(PeerIdentity::Unverified))].into_iter().collect();
        LinkTickets { secret: JobToken::default(), holders: Mutex::new(holders) }
    }
}
