//! What a method that stores or compares a value accepts.

/// A value of a queue of `T`: a `&T`, or a `&str` for a queue of `String`s.
///
/// No other type implements it. A smart pointer is dereferenced by the caller: `offer(&*order, …)`.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let names = client.blocking_queue("names", codec::String);
/// names.put("Ada").await?;
/// names.put(&String::from("Grace")).await?;
/// # Ok(())
/// # }
/// ```
pub trait AsValue<T>: sealed::Sealed<T> {}

impl<T> AsValue<T> for &T {}
impl AsValue<String> for &str {}

mod sealed {
    pub trait Sealed<T> {
        #[doc(hidden)]
        fn apply<R>(self, read: impl FnOnce(&T) -> R) -> R;
    }

    impl<T> Sealed<T> for &T {
        fn apply<R>(self, read: impl FnOnce(&T) -> R) -> R {
            read(self)
        }
    }

    impl Sealed<String> for &str {
        fn apply<R>(self, read: impl FnOnce(&String) -> R) -> R {
            read(&self.to_owned())
        }
    }
}
