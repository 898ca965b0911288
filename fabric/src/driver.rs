//! The thread around the endpoint. Its loop decides nothing: commands, datagrams and the time go in, effects are carried
//! out in their order, and then it waits for the next of the three.

use std::collections::VecDeque;
use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use link::command::Command;
use link::{Effect, Endpoint, NotTaken, Peer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sealing::{Card, Identity, Run};

use crate::clock::{Timer, fault, now};
use crate::error::FabricError;
use crate::line::{CommandSender, Line, Order, line};
use crate::memo_file::MemoFile;
use crate::socket::{Received, Socket};

/// Datagrams taken before what they caused is carried out: 64 of 1,200 bytes at 1 Gbit/s come in 0.6 ms.
const DATAGRAMS_PER_TURN: usize = 64;

/// Turns with datagrams left over in which a timer that is due waits: as many as a receive buffer of 4 MiB holds. Whoever
/// sends without end does not hold it up longer.
const TURNS_BEFORE_TIMERS: u32 = 64;

/// Commands taken before what they caused is carried out: as many as records in a window, so that one stream's window
/// goes out in one turn.
const COMMANDS_PER_TURN: usize = 256;

/// What a driver is started with.
#[derive(Debug)]
pub struct Config {
    /// This node's keys.
    pub identity: Arc<Identity>,
    /// This node's card.
    pub card: Card,
    /// This start of this node; its counter is synced.
    pub run: Run,
    /// Fresh entropy.
    pub entropy: [u8; 32],
    /// Bytes of a record that this node sends or takes.
    pub record_bytes_max: usize,
    /// Datagrams are padded to a few lengths, and links have other ids after a move: bystanders see less, and it costs more.
    pub discreet: bool,
    /// Where datagrams come and go, from [`crate::bind`].
    pub socket: UdpSocket,
    /// The node's folder, in which the memo file is; it is there.
    pub folder: PathBuf,
}

/// What a driver tells.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the small variant comes once in a driver's life")]
pub enum FabricEvent {
    /// What the endpoint tells its owner: every effect but `SaveMemo`, `ReadMemo` and `Datagram`, in order.
    Link(Effect),
    /// The driver stopped by itself; nothing comes after this.
    Stopped(FabricError),
}

/// Where the driver tells. It is called on the driver's thread, which waits for it.
type Events = Box<dyn FnMut(FabricEvent) + Send>;

/// The driver of a node's links.
#[derive(Debug, Clone, Copy)]
pub struct Driver;

/// A running driver. Dropped, it stops it and waits until its thread has ended.
pub struct DriverHandle {
    commands: CommandSender,
    local_address: SocketAddr,
    not_sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the driver's thread. `events` is called on it, and may wait for the receiver of events, but never for
    /// anything that waits for this driver.
    ///
    /// # Errors
    /// [`FabricError`] when the socket, the memo file, a timer or a thread cannot be had.
    pub fn start(config: Config, events: Events) -> Result<DriverHandle, FabricError> {
        let memo = MemoFile::open(&config.folder)?;
        let socket = Socket::new(config.socket)?;
        let local_address = socket.local_address()?;
        let not_sent = socket.not_sent();
        let (commands, line) = line()?;
        let timer = Timer::new()?;
        let mut endpoint = Endpoint::new(link::Config {
            identity: config.identity,
            card: config.card,
            run: config.run,
            entropy: config.entropy,
            record_bytes_max: config.record_bytes_max,
        });
        endpoint.set_discreet(config.discreet);
        endpoint.set_library_keys(true);
        if socket.never_fragments() {
            endpoint.set_datagram_bytes_max(link::limits::DATAGRAM_BYTES_LARGEST);
        }
        let outside = Outside { memo, socket, events };
        let turns = Turns { endpoint, outside, line, timer, orders: VecDeque::new(), turns_of_datagrams: 0 };
        let thread = std::thread::Builder::new()
            .name("links".to_owned())
            .spawn(move || turns.run())
            .map_err(|source| FabricError::System { part: "thread", source })?;
        Ok(DriverHandle { commands, local_address, not_sent, thread: Some(thread) })
    }
}

impl DriverHandle {
    /// A sender of commands, for any thread.
    pub fn sender(&self) -> CommandSender {
        self.commands.clone()
    }

    /// The address that the socket is bound to, with its port.
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Datagrams that the system did not take so far (no route, too large, no buffer, …): lost, as far as the links can
    /// tell.
    pub fn datagrams_not_sent(&self) -> u64 {
        self.not_sent.load(Ordering::Relaxed)
    }

    /// Carries out the commands in line, then ends the thread and waits for it. Not to be called, nor the handle dropped,
    /// by what the driver's callback waits for.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for DriverHandle {
    fn drop(&mut self) {
        self.commands.stop();
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            // Its panics are caught and told as an event.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for DriverHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DriverHandle({})", self.local_address)
    }
}

/// Everything the thread holds.
struct Turns {
    endpoint: Endpoint,
    outside: Outside,
    line: Line,
    timer: Timer,
    /// Taken from the line and not carried out yet.
    orders: VecDeque<Order>,
    /// Turns in a row that ended with more datagrams there, while a timer was due.
    turns_of_datagrams: u32,
}

/// What effects are carried out on.
struct Outside {
    memo: MemoFile,
    socket: Socket,
    events: Events,
}

/// Whether the loop goes on.
enum Next {
    Wait,
    /// There is more to take than one turn takes.
    Again,
    End,
}

impl Turns {
    fn run(mut self) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.turn_until_the_end()));
        let error = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(panic) => FabricError::Panicked(panic_text(&*panic)),
        };
        let Turns { line, mut outside, .. } = self;
        // First nobody waits for an answer any more, then it is told.
        drop(line);
        (outside.events)(FabricEvent::Stopped(error));
    }

    fn turn_until_the_end(&mut self) -> Result<(), FabricError> {
        loop {
            match self.turn()? {
                Next::Wait => self.wait()?,
                Next::Again => {}
                Next::End => return Ok(()),
            }
        }
    }

    fn turn(&mut self) -> Result<Next, FabricError> {
        let mut stop = false;
        // Only then, so that what stands in line is counted there.
        if self.orders.is_empty() {
            (self.orders, stop) = self.line.take()?;
        }
        for _ in 0..COMMANDS_PER_TURN {
            let Some(order) = self.orders.pop_front() else { break };
            self.carry_out_order(order)?;
        }
        let more = self.take_datagrams()?;
        self.carry_out_effects()?;
        if self.endpoint.next_timeout().is_some_and(|at| at <= now()) {
            // What waits may be what the timer is for: a thread that was late takes no acknowledgement for lost.
            self.turns_of_datagrams = if more { self.turns_of_datagrams + 1 } else { TURNS_BEFORE_TIMERS };
            if self.turns_of_datagrams >= TURNS_BEFORE_TIMERS {
                self.turns_of_datagrams = 0;
                self.endpoint.handle_timeout(now());
                self.carry_out_effects()?;
            }
        }
        Ok(match (self.orders.is_empty(), stop) {
            (true, true) => Next::End,
            (true, false) if !more => Next::Wait,
            _ => Next::Again,
        })
    }

    fn carry_out_order(&mut self, order: Order) -> Result<(), FabricError> {
        match order {
            Order::Link(command) => self.command(command),
            Order::Status(node, reply) => {
                // Whoever asked may have gone away.
                let _ = reply.try_send(self.endpoint.peer_status(node));
                Ok(())
            }
        }
    }

    /// The endpoint carries it out; what a peer's memo place has to do with it is done here.
    fn command(&mut self, command: Command) -> Result<(), FabricError> {
        match command {
            Command::AddPeer(peer) => {
                let memo = self.outside.memo.load(peer.node)?.map(link::MemoPlace);
                self.endpoint.add_peer(now(), Peer { memo, ..*peer });
                Ok(())
            }
            Command::RemovePeer(node) => {
                self.endpoint.remove_peer(node);
                self.carry_out_effects()?;
                self.outside.memo.erase(node)
            }
            command => {
                let record = match &command {
                    Command::Send { peer, record } => Some((*peer, record.number)),
                    _ => None,
                };
                match (self.endpoint.command(now(), command), record) {
                    // The peer or the stream ended while the command was in line; who sent it is being told.
                    (Ok(()) | Err(NotTaken::NoPeer | NotTaken::NotDeclared), _) | (_, None) => Ok(()),
                    (Err(why), Some((peer, number))) => Err(FabricError::Record { peer, number, why }),
                }
            }
        }
    }

    /// Whether there may be more.
    fn take_datagrams(&mut self) -> Result<bool, FabricError> {
        for _ in 0..DATAGRAMS_PER_TURN {
            match self.outside.socket.receive()? {
                Received::Datagram(from, bytes) => self.endpoint.handle_datagram(now(), from, bytes),
                Received::Failure => {}
                Received::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }

    fn carry_out_effects(&mut self) -> Result<(), FabricError> {
        while let Some(effect) = self.endpoint.poll_effect() {
            match effect {
                Effect::ReadMemo { peer } => {
                    let place = self.outside.memo.load(peer)?.map(link::MemoPlace);
                    self.endpoint.place_read(now(), peer, place);
                }
                effect => self.outside.carry_out(effect)?,
            }
        }
        self.outside.memo.sync()
    }

    /// Until a datagram, a command or the endpoint's next time.
    fn wait(&mut self) -> Result<(), FabricError> {
        self.timer.arm(self.endpoint.next_timeout())?;
        let mut descriptors = [
            PollFd::new(&self.outside.socket, PollFlags::IN),
            PollFd::new(self.line.waker(), PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(fault("poll")(errno)),
        }
        let [woken, due] = [1, 2].map(|index| !descriptors[index].revents().is_empty());
        if woken {
            self.line.waker().clear()?;
        }
        if due {
            self.timer.clear()?;
        }
        Ok(())
    }
}

impl Outside {
    /// Carries an effect out. Places saved one after the other are synced together, before the effect that comes after
    /// them.
    fn carry_out(&mut self, effect: Effect) -> Result<(), FabricError> {
        match effect {
            Effect::SaveMemo { peer, place } => self.memo.save(peer, &place.0)?,
            Effect::Datagram { to, bytes } => {
                self.memo.sync()?;
                self.socket.send(to, &bytes);
            }
            effect => {
                self.memo.sync()?;
                (self.events)(FabricEvent::Link(effect));
            }
        }
        Ok(())
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use sealing::NodeId;
    use sealing::memo::PLACE_BYTES;

    use super::*;
    use crate::socket::bind;

    const PEER: NodeId = NodeId::from_bytes([7; 32]);

    fn outside(memo: MemoFile) -> (Outside, Receiver<FabricEvent>) {
        let (sender, events) = channel();
        let socket = Socket::new(bind(([127, 0, 0, 1], 0).into()).unwrap()).unwrap();
        (Outside { memo, socket, events: Box::new(move |event| sender.send(event).unwrap()) }, events)
    }

    fn effects(to: SocketAddr) -> Vec<Effect> {
        vec![
            Effect::SaveMemo { peer: PEER, place: link::MemoPlace([9; PLACE_BYTES]) },
            Effect::Datagram { to, bytes: b"after the memo".to_vec() },
            Effect::Stranger { node: PEER },
        ]
    }

    #[test]
    fn effects_are_carried_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outside, events) = outside(MemoFile::open(folder.path()).unwrap());
        let mut far = Socket::new(bind(([127, 0, 0, 1], 0).into()).unwrap()).unwrap();
        for effect in effects(far.local_address().unwrap()) {
            outside.carry_out(effect).unwrap();
        }
        assert_eq!(outside.memo.load(PEER).unwrap(), Some([9; PLACE_BYTES]));
        assert!(matches!(far.receive().unwrap(), Received::Datagram(_, b"after the memo")));
        assert!(matches!(events.try_recv(), Ok(FabricEvent::Link(Effect::Stranger { node: PEER }))));
    }

    #[test]
    fn nothing_leaves_after_a_memo_that_was_not_saved() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outside, events) = outside(MemoFile::open_broken(folder.path()));
        let mut far = Socket::new(bind(([127, 0, 0, 1], 0).into()).unwrap()).unwrap();
        let mut effects = effects(far.local_address().unwrap()).into_iter();
        let result = effects.try_for_each(|effect| outside.carry_out(effect));
        assert!(matches!(result, Err(FabricError::Memo { action: "write", .. })));
        assert!(matches!(far.receive().unwrap(), Received::Nothing));
        assert!(events.try_recv().is_err());
    }
}
