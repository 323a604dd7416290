//! TLS: certificates are used, and replaced while the server runs.

#![allow(clippy::unwrap_used)]

mod served;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use satf_server::{Server, TlsFiles};
use served::Served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

/// What a client gets that trusts this certificate and no other.
async fn ask(address: SocketAddr, trusted: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(trusted)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    Ok(answer)
}

#[test]
fn certificates_are_used_and_replaced() {
    let served = Served::new(|config, folder| {
        for (from, to) in [("localhost.pem", "cert.pem"), ("localhost.key", "key.pem")] {
            fs::copy(file(from), folder.join(to)).unwrap();
        }
        config.tls = Some(TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") });
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.watch_seconds = 0.05;
    });
    let server = Server::bind(Arc::clone(&served.state)).unwrap();
    let address = server.address();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        server.run(async move {
            let _ = stopped.await;
        })
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = ask(address, "localhost.pem").await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"ready\""), "{answer}");
        assert!(ask(address, "other.pem").await.is_err(), "a client that trusts another certificate");
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "plain HTTP is not answered");
        // A certificate without its key is refused; with it, new connections get it.
        fs::copy(file("other.pem"), served.folder.path().join("cert.pem")).unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(ask(address, "localhost.pem").await.is_ok(), "the old one goes on");
        fs::copy(file("other.key"), served.folder.path().join("key.pem")).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while ask(address, "other.pem").await.is_err() {
            assert!(Instant::now() < end, "the new certificate is not used");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    stop.send(()).unwrap();
    running.join().unwrap().unwrap();
}
