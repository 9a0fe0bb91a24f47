//! The TLS options of a client.

use std::fmt;

use crate::conn::TlsOptions;

/// TLS options for [`ClientBuilder::tls`](crate::client::ClientBuilder::tls), for a server whose URL begins
/// with `rediss://`. Requires the feature `tls`.
///
/// Without options, a client trusts the system's root certificates, presents no client certificate, and
/// requires a server certificate with the host name of the URL.
///
/// A PEM text that cannot be used is reported by
/// [`ClientBuilder::connect`](crate::client::ClientBuilder::connect), with
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid). `Debug` does not print certificates and keys.
///
/// # Examples
/// ```no_run
/// use redelay::client::Tls;
/// use redelay::Client;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::new()
///     .root_certificate_pem(std::fs::read("/etc/redis/ca.pem")?)
///     .client_certificate_pem(std::fs::read("/etc/billing/cert.pem")?, std::fs::read("/etc/billing/key.pem")?);
/// let client = Client::builder().url("rediss://redis.internal:6380").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use = "TLS options do nothing until they are given to a builder"]
pub struct Tls(pub(super) TlsOptions);

impl Tls {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the certificates of this PEM text, in addition to the system's root certificates and to those
    /// of earlier calls: usually the certificate of a private authority (CA). The text may contain several
    /// certificates.
    ///
    /// # Examples
    /// ```
    /// # fn example() -> std::io::Result<()> {
    /// let tls = redelay::client::Tls::new().root_certificate_pem(std::fs::read("/etc/redis/ca.pem")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn root_certificate_pem(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.0.roots.push(pem.as_ref().to_vec());
        self
    }

    /// Trusts only the certificates of [`root_certificate_pem`](Self::root_certificate_pem), and none of the
    /// system's.
    ///
    /// # Examples
    /// ```
    /// # fn example() -> std::io::Result<()> {
    /// // Only a server of this company is accepted, even if a public authority signs a certificate for its name.
    /// let tls = redelay::client::Tls::new().root_certificate_pem(std::fs::read("/etc/redis/ca.pem")?).only_these_roots();
    /// # Ok(())
    /// # }
    /// ```
    pub fn only_these_roots(mut self) -> Self {
        self.0.only_these_roots = true;
        self
    }

    /// Presents this certificate to a server that requires one (`tls-auth-clients yes`, the default of
    /// Redis).
    ///
    /// `chain` is a PEM text with the client's certificate first, followed by any intermediate certificates.
    /// `key` is the private key of the first one, as PKCS#8, PKCS#1 or SEC1 in PEM, not encrypted.
    ///
    /// # Examples
    /// ```
    /// # fn example() -> std::io::Result<()> {
    /// let (chain, key) = (std::fs::read("/etc/billing/cert.pem")?, std::fs::read("/etc/billing/key.pem")?);
    /// let tls = redelay::client::Tls::new().client_certificate_pem(chain, key);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client_certificate_pem(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.0.client_certificate = Some((chain.as_ref().to_vec(), key.as_ref().to_vec()));
        self
    }

    /// Requires a server certificate for this name instead of the URL's host, and sends it as SNI: for a
    /// server that is reached by its address or through a tunnel. A DNS name or an IP address.
    ///
    /// # Examples
    /// ```no_run
    /// use redelay::client::Tls;
    /// use redelay::Client;
    ///
    /// # async fn example() -> redelay::Result<()> {
    /// let tls = Tls::new().server_name("redis.internal");
    /// let client = Client::builder().url("rediss://10.0.0.7:6380").tls(tls).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.0.server_name = Some(name.into());
        self
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
