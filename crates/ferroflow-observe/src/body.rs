//! Bodies of answers: all at once, or events as they happen.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The body of an answer.
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            AnswerBody::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            AnswerBody::Events(events) => {
                events.poll_recv(cx).map(|event| event.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, AnswerBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            AnswerBody::Events(_) => SizeHint::default(),
        }
    }
}

/// Sends events to a browser.
#[derive(Clone, Debug)]
pub struct EventSender(pub(crate) mpsc::Sender<Bytes>);

impl EventSender {
    /// Sends one event. Returns false if the browser is gone. A browser that reads too slowly
    /// misses events.
    pub fn send(&self, name: &str, data: &str) -> bool {
        // JSON on one line has no line breaks, which would end the event.
        let text = format!("event: {name}\ndata: {data}\n\n");
        match self.0.try_send(Bytes::from(text)) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}
