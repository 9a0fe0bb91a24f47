//! [`AnyClass`]: the codecs of Java objects without their check of class names.

/// A codec that reads a payload whatever the classes in it are called: what `with_any_class` returns.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// # #[cfg(feature = "json-jackson")]
/// # {
/// let list = br#"["com.acme.MyList",["a"]]"#;
/// let error = Codec::<Vec<String>>::decode(&codec::JsonJackson, list).unwrap_err();
/// assert!(error.to_string().ends_with("expected the class `java.util.ArrayList`, found `com.acme.MyList` at offset 1"));
/// let texts: Vec<String> = codec::JsonJackson.with_any_class().decode(list)?;
/// assert_eq!(texts, ["a"]);
/// # }
/// # Ok::<(), codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass<C>(pub(super) C);
