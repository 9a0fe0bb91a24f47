//! One connection attempt without the client library, for the error that the library has turned into text.
//!
//! It sends nothing but a TLS handshake: no credentials, no command.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address::Address;
use super::op_error::Cause;
use super::{ConnectError, Options};

/// Why no connection can be made, if that can be found out within this time.
pub(super) async fn probe(options: &Options, within: Duration) -> Option<ConnectError> {
    timeout(within, attempt(options)).await.ok().flatten()
}

async fn attempt(options: &Options) -> Option<ConnectError> {
    let Address { host, port: port @ 1.., .. } = options.address() else { return None };
    let failed = |error: io::Error| Some(ConnectError::failed(Cause::of_io(error)));
    let stream = match TcpStream::connect((host.trim_matches(['[', ']']), port)).await {
        Ok(stream) => stream,
        Err(error) => return failed(error),
    };
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        return match tls::handshake(tls, stream).await {
            Ok(()) => None,
            Err(tls::ProbeError::Io(error)) => failed(error),
            Err(tls::ProbeError::Tls(error)) => {
                Some(ConnectError::Tls { why: tls.explain(&error), source: std::sync::Arc::new(error) })
            }
        };
    }
    drop(stream);
    None
}

#[cfg(feature = "tls")]
mod tls {
    use std::io;
    use std::time::Duration;

    use crate::conn::library_error::rustls::{ClientConnection, Error as TlsError};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use crate::conn::tls::Handshake;

    /// How long a server may take to reject the client's certificate, after its own part of the handshake is
    /// done.
    const VERDICT: Duration = Duration::from_secs(1);

    pub(super) enum ProbeError {
        Io(io::Error),
        Tls(TlsError),
    }

    impl From<io::Error> for ProbeError {
        fn from(error: io::Error) -> Self {
            Self::Io(error)
        }
    }

    impl From<TlsError> for ProbeError {
        fn from(error: TlsError) -> Self {
            Self::Tls(error)
        }
    }

    pub(super) async fn handshake(tls: &Handshake, mut stream: TcpStream) -> Result<(), ProbeError> {
        let mut connection = ClientConnection::new(tls.config.clone(), tls.name.clone())?;
        loop {
            let mut out = Vec::new();
            while connection.wants_write() {
                connection.write_tls(&mut out)?;
            }
            stream.write_all(&out).await?;
            let mut bytes = [0; 4096];
            let read = if connection.is_handshaking() {
                stream.read(&mut bytes).await?
            } else {
                // With TLS 1.3 the server judges the client's certificate when the client is done.
                match timeout(VERDICT, stream.read(&mut bytes)).await {
                    Ok(read) => read?,
                    Err(_) => return Ok(()),
                }
            };
            if read == 0 {
                return Err(
                    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection").into()
                );
            }
            let mut bytes = &bytes[..read];
            while !bytes.is_empty() {
                connection.read_tls(&mut bytes)?;
                connection.process_new_packets()?;
            }
        }
    }
}
