//! TLS: which certificates are trusted and shown, and the words for what can go wrong with them.

use std::fmt;
use std::sync::Arc;

use super::ConnectError;
use super::address::{Address, Endpoint};
use super::library_error::rustls::client::WebPkiServerVerifier;
use super::library_error::rustls::crypto::{CryptoProvider, ring};
use super::library_error::rustls::pki_types::pem::PemObject;
use super::library_error::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use super::library_error::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore,
};
use super::library_error::rustls_native_certs::load_native_certs;

/// What the caller wants beyond the defaults, not yet checked. Holds a private key, so it has no derived
/// `Debug`.
#[derive(Clone, Default)]
pub(crate) struct TlsOptions {
    /// PEM texts, one or more certificates in each.
    pub(crate) roots: Vec<Vec<u8>>,
    /// Whether the system's root certificates are not trusted.
    pub(crate) only_these_roots: bool,
    /// PEM texts: the certificate chain, and its private key.
    pub(crate) client_certificate: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) server_name: Option<String>,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("root_certificates", &self.roots.len())
            .field("only_these_roots", &self.only_these_roots)
            .field("client_certificate", &self.client_certificate.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}

/// What a handshake needs.
#[derive(Clone)]
pub(super) struct Handshake {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    /// Whether the caller has given the name, and not only a URL.
    is_given: bool,
    /// Whether the system's root certificates are not trusted.
    has_only_given_roots: bool,
    /// Why some of the system's root certificates are missing.
    missing_roots: Option<String>,
}

/// What handshakes need, if connections are to be made over TLS.
pub(super) fn configure(
    endpoint: &Endpoint,
    is_tls: bool,
    options: Option<&TlsOptions>,
) -> Result<Option<Handshake>, ConnectError> {
    if !is_tls {
        return match options {
            None => Ok(None),
            Some(_) => Err(refuse("there are TLS options, but the URL is not for TLS; write rediss://…")),
        };
    }
    let Endpoint::Host(Address { host, .. }) = endpoint else { return Err(refuse("TLS needs a host")) };
    let default = TlsOptions::default();
    let options = options.unwrap_or(&default);
    let name = options.server_name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(name.to_owned()).map_err(|_| {
        refuse(&format!("the server name `{name}` for TLS is neither a DNS name nor an IP address"))
    })?;
    let (client_config, missing_roots) = options.client_config()?;
    Ok(Some(Handshake {
        config: Arc::new(client_config),
        name,
        is_given: options.server_name.is_some(),
        has_only_given_roots: options.only_these_roots,
        missing_roots,
    }))
}

fn refuse(why: &str) -> ConnectError {
    ConnectError::Option(why.to_owned())
}

impl TlsOptions {
    /// The configuration, and why some of the system's root certificates are missing.
    fn client_config(&self) -> Result<(ClientConfig, Option<String>), ConnectError> {
        // Not rustls' own choice: it panics in a program where two of them are compiled in.
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(&format!("no TLS version can be used: {error}")))?;
        let (roots, missing_roots) = self.trusted()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| refuse(&format!("the root certificates cannot be used: {error}")))?;
        let builder = builder.with_webpki_verifier(verifier);
        let Some((chain, key)) = &self.client_certificate else {
            return Ok((builder.with_no_client_auth(), missing_roots));
        };
        let chain = certificates(chain, "client_certificate_pem")?;
        let config =
            builder.with_client_auth_cert(chain, private_key(key)?).map_err(|error| {
                refuse(&match error {
                TlsError::InconsistentKeys(_) => {
                    "client_certificate_pem: the private key does not belong to the first certificate of the \
                    chain".to_owned()
                }
                error => format!("client_certificate_pem: the certificate or its key cannot be used: \
                    {error}"),
            })
            })?;
        Ok((config, missing_roots))
    }

    fn trusted(&self) -> Result<(RootCertStore, Option<String>), ConnectError> {
        let mut store = RootCertStore::empty();
        for pem in &self.roots {
            for certificate in certificates(pem, "root_certificate_pem")? {
                store.add(certificate).map_err(|error| {
                    refuse(&format!("root_certificate_pem: a certificate cannot be used: {error}"))
                })?;
            }
        }
        let mut problem = None;
        if !self.only_these_roots {
            let found = load_native_certs();
            store.add_parsable_certificates(found.certs);
            problem = found.errors.first().map(ToString::to_string);
        }
        if store.is_empty() {
            let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
            let others = match self.only_these_roots {
                true => "",
                false => "install the system's, name a file in SSL_CERT_FILE, or ",
            };
            return Err(refuse(&format!(
                "no root certificates were found{problem}, so no server could be trusted; {others}use \
                Tls::root_certificate_pem"
            )));
        }
        Ok((store, problem))
    }
}

fn certificates(pem: &[u8], option: &str) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| refuse(&format!("{option}: a certificate is not valid PEM: {error}")))?;
    if certificates.is_empty() {
        let found = if has(pem, "PRIVATE KEY-----") { "a private key" } else { "none" };
        return Err(refuse(&format!(
            "{option}: expected a certificate (-----BEGIN CERTIFICATE-----), found {found}"
        )));
    }
    Ok(certificates)
}

