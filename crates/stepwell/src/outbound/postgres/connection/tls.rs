//! Encryption of connections, with the meaning that `sslmode` has everywhere else.
//!
//! `prefer` and `require` encrypt without asking who answers; given authorities, `require` asks
//! for a certificate of theirs, as `verify-ca` does; `verify-full` also asks for the host's name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a URL says about encryption beyond what the driver understands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsParameters {
    pub(crate) mode: Option<String>,
    pub(crate) roots: Option<PathBuf>,
}

/// Takes `sslmode` and `sslrootcert` out of a URL or a list of `key=value`.
pub(crate) fn take_parameters(url: &str) -> (String, TlsParameters) {
    let mut found = TlsParameters::default();
    let mut is_other = |pair: &str| match pair.split_once('=') {
        Some(("sslmode", value)) => {
            found.mode = Some(unquote(value));
            false
        }
        Some(("sslrootcert", value)) => {
            found.roots = Some(PathBuf::from(unquote(value)));
            false
        }
        _ => true,
    };
    let rest = match url.split_once('?') {
        Some((address, query)) if url.contains("://") => {
            let kept: Vec<&str> = query.split('&').filter(|pair| is_other(pair)).collect();
            if kept.is_empty() { address.to_owned() } else { [address, &kept.join("&")].join("?") }
        }
        _ if url.contains("://") => url.to_owned(),
        _ => url.split(' ').filter(|pair| is_other(pair)).collect::<Vec<_>>().join(" "),
    };
    (rest, found)
}

fn unquote(value: &str) -> String {
    let bare = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    percent_decode_str(bare.unwrap_or(value)).decode_utf8_lossy().into_owned()
}

/// How much of a server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// Makes encrypted connections that check as much as told.
///
/// # Errors
/// When there are no authorities to check against.
pub(crate) fn make_connect(
    check: Check,
    roots: Option<&Path>,
) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authority = match check {
        Check::Nothing => None,
        Check::Authority | Check::AuthorityAndName => {
            let store = Arc::new(root_store(roots)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(store, Arc::clone(&provider));
            Some(verifier.build().map_err(|error| format!("sslrootcert: {error}"))?)
        }
    };
    let verifier = Verifier { authority, provider: Arc::clone(&provider), check };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn root_store(roots: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(path) if path != Path::new("system") => {
            let shown = path.display();
            let bad = |error| format!("sslrootcert {shown}: {error}; give a PEM file");
            for certificate in CertificateDer::pem_file_iter(path).map_err(bad)? {
                let certificate = certificate.map_err(bad)?;
                store.add(certificate).map_err(|error| format!("sslrootcert {shown}: {error}"))?;
            }
        }
        _ => {
            let native = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(native.certs);
        }
    }
    if store.is_empty() {
        return Err("sslrootcert: no authority is known to check the server's certificate \
                    against; name a PEM file"
            .into());
    }
    Ok(store)
}

/// Checks the handshake always, and the certificate as far as told.
#[derive(Debug)]
struct Verifier {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    check: Check,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        let verdict = authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verdict {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Authority => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_about_encryption_are_taken_out_of_a_url() {
        let url = "postgres://u@h/d?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fca.pem";
        let (rest, found) = take_parameters(url);
        assert_eq!(rest, "postgres://u@h/d?connect_timeout=3");
        assert_eq!(found.mode.as_deref(), Some("verify-full"));
        assert_eq!(found.roots.as_deref(), Some(Path::new("/ca.pem")));
    }

    #[test]
    fn parameters_about_encryption_are_taken_out_of_a_list() {
        let (rest, found) = take_parameters("host=h sslmode=require user=u sslrootcert='ca.pem'");
        assert_eq!(rest, "host=h user=u");
        assert_eq!(found.mode.as_deref(), Some("require"));
        assert_eq!(found.roots.as_deref(), Some(Path::new("ca.pem")));
    }

    #[test]
    fn what_says_nothing_about_encryption_stays_as_it_is() {
        for url in ["postgres://u:p%40@h/d", "postgres://u@h/d?application_name=a", "host=h"] {
            assert_eq!(take_parameters(url), (url.to_owned(), TlsParameters::default()));
        }
    }
}
