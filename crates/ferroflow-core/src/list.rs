//! Storage for elements that are not plain bytes: strings, handles, variants.

use crate::Result;
use crate::buffer::Reservation;
use bytes::Bytes;
use std::ops::{Deref, DerefMut};

/// A list of elements. Its own memory counts against the memory limit, and so do texts that belong
/// to it alone. Objects that the elements refer to do not count. Dereferences to a slice.
pub struct List<T> {
    items: Vec<T>,
    counted: Reservation,
}

/// What a text takes besides its bytes.
const AROUND_TEXT: usize = 32;

impl<T> List<T> {
    /// `n` default elements. An error if there is no memory for them.
    pub fn of_defaults(n: usize) -> Result<List<T>>
    where
        T: Clone + Default,
    {
        let counted = Reservation::new(bytes::<T>(n))?;
        Ok(List { items: vec![T::default(); n], counted })
    }

    /// A copy of `items`. An error if there is no memory for it.
    pub fn copy_of(items: &[T]) -> Result<List<T>>
    where
        T: Clone,
    {
        let counted = Reservation::new(bytes::<T>(items.len()))?;
        Ok(List { items: items.to_vec(), counted })
    }
}

impl List<Bytes> {
    /// A list of texts. Those that no other list or message holds count too.
    pub fn of_texts(items: Vec<Bytes>) -> Result<List<Bytes>> {
        let own = items.iter().filter(|text| text.is_unique()).map(|text| text.len() + AROUND_TEXT);
        let bytes = own.fold(bytes::<Bytes>(items.len()), usize::saturating_add);
        let counted = Reservation::new(bytes)?;
        Ok(List { items, counted })
    }
}

impl<T> TryFrom<Vec<T>> for List<T> {
    type Error = crate::Error;
    fn try_from(items: Vec<T>) -> Result<List<T>> {
        let counted = Reservation::new(bytes::<T>(items.len()))?;
        Ok(List { items, counted })
    }
}

impl<T: Clone> Clone for List<T> {
    fn clone(&self) -> List<T> {
        let counted = Reservation::after_the_fact(self.counted.bytes());
        List { items: self.items.clone(), counted }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

fn bytes<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_count_once() {
        let text = Bytes::from(vec![7; 100_000]);
        let shared = List::of_texts(vec![text.clone(), text]).unwrap();
        assert!(shared.counted.bytes() < 1000, "another owner counts them");
        let own = List::of_texts(vec![Bytes::from(vec![7; 100_000])]).unwrap();
        assert!(own.counted.bytes() >= 100_000);
    }
}
