//! The server: binds both ports, loads the models, and serves until it is stopped.

use crate::config::ModelSource;
use crate::grpc::GrpcService;
use crate::http::{self, HttpRules};
use crate::models::{Models, ModelsOptions};
use crate::rest::RestService;
use ferroflow_cluster::rpc::{RpcServer, RpcService};
use ferroflow_cluster::{TrustedListener, descriptors};
use ferroflow_core::{Limits, Result, limits};
use ferroflow_identity::Trust;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// The addresses and models of a server.
#[derive(Clone)]
pub struct ModelServerOptions {
    /// The address for gRPC.
    pub grpc: SocketAddr,
    /// The address for REST, the metrics and the page.
    pub rest: Option<SocketAddr>,
    /// The models.
    pub models: Vec<ModelSource>,
    /// How to load them.
    pub loading: ModelsOptions,
    /// The peers to admit, and the credentials of the server.
    pub trust: Trust,
}

/// A server that is bound.
pub struct ModelServer {
    grpc: TrustedListener,
    rest: Option<TrustedListener>,
    models: Arc<Models>,
    checks_host: bool,
}

impl ModelServer {
    /// Binds the addresses and loads the models. Fails if a model cannot be loaded.
    pub async fn bind(options: ModelServerOptions) -> Result<ModelServer> {
        let ModelServerOptions { grpc, rest, models: sources, loading, trust } = options;
        let grpc = TrustedListener::bind(grpc, &trust).await?;
        let rest = match rest {
            Some(address) => Some(TrustedListener::bind(address, &trust).await?),
            None => None,
        };
        let checks_host = trust.credentials.is_none() && !trust.is_insecure;
        let models = Models::new(loading);
        models.set(sources).await?;
        Ok(ModelServer { grpc, rest, models, checks_host })
    }

    /// The address for gRPC clients.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc.address()
    }

    /// The address for HTTP clients.
    pub fn rest_address(&self) -> Option<SocketAddr> {
        self.rest.as_ref().map(TrustedListener::address)
    }

    /// The models.
    pub fn models(&self) -> &Arc<Models> {
        &self.models
    }

    /// Serves until `shutdown` completes. Then it accepts no more connections and lets running
    /// requests end.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let ModelServer { grpc, rest, models, checks_host } = self;
        let (stop, stopped) = watch::channel(false);
        let stopping = || {
            let mut stopped = stopped.clone();
            async move { drop(stopped.wait_for(|stopped| *stopped).await) }
        };
        let service: Arc<dyn RpcService> = Arc::new(GrpcService { models: models.clone() });
        let limits = of_port(limits(), descriptors());
        let calls = RpcServer { limits, ..RpcServer::default() }.serve(grpc, service, stopping());
        let pages = async {
            if let Some(rest) = rest {
                let service = Arc::new(RestService { models: models.clone() });
                let rules = HttpRules::new(limits, checks_host);
                http::serve(rest, service, rules, stopping()).await;
            }
        };
        let serving = async { tokio::join!(calls, pages) };
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            _ = &mut serving => return,
            () = models.watch() => {}
            () = shutdown => {}
        }
        stop.send_replace(true);
        serving.await;
    }
}

/// The limits of one of the two ports, in a process that may have so many descriptors. Files and
/// handshakes need descriptors too.
fn of_port(mut limits: Limits, descriptors: usize) -> Limits {
    limits.connections.most = limits.connections.most.min(descriptors / 4).max(1);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_others() {
        let most = |descriptors| of_port(Limits::DEFAULT, descriptors).connections.most;
        assert_eq!([2, 256, 1024, 1 << 20].map(most), [1, 64, 256, 4096]);
    }
}
