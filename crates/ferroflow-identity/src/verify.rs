//! TLS configurations that trust the CA of the job alone.

use ferroflow_core::{Result, err};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use std::sync::Arc;

/// The TLS configurations of a process, for both directions.
pub(crate) struct TlsConfigs {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
}

impl TlsConfigs {
    /// Peers must have certificates of these CAs. `chain` and `key` are those of this process.
    pub fn new(
        authorities: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<TlsConfigs> {
        let unusable = |e: rustls::Error| err!(InvalidArgument, "unusable certificate: {e}");
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(unusable)?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(|e| err!(InvalidArgument, "unusable CA certificate: {e}"))?;
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(unusable)?;
        // Other gRPC clients require this protocol.
        server.alpn_protocols = vec![b"h2".to_vec()];
        // No session tickets: every connection proves its identity again.
        server.send_tls13_tickets = 0;
        let algorithms = provider.signature_verification_algorithms;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OfThisJob { roots, algorithms }))
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        client.resumption = Resumption::disabled();
        Ok(TlsConfigs { client: Arc::new(client), server: Arc::new(server) })
    }
}

/// The provider `ring`, with the fastest cipher on current processors first.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_first = |suite: &rustls::SupportedCipherSuite| {
        suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256
    };
    provider.cipher_suites.sort_by_key(is_first);
    provider
}

/// Verifies that the CA of the job has signed the server's certificate. The name in it is compared
/// after the handshake, because a task has several names.
#[derive(Debug)]
struct OfThisJob {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for OfThisJob {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(
            &leaf,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not supported".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, leaf, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
