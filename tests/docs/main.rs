//! What the documentation promises.

mod architecture;
#[cfg(feature = "tracing")]
mod observability;
mod troubleshooting;
