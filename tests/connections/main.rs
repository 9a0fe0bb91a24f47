//! How a client reaches its server, what it says when it cannot, and what becomes of connections that are given up.

mod bad_settings;
mod connection_errors;
mod credentials;
mod links;
mod permissions;
#[cfg(feature = "tls")]
mod tls;
mod transports;
