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

    /// What a blocking pop finds; `None`: nothing yet.
    pub(super) fn look(&mut self, lists: &[Name]) -> Option<Parked> {
        for list in lists {
            if self.wrong[*list] {
                return Some(Parked::Failed(wrong_type()));
            }
            if let Some(payload) = self.pop(*list) {
                return Some(Parked::Payload(self.keys[*list].clone(), payload));
            }
        }
        None
    }

    /// Who is blocked gets what is pushed, but does not learn of another type.
    pub(super) fn serve_blocked(&mut self) {
        for at in 0..self.calls.len() {
            let Action::Park { keys, .. } = &self.calls[at].action else { continue };
            if matches!(self.calls[at].stage, Stage::Blocked) {
                let mut lists = self.names(keys);
                lists.retain(|list| !self.wrong[*list]);
                if let Some(outcome) = self.look(&lists) {
                    self.calls[at].stage = Stage::Parked(outcome);
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
            Action::Park { hurry: false, .. }
                if self.calls[at].interrupted && self.step.is_multiple_of(2) =>
            {
                self.calls[at].stage = Stage::Parked(Parked::NotSent);
            }
            Action::Park { keys, .. } => {
                let lists = self.names(keys);
                self.calls[at].stage = self.look(&lists).map_or(Stage::Blocked, Stage::Parked);
            }
            Action::Ask { keys, question } => {
                let (list, count) = (self.name(keys), question.count);
                let count = if self.destination.is_some() { 1 } else { count };
                let result = match self.wrong[list] {
                    true => Err(wrong_type()),
                    false => Ok((0..count).map_while(|_| self.pop(list)).collect()),
                };
                self.calls[at].stage = Stage::Asked(result);
            }
            Action::Examine { keys, .. } => {
                let mut lists = self.names(keys);
                lists.retain(|list| self.wrong[*list]);
                self.calls[at].stage = Stage::Examined(lists);
            }
            Action::GiveBack { keys, .. } => {
                let (keys, list) = (keys.clone(), self.name(keys));
                if self.wrong[list] {
                    // The first try has failed; nobody waits for the others.
                    self.calls[at].stage = Stage::Trying;
                } else {
                    let Action::GiveBack { payloads, .. } = self.calls.remove(at).action else {
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
                    self.lane.returned(&keys);
                    self.act();
                }
            }
            Action::Interrupt(_) => unreachable!(),
        }
    }

    /// Ends a blocked pop, because it is interrupted, or has been there for long.
    pub(super) fn unblock(&mut self, long: bool) {
        for call in &mut self.calls {
            let Action::Park { .. } = call.action else { continue };
            if matches!(call.stage, Stage::Blocked) && (long || call.interrupted) {
                self.events += usize::from(long);
                call.stage = Stage::Parked(Parked::Empty);
            }
        }
    }

    /// The connection breaks; a server may run later what it has received.
    pub(super) fn break_off(&mut self, at: usize, how: Break) {
        if let Action::GiveBack { keys, .. } = &self.calls[at].action {
            let keys = keys.clone();
            if matches!(how, Break::AfterItWasRun) {
                // A marker on the server tells the next try that it was done.
                self.run(at);
            } else if matches!(self.calls[at].stage, Stage::Sent) {
                self.calls[at].stage = Stage::Trying;
                self.lane.returned(&keys);
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
            Action::Park { .. } => Stage::Parked(Parked::Failed(error)),
            Action::Ask { .. } => Stage::Asked(Err(error)),
            _ => Stage::Examined(Vec::new()),
        };
        let lost = match std::mem::replace(&mut call.stage, stage) {
            Stage::Parked(Parked::Payload(_, payload)) => vec![payload],
            Stage::Asked(Ok(payloads)) => payloads,
            _ => Vec::new(),
        };
        if self.destination.is_none() {
            self.lost.extend(lost);
        }
    }
}
