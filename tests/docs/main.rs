//! What the documentation promises.

#[cfg(feature = "tracing")]
mod observability;
mod troubleshooting;
