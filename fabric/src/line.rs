//! The line of commands to the driver's thread: bounded, never waited for, and seen at once.
//!
//! Whoever sends must not wait, since the driver's callback may be waiting for them. So a full line is not waited for: its
//! bound is above everything that the windows of the links allow, and passing it is a fault of the program that stops the
//! driver and says so.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use link::PeerStatus;
use link::command::Command;
use sealing::NodeId;

use crate::clock::Waker;
use crate::error::FabricError;

/// Commands in line at most: a node's whole outbox (2^20 records), its peers (2^16), and as much again for what is said of
/// peers' streams, each of which waits for a batch.
pub const COMMANDS_MAX: usize = 1 << 21;

/// What stands in line.
pub(crate) enum Order {
    Link(Command),
    Status(NodeId, SyncSender<Option<PeerStatus>>),
}

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    /// Nobody takes orders any more.
    closed: bool,
    /// Take what is in line, then end.
    stop: bool,
    overrun: bool,
}

struct Shared {
    state: Mutex<State>,
    waker: Waker,
}

/// The near end: what the driver's thread takes from.
pub(crate) struct Line(Arc<Shared>);

/// Sends commands to a driver, from any thread.
#[derive(Clone)]
pub struct CommandSender(Arc<Shared>);

pub(crate) fn line() -> Result<(CommandSender, Line), FabricError> {
    let shared = Arc::new(Shared { state: Mutex::default(), waker: Waker::new()? });
    Ok((CommandSender(Arc::clone(&shared)), Line(shared)))
}

impl CommandSender {
    /// Puts a command in line and wakes the driver; never waits. After the driver stopped, which
    /// [`crate::FabricEvent::Stopped`] tells, it does nothing.
    pub fn send(&self, command: Command) {
        self.put(Order::Link(command));
    }

    /// What people may know of the link to a peer; none if there is no such peer or the driver has stopped. Waits for the
    /// driver: not for whoever the driver's callback may wait for.
    pub fn status(&self, node: NodeId) -> Option<PeerStatus> {
        let (reply, answer) = sync_channel(1);
        self.put(Order::Status(node, reply));
        answer.recv().ok().flatten()
    }

    /// The driver takes what is in line, then ends.
    pub(crate) fn stop(&self) {
        self.0.lock().stop = true;
        self.0.waker.wake();
    }

    fn put(&self, order: Order) {
        let mut state = self.0.lock();
        if state.closed {
            return;
        }
        if state.orders.len() == COMMANDS_MAX {
            state.overrun = true;
            return;
        }
        state.orders.push_back(order);
        let was_empty = state.orders.len() == 1;
        drop(state);
        // Otherwise a wake is under way already.
        if was_empty {
            self.0.waker.wake();
        }
    }
}

impl fmt::Debug for CommandSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CommandSender")
    }
}

impl Line {
    /// All that is in line, and whether to end after it.
    pub(crate) fn take(&self) -> Result<(VecDeque<Order>, bool), FabricError> {
        let mut state = self.0.lock();
        if state.overrun {
            return Err(FabricError::Overrun);
        }
        Ok((std::mem::take(&mut state.orders), state.stop))
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.0.waker
    }
}

impl Drop for Line {
    /// What is left in line goes, and with it the ends at which somebody waits for a status.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.orders.clear();
    }
}

impl Shared {
    /// No order is half done under the lock, so a poisoned one is as good.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(app: &str) -> Command {
        Command::Ready { app: app.to_owned() }
    }

    #[test]
    fn commands_come_in_order_and_a_stop_after_them() {
        let (sender, line) = line().unwrap();
        sender.send(ready("a"));
        sender.clone().send(ready("b"));
        sender.stop();
        let (orders, stop) = line.take().unwrap();
        let apps: Vec<_> = orders
            .into_iter()
            .map(|order| match order {
                Order::Link(Command::Ready { app }) => app,
                _ => panic!("only `ready` was sent"),
            })
            .collect();
        assert_eq!((apps, stop), (vec!["a".to_owned(), "b".to_owned()], true));
    }

    #[test]
    fn more_than_the_bound_is_said_and_not_lost_silently() {
        let (sender, line) = line().unwrap();
        for _ in 0..COMMANDS_MAX {
            sender.send(ready(""));
        }
        assert_eq!(sender.0.lock().orders.len(), COMMANDS_MAX);
        sender.send(ready("one too many"));
        assert!(matches!(line.take(), Err(FabricError::Overrun)));
    }

    #[test]
    fn nobody_waits_for_a_line_that_is_closed() {
        let (sender, line) = line().unwrap();
        drop(line);
        sender.send(ready("a"));
        assert_eq!(sender.status(NodeId::from_bytes([1; 32])), None);
    }
}
