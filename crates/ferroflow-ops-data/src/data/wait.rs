//! Primitives that futures of a pipeline wait for: a value, room or items in a buffer, a permit.

use ferroflow_core::Result;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A value that arrives later, and the sender for it.
pub(super) fn later<T>() -> (Promise<T>, Later<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, closed: false, waker: None }));
    (Promise(slot.clone()), Later(slot))
}

struct Slot<T> {
    value: Option<T>,
    closed: bool,
    waker: Option<Waker>,
}

/// The destination of a value; dropping it without a value cancels the request.
pub(super) struct Promise<T>(Arc<Mutex<Slot<T>>>);

impl<T> Promise<T> {
    pub fn keep(self, value: T) {
        self.0.lock().value = Some(value);
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = self.0.lock();
            slot.closed = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The value; `None` if it will never come.
pub(super) struct Later<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Later<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.0.lock();
        if slot.closed {
            return Poll::Ready(slot.value.take());
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A bounded buffer between background work and its consumer. Places are reserved before
/// the work for them begins, so that running work is bounded too.
pub(super) struct Buffer<T>(Mutex<Places<T>>);

struct Places<T> {
    items: VecDeque<T>,
    /// Places that are reserved or filled.
    used: usize,
    limit: usize,
    /// No more places will be reserved.
    ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl<T> Buffer<T> {
    pub fn new(limit: usize) -> Arc<Buffer<T>> {
        Arc::new(Buffer(Mutex::new(Places {
            items: VecDeque::new(),
            used: 0,
            limit: limit.max(1),
            ended: false,
            reader: None,
            writer: None,
        })))
    }

    /// Waits for a place.
    pub async fn reserve(&self) {
        poll_fn(|cx| {
            let mut places = self.0.lock();
            if places.used < places.limit {
                places.used += 1;
                return Poll::Ready(());
            }
            places.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Waits until all items are taken.
    pub async fn emptied(&self) {
        poll_fn(|cx| {
            let mut places = self.0.lock();
            if places.items.is_empty() {
                return Poll::Ready(());
            }
            places.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Fills a place that was reserved.
    pub fn push(&self, item: T) {
        self.change(|places| places.items.push_back(item));
    }

    /// Frees a reserved place.
    pub fn give_up(&self) {
        let writer = {
            let mut places = self.0.lock();
            places.used -= 1;
            places.writer.take()
        };
        if let Some(writer) = writer {
            writer.wake();
        }
        self.change(|_| {});
    }

    /// Ends the buffer: consumers get the reserved elements, then the end.
    pub fn end(&self) {
        self.change(|places| places.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Places<T>)) {
        let reader = {
            let mut places = self.0.lock();
            change(&mut places);
            places.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The next item; `None` behind the last one.
    pub async fn pop(&self) -> Option<T> {
        poll_fn(|cx| self.poll_pop(cx)).await
    }

    pub fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let popped = self.poll_take(cx);
        if let Poll::Ready(Some(_)) = popped {
            self.give_up();
        }
        popped
    }

    /// The next item. Its place stays reserved until the caller frees it.
    pub async fn take(&self) -> Option<T> {
        poll_fn(|cx| self.poll_take(cx)).await
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut places = self.0.lock();
        if let Some(item) = places.items.pop_front() {
            return Poll::Ready(Some(item));
        }
        if places.ended && places.used == 0 {
            return Poll::Ready(None);
        }
        places.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Buffer<Result<T>> {
    /// Fills a place that was reserved. Behind an error, waits until it is taken: an input that
    /// finds no memory could give errors without end, and they take memory too.
    pub async fn push_element(&self, element: Result<T>) {
        let is_error = element.is_err();
        self.push(element);
        if is_error {
            self.emptied().await;
        }
    }
}

/// A value that futures use one at a time.
pub(crate) struct Turns<T>(Mutex<Waiting<T>>);

struct Waiting<T> {
    /// `None` while a caller uses it.
    value: Option<T>,
    wakers: Vec<Waker>,
}

impl<T> Turns<T> {
    pub fn new(value: T) -> Turns<T> {
        Turns(Mutex::new(Waiting { value: Some(value), wakers: Vec::new() }))
    }

    /// The value, for the caller alone until the guard is dropped.
    pub async fn take(self: &Arc<Self>) -> Turn<T> {
        let value = poll_fn(|cx| {
            let mut waiting = self.0.lock();
            match waiting.value.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    waiting.wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        Turn { value: Some(value), of: self.clone() }
    }
}

pub(crate) struct Turn<T> {
    value: Option<T>,
    of: Arc<Turns<T>>,
}

impl<T> std::ops::Deref for Turn<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("given back only when dropped")
    }
}

impl<T> std::ops::DerefMut for Turn<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("given back only when dropped")
    }
}

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        let wakers = {
            let mut waiting = self.of.0.lock();
            waiting.value = self.value.take();
            std::mem::take(&mut waiting.wakers)
        };
        // Wakes all waiters: a single one may be dropped before it runs.
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Limits how many tasks do something at a time.
pub(super) struct Permits(Mutex<Left>);

struct Left {
    permits: usize,
    wakers: Vec<Waker>,
}

impl Permits {
    pub fn new(permits: usize) -> Arc<Permits> {
        Arc::new(Permits(Mutex::new(Left { permits, wakers: Vec::new() })))
    }

    /// Waits for a permit. Dropping it returns it.
    pub async fn take(&self) -> Permit<'_> {
        poll_fn(|cx| {
            let mut left = self.0.lock();
            if left.permits > 0 {
                left.permits -= 1;
                return Poll::Ready(());
            }
            left.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
        Permit(self)
    }
}

pub(super) struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let wakers = {
            let mut left = self.0.0.lock();
            left.permits += 1;
            std::mem::take(&mut left.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Context;

    #[test]
    fn a_buffer_takes_no_more_than_its_limit_and_ends_when_all_is_out() {
        let buffer = Buffer::new(2);
        let cx = &mut Context::from_waker(Waker::noop());
        for i in 0..2 {
            assert!(std::pin::pin!(buffer.reserve()).poll(cx).is_ready());
            buffer.push(i);
        }
        assert!(std::pin::pin!(buffer.reserve()).poll(cx).is_pending());
        assert_eq!(buffer.poll_pop(cx), Poll::Ready(Some(0)));
        assert!(std::pin::pin!(buffer.reserve()).poll(cx).is_ready());
        buffer.end();
        assert_eq!(buffer.poll_pop(cx), Poll::Ready(Some(1)));
        // One place is still reserved, so another item may come.
        assert!(buffer.poll_pop(cx).is_pending());
        buffer.give_up();
        assert_eq!(buffer.poll_pop(cx), Poll::Ready(None));
    }

    #[test]
    fn behind_an_error_a_buffer_takes_no_more_until_it_is_empty() {
        let buffer: Arc<Buffer<Result<i32>>> = Buffer::new(9);
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(std::pin::pin!(buffer.reserve()).poll(cx).is_ready());
        assert!(std::pin::pin!(buffer.push_element(Ok(1))).poll(cx).is_ready());
        assert!(std::pin::pin!(buffer.reserve()).poll(cx).is_ready());
        let mut failing =
            std::pin::pin!(buffer.push_element(Err(ferroflow_core::err!(Aborted, "no"))));
        assert!(failing.as_mut().poll(cx).is_pending());
        assert!(matches!(buffer.poll_pop(cx), Poll::Ready(Some(Ok(1)))));
        assert!(failing.as_mut().poll(cx).is_pending());
        assert!(matches!(buffer.poll_pop(cx), Poll::Ready(Some(Err(_)))));
        assert!(failing.as_mut().poll(cx).is_ready());
    }

    #[test]
    fn a_promise_that_is_dropped_is_not_waited_for() {
        let cx = &mut Context::from_waker(Waker::noop());
        let (promise, mut value) = later::<i32>();
        assert!(Pin::new(&mut value).poll(cx).is_pending());
        drop(promise);
        assert_eq!(Pin::new(&mut value).poll(cx), Poll::Ready(None));
        let (promise, mut value) = later();
        promise.keep(5);
        assert_eq!(Pin::new(&mut value).poll(cx), Poll::Ready(Some(5)));
    }

    #[test]
    fn one_at_a_time_has_its_turn() {
        let cx = &mut Context::from_waker(Waker::noop());
        let turns = Arc::new(Turns::new(0));
        let mut first = match std::pin::pin!(turns.take()).poll(cx) {
            Poll::Ready(turn) => turn,
            Poll::Pending => panic!("no other task holds it"),
        };
        *first += 1;
        let mut second = std::pin::pin!(turns.take());
        assert!(second.as_mut().poll(cx).is_pending());
        drop(first);
        assert!(matches!(second.as_mut().poll(cx), Poll::Ready(turn) if *turn == 1));
    }
}
