//! What the documentation promises.

#[cfg(feature = "tracing")]
mod architecture;
mod observability;
mod troubleshooting;
