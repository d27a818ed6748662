//! A vector whose memory counts against the memory limit.

use crate::{Reservation, Result};
use std::ops::{Deref, DerefMut};

/// A vector of values that no tensor holds. Its memory counts against the limits of the process and
/// of the current session, so it never grows beyond them. What the values refer to does not count.
///
/// ```
/// use ferroflow_core::CountedVec;
/// let mut numbers = CountedVec::filled(3, 1)?;
/// numbers.push(7)?;
/// assert_eq!(*numbers, [1, 1, 1, 7]);
/// assert!(CountedVec::filled(1 << 50, 1).is_err());
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
#[derive(Debug)]
pub struct CountedVec<T> {
    items: Vec<T>,
    counted: Reservation,
}

impl<T> Default for CountedVec<T> {
    fn default() -> CountedVec<T> {
        CountedVec { items: Vec::new(), counted: Reservation::default() }
    }
}

impl<T> CountedVec<T> {
    /// Without values.
    pub fn new() -> CountedVec<T> {
        CountedVec::default()
    }

    /// Without values, and with room for `n`. An error if there is no memory for them.
    pub fn with_capacity(n: usize) -> Result<CountedVec<T>> {
        let mut new = CountedVec::new();
        new.reserve(n)?;
        Ok(new)
    }

    /// `n` times the same value. An error if there is no memory for them.
    pub fn filled(n: usize, value: T) -> Result<CountedVec<T>>
    where
        T: Clone,
    {
        let mut new = CountedVec::new();
        new.resize(n, value)?;
        Ok(new)
    }

    /// The values of `all`. An error if one of them is, or if there is no memory for them.
    pub fn try_from_iter(all: impl IntoIterator<Item = Result<T>>) -> Result<CountedVec<T>> {
        let mut new = CountedVec::new();
        for value in all {
            new.push(value?)?;
        }
        Ok(new)
    }

    /// A copy. An error if there is no memory for it.
    pub fn try_clone(&self) -> Result<CountedVec<T>>
    where
        T: Clone,
    {
        let mut new = CountedVec::with_capacity(self.len())?;
        new.items.extend_from_slice(&self.items);
        Ok(new)
    }

    /// Adds a value. An error if there is no memory for it.
    pub fn push(&mut self, value: T) -> Result<()> {
        self.reserve(1)?;
        self.items.push(value);
        Ok(())
    }

    /// Takes the last value.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// Cuts it off, or adds copies of `value`. An error if there is no memory for them.
    pub fn resize(&mut self, n: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        self.reserve(n.saturating_sub(self.len()))?;
        self.items.resize(n, value);
        Ok(())
    }

    /// Makes room for more values. An error if there is no memory for them.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let wanted = self.len().saturating_add(more);
        if wanted <= self.items.capacity() {
            return Ok(());
        }
        let capacity = wanted.max(self.items.capacity().saturating_mul(2)).max(4);
        self.counted.resize(capacity.saturating_mul(size_of::<T>()))?;
        self.items.reserve_exact(capacity - self.len());
        Ok(())
    }
}

impl<T> Deref for CountedVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for CountedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Limit, Limits, MemoryOwner};

    #[test]
    fn a_vector_does_not_grow_beyond_the_limit_of_its_session() {
        let limit = Limit { most: 100_000, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        session.run(|| {
            let mut all = CountedVec::new();
            let refused = (0..1_000_000u64).find_map(|i| all.push(i).err());
            assert_eq!(refused.map(|e| e.code()), Some(Code::ResourceExhausted));
            assert!((4000..12_500).contains(&all.len()), "{}", all.len());
            assert!(all.try_clone().is_err() && all.len() >= 4000);
            let n = all.len();
            all.resize(n / 2, 0).unwrap();
            assert_eq!(all.pop(), Some(n as u64 / 2 - 1));
        });
        assert_eq!(session.live(), 0);
        assert!(CountedVec::<u64>::with_capacity(usize::MAX).is_err());
        let failing = [Ok(1), Err(crate::err!(Internal, "no"))];
        assert!(CountedVec::try_from_iter(failing).is_err());
    }
}
