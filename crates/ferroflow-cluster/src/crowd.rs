//! The connections of a port that anyone may reach. Their number is bounded: one more closes an old
//! one, so that silent peers do not keep others out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::{AbortHandle, JoinSet};

/// The connections of a port. Dropping it closes all of them.
pub struct ConnectionCrowd {
    most: usize,
    /// In order of arrival.
    members: VecDeque<Member>,
    tasks: JoinSet<()>,
}

struct Member {
    task: AbortHandle,
    request: FirstRequest,
}

/// Whether a connection has sent a request.
#[derive(Clone, Default)]
pub struct FirstRequest(Arc<AtomicBool>);

impl FirstRequest {
    /// Notes that a request has arrived.
    pub fn came(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ConnectionCrowd {
    /// Has room for `most` connections.
    pub fn new(most: usize) -> ConnectionCrowd {
        ConnectionCrowd { most, members: VecDeque::new(), tasks: JoinSet::new() }
    }

    /// Serves a connection. If there is no room, it closes the oldest one without a request, or
    /// else the oldest one.
    pub fn add<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        serve: impl FnOnce(FirstRequest) -> F,
    ) {
        while self.tasks.try_join_next().is_some() {}
        self.members.retain(|member| !member.task.is_finished());
        if self.members.len() >= self.most {
            let silent = self.members.iter().position(|member| !member.request.has_come());
            if let Some(member) = self.members.remove(silent.unwrap_or(0)) {
                member.task.abort();
            }
        }
        let request = FirstRequest::default();
        let task = self.tasks.spawn(serve(request.clone()));
        self.members.push_back(Member { task, request });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    /// A connection that goes on forever. The receiver notices when it is closed.
    fn connection(crowd: &mut ConnectionCrowd, has_request: bool) -> oneshot::Receiver<()> {
        let (held, closed) = oneshot::channel();
        crowd.add(|request| async move {
            let _held: oneshot::Sender<()> = held;
            if has_request {
                request.came();
            }
            std::future::pending().await
        });
        closed
    }

    #[tokio::test]
    async fn one_too_many_closes_the_oldest_connection_without_a_request() {
        let mut crowd = ConnectionCrowd::new(3);
        let mut busy = connection(&mut crowd, true);
        let (first, mut second) = (connection(&mut crowd, false), connection(&mut crowd, false));
        tokio::task::yield_now().await;
        let mut third = connection(&mut crowd, true);
        assert!(first.await.is_err(), "closed");
        for open in [&mut busy, &mut second, &mut third] {
            assert!(open.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        }
        let _fourth = connection(&mut crowd, true);
        assert!(second.await.is_err(), "closed");
        tokio::task::yield_now().await;
        let _fifth = connection(&mut crowd, true);
        assert!(busy.await.is_err(), "all have sent requests: the oldest one");
    }
}
