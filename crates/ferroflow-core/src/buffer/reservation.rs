//! Counts memory that is allocated elsewhere, such as the texts of strings.

use super::{Holder, RECYCLE_FROM, count, small, take_unrefused, unreserve};
use crate::{MemoryOwner, Result};
use std::fmt;

/// Counts memory that is allocated elsewhere, until it is dropped. It counts against the limits of
/// the process and of the current session.
#[derive(Default)]
pub struct Reservation {
    bytes: usize,
    /// An account if the reservation is small, else a session.
    holder: Holder,
}

impl Reservation {
    /// Counts `bytes`. Fails if a limit does not allow it; a few bytes are never refused.
    pub fn new(bytes: usize) -> Result<Reservation> {
        if bytes == 0 {
            return Ok(Reservation::default());
        }
        if bytes < RECYCLE_FROM {
            return Ok(Reservation::small(bytes));
        }
        let session = MemoryOwner::current();
        if let Some(session) = &session {
            session.take(bytes)?;
        }
        if let Err(e) = count(bytes) {
            session.inspect(|session| session.give_back(bytes));
            return Err(e);
        }
        Ok(Reservation { bytes, holder: Holder::of_session(session) })
    }

    fn small(bytes: usize) -> Reservation {
        let account = MemoryOwner::current_account();
        small::count(bytes, account);
        Reservation { bytes, holder: Holder::of_account(account) }
    }

    /// Counts `bytes` that are already allocated.
    pub(crate) fn after_the_fact(bytes: usize) -> Reservation {
        match bytes {
            0 => Reservation::default(),
            bytes if bytes < RECYCLE_FROM => Reservation::small(bytes),
            _ => {
                take_unrefused(bytes);
                Reservation { bytes, holder: Holder::Unknown }
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the count to `bytes` in all. If a limit does not allow it, fails and changes
    /// nothing.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        if bytes >= self.bytes {
            return self.grow(bytes - self.bytes);
        }
        if bytes < RECYCLE_FROM {
            *self = Reservation::new(bytes)?;
            return Ok(());
        }
        let fewer = self.bytes - bytes;
        if let Holder::Session(session) = &self.holder {
            session.give_back(fewer);
        }
        unreserve(fewer);
        self.bytes = bytes;
        Ok(())
    }

    /// Counts `bytes` more. An error if a limit does not allow it.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let all = self.bytes.saturating_add(bytes);
        if self.bytes < RECYCLE_FROM {
            *self = Reservation::new(all)?;
            return Ok(());
        }
        if let Holder::Session(session) = &self.holder {
            session.take(bytes)?;
        }
        if let Err(e) = count(bytes) {
            if let Holder::Session(session) = &self.holder {
                session.give_back(bytes);
            }
            return Err(e);
        }
        self.bytes = all;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        match self.bytes {
            0 => {}
            bytes if bytes < RECYCLE_FROM => small::discount(bytes, self.holder.account()),
            bytes => {
                if let Holder::Session(session) = &self.holder {
                    session.give_back(bytes);
                }
                unreserve(bytes);
            }
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({})", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Limits};

    #[test]
    fn a_session_counts_what_it_reserves_until_it_is_dropped() {
        let limit = Limit { most: 100_000, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        let mut held = session.run(|| Reservation::new(1000)).unwrap();
        session.run(|| held.grow(60_000)).unwrap();
        assert!((61_000..64_000).contains(&session.live()), "{}", session.live());
        assert!(session.run(|| held.grow(60_000)).is_err());
        assert!(session.run(|| Reservation::new(60_000)).is_err());
        assert!(Reservation::new(60_000).is_ok(), "another session");
        session.run(|| held.resize(5000)).unwrap();
        assert!((5000..8000).contains(&session.live()), "{}", session.live());
        session.run(|| held.resize(70_000)).unwrap();
        session.run(|| held.resize(10)).unwrap();
        assert!(session.live() < 2000, "{}", session.live());
        drop(held);
        assert!(session.live() < 2000, "{}", session.live());
        assert!(session.run(|| Reservation::new(60_000)).is_ok());
    }
}
