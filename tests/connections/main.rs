//! How a client reaches its server, what it says when it cannot, and what becomes of connections that are given up.

mod bad_settings;
mod connection_errors;
mod credentials;
mod links;
mod slow_links;
mod timeouts;
#[cfg(feature = "tls")]
mod tls;
mod transports;
