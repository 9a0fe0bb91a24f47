//! How a client reaches its server, the errors when it cannot, and connections that are given up.

mod bad_settings;
mod clusters;
mod connection_errors;
mod credentials;
mod links;
mod missing_commands;
mod permissions;
mod receiver_permissions;
mod refusals;
mod server_settings;
mod silent_links;
mod timeouts;
#[cfg(feature = "tls")]
mod tls;
mod transports;
