//! Certificates.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

/// Where certificate and private key are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate and those it is signed with, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Reads them and sees whether they fit.
    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, String> {
        let shown = |path: &PathBuf, error: String| format!("tls: {}: {error}", path.display());
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| shown(&self.certificate, error.to_string()))?;
        if certificates.is_empty() {
            return Err(shown(&self.certificate, "it holds no certificate in PEM".to_owned()));
        }
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| shown(&self.key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| shown(&self.certificate, error.to_string()))?;
        let mut config = config;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
