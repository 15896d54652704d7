//! Certificates as TLS wants them.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};

/// A configuration of a PEM chain, its PEM key and, where clients must show certificates, the PEM
/// authorities that sign them. Answers what is wrong in words.
pub fn configured(
    chain: &[u8],
    key: &[u8],
    authorities: Option<&[u8]>,
) -> Result<Arc<ServerConfig>, String> {
    let said = |what: &'static str| move |error: &dyn std::fmt::Display| format!("{what}: {error}");
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| said("TLS")(&error))?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let trusted = certificates(pem).map_err(|error| said("client authority")(&error))?;
            let mut roots = RootCertStore::empty();
            for authority in &trusted {
                roots
                    .add(authority.clone())
                    .map_err(|error| said("client authority")(&error))?;
            }
            let signed = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| said("client authority")(&error))?;
            builder.with_client_cert_verifier(Arc::new(SignedOrNamed { signed, trusted }))
        }
    };
    let chain = certificates(chain).map_err(|error| said("certificate")(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| said("key")(&error))?;
    let mut configuration = builder
        .with_single_cert(chain, key)
        .map_err(|error| said("certificate and key")(&error))?;
    configuration.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(configuration))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls_pki_types::pem::Error> {
    CertificateDer::pem_slice_iter(pem).collect()
}

/// Takes certificates that an authority has signed, and those that are named as an authority
/// themselves: webpki knows no client that is one, OpenSSL does.
#[derive(Debug)]
struct SignedOrNamed {
    signed: Arc<dyn ClientCertVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for SignedOrNamed {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.signed.verify_client_cert(shown, between, now) {
            // Its time has been looked at by then.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.0.downcast_ref::<webpki::Error>()
                    == Some(&webpki::Error::CaUsedAsEndEntity)
                    && self.trusted.iter().any(|named| named == shown) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            answer => answer,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
