//! [`Classes`]: what Java classes look like, read from `.class` files or from text.
//!
//! A payload of Kryo has neither the names nor the types of the fields of an object. So a struct that does
//! not fit its class often reads other values without an error: two `Long` fields swap, a text begins a byte
//! too late. The class itself says what is right:
//!
//! * [`check`] compares a struct with its class, for a test.
//! * [`Kryo5::with_classes`](crate::Kryo5::with_classes) reads any payload of these classes as a
//!   [`Value`](crate::java::Value), with the names of the fields.
//! * [`Classes::to_rust`] prints the Rust types of a class.
//!
//! ```
//! use redisson_codec::classes::{Classes, check};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.Stock", rename_all = "camelCase")]
//! struct Stock {
//!     article: Option<i64>,
//!     wharehouse_id: Option<i64>,
//!     count: Option<i32>,
//! }
//!
//! let classes: Classes = "class com.acme.Stock { Long article; Long warehouseId; int count; }".parse()?;
//! let differences = check::<Stock>(&classes).unwrap_err().to_string();
//! assert_eq!(
//!     differences,
//!     "com.acme.Stock.count: `int` in Java, `Integer` here: a field that is never null has no `Option`\n\
//!      com.acme.Stock.warehouseId: missing here: `Long` in Java\n\
//!      com.acme.Stock.wharehouseId: no field of the class; is it `warehouseId`?"
//! );
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # Text
//! A description in text is the part of Java that says what is in an object. Names of `java.lang`,
//! `java.util`, `java.time` and `java.math` need no package, and what has no meaning here is skipped:
//! comments, annotations, and words such as `public`. Methods and the values of fields are left out:
//!
//! ```
//! # use redisson_codec::classes::Classes;
//! let classes: Classes = r#"
//!     abstract class com.acme.Task<T> { String id; List<T> more; transient int tries; }
//!     class com.acme.Mail extends com.acme.Task<Long> { com.acme.Way way; }
//!     record com.acme.Line(@NotNull String sku, int quantity) {}
//!     enum com.acme.Way { SMTP, PIGEON {} }   // {}: this constant has a body
//! "#.parse()?;
//! assert_eq!(classes.names().count(), 4);
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # Limits
//! Anybody may have written a class file. Reading one never panics, and takes at most 8 MiB of memory: names
//! and types of more than 64 KiB in one class are refused, and so are types that nest deeper than 32 levels,
//! and longer code than Java takes. Each error has an offset. All classes together may take 256 MiB, and
//! twice that while a list grows; those that would take more are refused.

mod check;
mod class_file;
mod code;
mod compared;
mod hierarchy;
mod memory;
mod model;
mod pool;
mod predefined;
mod primitive;
mod rust;
mod signature;
mod syntax;

pub use check::{Differences, check};
pub(crate) use hierarchy::{Hierarchy, Layout};
pub use model::Classes;
pub(crate) use model::{ClassKind, JavaType};
