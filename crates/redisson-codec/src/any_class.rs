//! [`AnyClass`]: the codecs of Java objects without the check of class names.

/// A codec that does not check the class names in a payload. Returned by `with_any_class`.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, JsonJackson};
///
/// # #[cfg(feature = "json-jackson")]
/// # {
/// let list = br#"["com.acme.MyList",["a"]]"#;
/// let error = Codec::<Vec<String>>::decode(&JsonJackson, list).unwrap_err();
/// assert!(error.to_string().ends_with("expected the class `java.util.ArrayList`, found `com.acme.MyList` at offset 1"));
/// let texts: Vec<String> = JsonJackson.with_any_class().decode(list)?;
/// assert_eq!(texts, ["a"]);
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyClass<C>(pub(super) C);
