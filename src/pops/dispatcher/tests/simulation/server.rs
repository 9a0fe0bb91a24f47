//! The server, and the connection to it.

use super::*;

impl World {
    pub(super) fn push(&mut self, list: Name) {
        self.events += 1;
        if !self.wrong[list] {
            self.lists[list].push_back(Bytes::copy_from_slice(&self.pushed.to_be_bytes()));
            self.pushed += 1;
            self.serve_blocked();
        }
    }

    pub(super) fn pop(&mut self, list: Name) -> Option<Bytes> {
        let payload = match self.end {
            End::Head => self.lists[list].pop_front(),
            End::Tail => self.lists[list].pop_back(),
        };
        if let (Some(payload), Some(destination)) = (&payload, &mut self.destination) {
            destination.push(payload.clone());
        }
        self.look_around();
        payload
    }

    /// What a blocking pop finds; `None` when it blocks.
    pub(super) fn look(&mut self, lists: &[Name]) -> Option<PopOutcome> {
        for list in lists {
            if self.wrong[*list] {
                return Some(PopOutcome::Failed(wrong_type()));
            }
            if let Some(payload) = self.pop(*list) {
                return Some(PopOutcome::Payload(self.keys[*list].clone(), payload));
            }
        }
        None
    }

    /// A blocked pop gets a pushed payload, but does not notice a key of another type.
    pub(super) fn serve_blocked(&mut self) {
        for at in 0..self.calls.len() {
            let Action::Block { keys, .. } = &self.calls[at].action else { continue };
            if matches!(self.calls[at].stage, Stage::Blocked) {
                let mut lists = self.names(keys);
                lists.retain(|list| !self.wrong[*list]);
                if let Some(outcome) = self.look(&lists) {
                    self.calls[at].stage = Stage::PopEnded(outcome);
                }
            }
        }
    }

    pub(super) fn run(&mut self, at: usize) {
        let first_try = matches!(self.calls[at].stage, Stage::Sent);
        if !first_try && !matches!(self.calls[at].stage, Stage::Trying) {
            return;
        }
        match &self.calls[at].action {
            Action::Block { interrupt_at_once: false, .. }
                if self.calls[at].interrupted && self.step.is_multiple_of(2) =>
            {
                self.calls[at].stage = Stage::PopEnded(PopOutcome::NotSent);
            }
            Action::Block { keys, .. } => {
                let lists = self.names(keys);
                self.calls[at].stage = self.look(&lists).map_or(Stage::Blocked, Stage::PopEnded);
            }
            Action::TryPop { keys, try_pop } => {
                let (list, count) = (self.name(keys), try_pop.count);
                let count = if self.destination.is_some() { 1 } else { count };
                let result = match self.wrong[list] {
                    true => Err(wrong_type()),
                    false => Ok((0..count).map_while(|_| self.pop(list)).collect()),
                };
                self.calls[at].stage = Stage::TryPopped(result);
            }
            Action::TryPopAny { lists, try_pop } => {
                let (lists, count) = (self.names(lists), try_pop.count);
                let mut popped = vec![Vec::new(); lists.len()];
                let mut left = count;
                // If one is refused, the reply has what came before it.
                let refused = lists.iter().zip(&mut popped).any(|(list, popped)| {
                    if left > 0 && self.wrong[*list] {
                        return true;
                    }
                    popped.extend((0..left).map_while(|_| self.pop(*list)));
                    left -= popped.len();
                    false
                });
                self.calls[at].stage = Stage::AnyPopped((left < count || !refused).then_some(popped));
            }
            Action::Examine { keys, .. } => {
                let mut lists = self.names(keys);
                lists.retain(|list| self.wrong[*list]);
                self.calls[at].stage = Stage::Examined(lists);
            }
            Action::ReturnToList { keys, .. } => {
                let (keys, list) = (keys.clone(), self.name(keys));
                if self.wrong[list] {
                    // The first attempt has failed; nothing waits for the others.
                    self.calls[at].stage = Stage::Trying;
                } else {
                    let Action::ReturnToList { payloads, .. } = self.calls.remove(at).action else {
                        unreachable!()
                    };
                    for payload in payloads.into_iter().rev() {
                        match self.end {
                            End::Head => self.lists[list].push_front(payload),
                            End::Tail => self.lists[list].push_back(payload),
                        }
                    }
                    self.serve_blocked();
                }
                if first_try {
                    self.dispatcher.on_returned(&keys);
                    self.act();
                }
            }
            Action::Interrupt(_) => unreachable!(),
        }
    }

    /// Ends a blocked pop, because it is interrupted or its slice is over.
    pub(super) fn unblock(&mut self, long: bool) {
        for call in &mut self.calls {
            let Action::Block { .. } = call.action else { continue };
            if matches!(call.stage, Stage::Blocked) && (long || call.interrupted) {
                self.events += usize::from(long);
                call.stage = Stage::PopEnded(PopOutcome::Empty);
            }
        }
    }

    /// The connection breaks. The server may still run a command that it has received.
    pub(super) fn break_off(&mut self, at: usize, how: Break) {
        if let Action::ReturnToList { keys, .. } = &self.calls[at].action {
            let keys = keys.clone();
            if matches!(how, Break::AfterItWasRun) {
                // A receipt on the server shows the next attempt that it was done.
                self.run(at);
            } else if matches!(self.calls[at].stage, Stage::Sent) {
                self.calls[at].stage = Stage::Trying;
                self.dispatcher.on_returned(&keys);
                self.act();
            }
            return;
        }
        self.events += 1;
        self.broken += 1;
        let sent = matches!(self.calls[at].stage, Stage::Sent);
        if sent && matches!(how, Break::AfterItWasRun) {
            self.run(at);
        }
        let error = match how {
            Break::BeforeItWasSent if sent => OpError::NotExecuted("no connection".into()),
            _ => OpError::Unknown("the connection broke".into()),
        };
        let call = &mut self.calls[at];
        let stage = match call.action {
            Action::Block { .. } => Stage::PopEnded(PopOutcome::Failed(error)),
            Action::TryPop { .. } => Stage::TryPopped(Err(error)),
            Action::TryPopAny { .. } => Stage::AnyPopped(None),
            _ => Stage::Examined(Vec::new()),
        };
        let lost = match std::mem::replace(&mut call.stage, stage) {
            Stage::PopEnded(PopOutcome::Payload(_, payload)) => vec![payload],
            Stage::TryPopped(Ok(payloads)) => payloads,
            Stage::AnyPopped(Some(payloads)) => payloads.concat(),
            _ => Vec::new(),
        };
        if self.destination.is_none() {
            self.lost.extend(lost);
        }
    }
}
