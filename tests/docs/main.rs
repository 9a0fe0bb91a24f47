//! What the documentation promises.

mod architecture;
mod blocking;
mod circles;
mod compiler;
mod crate_page;
mod deployment;
mod design;
mod figures;
mod from_redisson;
mod java_classes;
#[cfg(feature = "tracing")]
mod observability;
mod operators;
mod patterns;
mod size;
mod testing;
mod tour;
mod troubleshooting;
mod words;
