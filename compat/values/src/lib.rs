//! Java values that both peers and the tests of the codecs use.
#![allow(missing_docs, reason = "the fields are those of the Java classes")]

pub mod annotated;
pub mod class_trees;
pub mod clock;
mod java_values;
pub mod shapes;
pub mod shop;
pub mod tasks;
pub mod vectors;
pub mod zoo;

pub use java_values::JavaValues;
