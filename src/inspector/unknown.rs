//! What a server does not answer.

use serde::Serialize;

use crate::conn::OpError;

/// A question that the server has not answered, and why.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for queue in inspector.overview(&["orders"]).await? {
///     for unknown in &queue.unknown {
///         println!("{} is not known: {}", unknown.what, unknown.why);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Unknown {
    /// The field that is not known; `server` if a server of a cluster does not answer, and nothing is known.
    pub what: String,
    /// The server's words, or why it does not answer.
    pub why: String,
    /// The permission that the user lacks, as `ACL SETUSER` has it (`+zcard`), if that is the reason.
    pub permission: Option<String>,
}

impl Unknown {
    /// Of a server that does not answer.
    pub(super) fn server(error: &OpError) -> Self {
        Self { what: "server".into(), why: error.to_string(), permission: None }
    }
}

/// The answers of servers, or about queues on several servers. Where there is none, `unanswered` says what
/// stands for it.
///
/// # Errors
/// The first one, if there is no answer at all.
pub(super) fn answered<T>(
    answers: Vec<Result<T, OpError>>,
    unanswered: impl Fn(usize, Unknown) -> T,
) -> Result<Vec<T>, OpError> {
    if answers.iter().all(Result::is_err) {
        return answers.into_iter().collect();
    }
    let answers = answers.into_iter().enumerate();
    Ok(answers
        .map(|(at, answer)| answer.unwrap_or_else(|error| unanswered(at, Unknown::server(&error))))
        .collect())
}

/// Whether the user may not access a key or a channel. The server words a missing command differently.
pub(super) fn refuses_key(why: &str) -> bool {
    why.starts_with("NOPERM") && !why.contains(" command")
}

/// Notes what is not known, while answers are read.
#[derive(Debug, Default)]
pub(super) struct Unknowns(Vec<Unknown>);

impl Unknowns {
    /// The answer, if the server has given one. `command` is what was sent: a name, and a second word if it
    /// has one.
    ///
    /// # Errors
    /// What is no answer of the server.
    pub(super) fn known<T>(
        &mut self,
        what: &str,
        command: &str,
        answer: Result<T, OpError>,
    ) -> Result<Option<T>, OpError> {
        let why = match answer {
            Ok(known) => return Ok(Some(known)),
            Err(OpError::Server(why)) => why,
            Err(error) => return Err(error),
        };
        let lacks_command = why.starts_with("NOPERM") && !refuses_key(&why);
        let permission = lacks_command.then(|| format!("+{}", command.to_lowercase().replace(' ', "|")));
        self.0.push(Unknown { what: what.to_owned(), why, permission });
        Ok(None)
    }

    /// The keys of this server are not searched.
    pub(super) fn not_searched(&mut self, server: &str, error: OpError) {
        match error {
            OpError::Server(why) => {
                let error = Err::<(), _>(OpError::Server(format!("{why} ({server})")));
                let _ = self.known("keys", "SCAN", error);
            }
            error => self.0.push(Unknown::server(&error)),
        }
    }

    pub(super) fn to_vec(&self) -> Vec<Unknown> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_answered_hides_nothing_of_the_rest() {
        let lost = || Err(OpError::NotExecuted("no connection".to_owned().into()));
        let read =
            |answers| answered(answers, |at, unknown| format!("{at}: {}: {}", unknown.what, unknown.why));
        let some = read(vec![Ok("one".to_owned()), lost()]).unwrap();
        assert_eq!(some, ["one", "1: server: no connection"]);
        assert_eq!(read(vec![lost(), lost()]), lost().map(|_| Vec::new()));
        assert_eq!(read(Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn the_missing_permission_is_named() {
        let refused = |why: &str, command: &str| {
            let mut unknowns = Unknowns::default();
            let answer: Result<u64, _> = Err(OpError::Server(why.into()));
            assert_eq!(unknowns.known("pending", command, answer).unwrap(), None);
            unknowns.to_vec().pop().unwrap().permission
        };
        let command = "NOPERM this user has no permissions to run the 'zcard' command";
        assert_eq!(refused(command, "ZCARD").as_deref(), Some("+zcard"));
        let second = "NOPERM User bob has no permissions to run the 'pubsub|numsub' command";
        assert_eq!(refused(second, "PUBSUB NUMSUB").as_deref(), Some("+pubsub|numsub"));
        for other in [
            "NOPERM No permissions to access a key",
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            "NOPERM this user has no permissions to access one of the channels used as arguments",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ] {
            assert_eq!(refused(other, "ZCARD"), None, "{other}");
        }
        let lost = Unknowns::default().known::<u64>("pending", "ZCARD", Err(OpError::Closed));
        assert!(matches!(lost, Err(OpError::Closed)));
    }
}
