//! `AsValue`: the arguments that methods accept as a value.

/// A value for a queue of `T`: a `&T`, or a `&str` if `T` is `String`.
///
/// No other type can implement this trait. Dereference a smart pointer at the call: `offer(&*order, …)`.
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
