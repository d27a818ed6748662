//! Parsers of bytes from clients and other tasks, for the fuzz targets. A parser may return an
//! error. It must not panic or hang, and its memory must be proportional to the input.

use crate::link;
use crate::messages::*;
use crate::rpc::{
    BoxFuture, BoxIo, Caller, Chunks, IncomingConnections, RpcRequest, RpcServer, RpcService,
    RpcStatus,
};
use crate::wire::Decode;
use bytes::Bytes;
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::{
    RecvTensorResponse, RunCallableRequest, RunGraphRequest, RunStepRequest,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The timeout of a connection, after its last byte.
const HANG: Duration = Duration::from_secs(10);

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        tokio::time::timeout(HANG, work).await.expect("the connection hangs");
    });
}

/// A connection of a link: the greeting, then frames.
pub fn link_frames(data: &[u8]) {
    block_on(link::fuzz(data));
}

/// An HTTP/2 connection behind its preface.
pub fn http2(data: &[u8]) {
    struct One(Option<BoxIo>);
    impl IncomingConnections for One {
        async fn accept(&mut self) -> io::Result<(BoxIo, Caller)> {
            match self.0.take() {
                Some(io) => Ok((io, Caller::unverified("fuzz".into()))),
                None => std::future::pending().await,
            }
        }
    }
    struct Echo;
    impl RpcService for Echo {
        fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
            Box::pin(async move { Ok(request.body) })
        }
    }
    let data = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", data].concat();
    block_on(async move {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (mut read, mut write) = tokio::io::split(near);
        let talk = async move {
            let mut answers = Vec::new();
            let writing = async {
                let _ = write.write_all(&data).await;
                let _ = write.shutdown().await;
            };
            tokio::join!(writing, async {
                let _ = read.read_to_end(&mut answers).await;
            });
        };
        let server = RpcServer { grace: Duration::from_millis(1), ..RpcServer::default() };
        server.serve(One(Some(Box::new(far))), Arc::new(Echo), talk).await;
    });
}

/// The messages of the services; the first byte chooses one.
pub fn messages(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(data);
    let chunks = || Chunks::from(body.clone());
    // In two pieces, so that values lie across their border.
    let pieces = || {
        let middle = body.len() / 2;
        MessageReader::new(vec![body.slice(..middle), body.slice(middle..)])
    };
    macro_rules! decode {
        ($($number:literal: $message:ty,)*) => {
            match kind % 32 {
                $($number => drop(<$message>::decode(chunks())),)*
                24 => drop(RunStepRequest::decode(pieces())),
                25 => drop(RunGraphRequest::decode(pieces())),
                26 => drop(RunCallableRequest::decode(pieces())),
                _ => drop(RecvTensorResponse::decode(pieces())),
            }
        };
    }
    decode! {
        0: GetStatusResponse,
        1: CreateWorkerSessionRequest,
        2: DeleteWorkerSessionRequest,
        3: RegisterGraphRequest,
        4: RegisterGraphResponse,
        5: DeregisterGraphRequest,
        6: CleanupGraphRequest,
        7: CleanupAllRequest,
        8: RecvTensorRequest,
        9: CreateSessionRequest,
        10: CreateSessionResponse,
        11: ExtendSessionRequest,
        12: ExtendSessionResponse,
        13: PartialRunSetupRequest,
        14: MakeCallableRequest,
        15: ReleaseCallableRequest,
        16: CloseSessionRequest,
        17: ResetRequest,
        18: ListDevicesRequest,
        19: RecvBufRequest,
        20: CompleteGroupRequest,
        21: CompleteGroupResponse,
        22: CompleteInstanceRequest,
        23: GetStepSequenceResponse,
    }
}

/// Valid inputs of [`link_frames`].
pub fn sample_links() -> Vec<Vec<u8>> {
    link::samples()
}

/// Valid inputs of [`http2`]: settings, and the headers and data of a call.
pub fn sample_connections() -> Vec<Vec<u8>> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    };
    let literal = |name: &str, value: &str| {
        let mut field = vec![0, name.len() as u8];
        field.extend_from_slice(name.as_bytes());
        field.push(value.len() as u8);
        field.extend_from_slice(value.as_bytes());
        field
    };
    let headers = [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":path", "/t/Echo"),
        literal("content-type", "application/grpc"),
    ];
    let settings = frame(4, 0, 0, &[]);
    let call = [
        settings.clone(),
        frame(1, 4, 1, &headers.concat()),
        frame(0, 1, 1, &[0, 0, 0, 0, 3, 1, 2, 3]),
    ];
    vec![settings, call.concat()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn links_do_not_panic() {
        fuzz_bytes(link_frames, &sample_links());
    }

    #[test]
    fn connections_do_not_panic() {
        fuzz_bytes(http2, &sample_connections());
    }

    #[test]
    fn messages_do_not_panic() {
        fuzz_bytes(messages, &[]);
    }
}