/// The library's own messages are not passed on: they might quote the key.
fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, ConnectError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        refuse(if has(pem, "-----BEGIN ENCRYPTED PRIVATE KEY") || has(pem, "ENCRYPTED\n") {
            "client_certificate_pem: the private key is encrypted; decrypt it first, as with `openssl pkey`"
        } else if has(pem, "PRIVATE KEY-----") {
            "client_certificate_pem: the private key is not valid PEM"
        } else {
            "client_certificate_pem: expected a private key (-----BEGIN PRIVATE KEY-----) as the second \
            argument, found none"
        })
    })
}

fn has(pem: &[u8], part: &str) -> bool {
    String::from_utf8_lossy(pem).replace("\r\n", "\n").contains(part)
}

impl Handshake {
    /// Verifies the host that the connection is led to. Where that is an IP address and the URL has a name,
    /// the name stays that of the URL: few certificates have addresses.
    pub(super) fn lead_to(&mut self, host: &str) {
        let is_address = |name: &ServerName<'_>| matches!(name, ServerName::IpAddress(_));
        let keeps = |name: &ServerName<'_>| self.is_given || is_address(name) && !is_address(&self.name);
        if let Some(name) = ServerName::try_from(host.to_owned()).ok().filter(|name| !keeps(name)) {
            self.name = name;
        }
    }

    /// What went wrong in a handshake, and what to do about it.
    pub(super) fn explain(&self, error: &TlsError) -> String {
        let is_unknown = matches!(error, TlsError::InvalidCertificate(CertificateError::UnknownIssuer));
        let others = match is_unknown && !self.has_only_given_roots {
            true => ", or name its file in SSL_CERT_FILE",
            false => "",
        };
        let explained = format!("{}{others}", explain(error));
        match self.missing_roots.as_ref().filter(|_| is_unknown) {
            None => explained,
            Some(why) => {
                format!("{explained}. Not all of the system's root certificates were found: {why}")
            }
        }
    }
}

fn explain(error: &TlsError) -> String {
    use CertificateError as Of;
    let (what, then) = match error {
        TlsError::InvalidCertificate(Of::UnknownIssuer) => (
            "the server's certificate is signed by an authority that is not trusted here".to_owned(),
            "add the authority's certificate with ClientBuilder::tls (Tls::root_certificate_pem)",
        ),
        TlsError::InvalidCertificate(Of::Expired | Of::ExpiredContext { .. }) => (
            "the server's certificate has expired".to_owned(),
            "renew it, and check the clock of this machine",
        ),
        TlsError::InvalidCertificate(Of::NotValidYet | Of::NotValidYetContext { .. }) => {
            ("the server's certificate is not valid yet".to_owned(), "check the clock of this machine")
        }
        TlsError::InvalidCertificate(error @ (Of::NotValidForName | Of::NotValidForNameContext { .. })) => (
            format!("the server's {error}"),
            "use a name of the certificate in the URL, or set it with ClientBuilder::tls (Tls::server_name)",
        ),
        TlsError::InvalidCertificate(error) => {
            (format!("the server's certificate was rejected: {error}"), "replace it")
        }
        TlsError::AlertReceived(AlertDescription::CertificateRequired) => (
            "the server requires a client certificate".to_owned(),
            "set one with ClientBuilder::tls (Tls::client_certificate_pem)",
        ),
        TlsError::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => (
            format!("the server rejected the client certificate ({error})"),
            "check the one of ClientBuilder::tls (Tls::client_certificate_pem), and the authorities that the \
            server trusts",
        ),
        TlsError::InvalidMessage(_) => (
            "the server does not speak TLS on this port".to_owned(),
            "use its TLS port, or redis:// for a connection without TLS",
        ),
        error => (
            format!("the TLS handshake failed ({error})"),
            "check the TLS settings of the server and of ClientBuilder::tls",
        ),
    };
    format!("{what}; {then}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_that_cannot_be_used_is_refused_with_the_reason() {
        const KEY: &str = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
        let root = |pem: &str| TlsOptions {
            roots: vec![pem.into()],
            only_these_roots: true,
            ..TlsOptions::default()
        };
        let rows = [
            (root(""), "root_certificate_pem: expected a certificate"),
            (root("/etc/ssl/ca.pem"), "found none"),
            (root(KEY), "found a private key"),
            (root("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"), "not valid PEM"),
            (root("-----BEGIN CERTIFICATE-----\nAAAA\n"), "not valid PEM"),
            (root("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "cannot be used"),
            (
                TlsOptions { only_these_roots: true, ..TlsOptions::default() },
                "no root certificates were found, so no server could be trusted; use Tls::root_certificate_pem",
            ),
        ];
        for (options, part) in rows {
            let error = options.client_config().expect_err(part).to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
            assert!(!format!("{options:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_private_key_is_never_quoted() {
        let rows = [
            ("-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n", "not valid PEM"),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nhunter2=\n-----END ENCRYPTED PRIVATE KEY-----\n",
                "encrypted",
            ),
            ("hunter2", "expected a private key"),
        ];
        for (pem, part) in rows {
            let error = private_key(pem.as_bytes()).expect_err(part).to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn options_that_do_not_fit_the_address_are_refused() {
        let configure = |is_tls, options: &TlsOptions| {
            let endpoint = Endpoint::Host(Address::new("host", 6379));
            configure(&endpoint, is_tls, Some(options)).map(drop).unwrap_err().to_string()
        };
        let options = TlsOptions::default();
        assert!(configure(false, &options).contains("rediss://"));
        let options = TlsOptions { server_name: Some("no name".into()), ..options };
        assert!(configure(true, &options).contains("`no name`"));
    }
}
