//! Somebody who holds every root and knows every run: finds out under which key and nonce each datagram was sealed, and
//! that no such pair came twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use sealing::memo::{Memo, Place, Role};
use sealing::{Direction, NodeId, RUN_BYTES, Root, Run, TAG_BYTES, Toward};

const HELLO: u8 = 0x51;
const ANSWER: u8 = 0x52;
const PACKET: u8 = 0x53;
const HAIL: u8 = 0x54;

/// Bytes of an X-Wing encapsulation.
const ENCAPSULATION_BYTES: usize = 1_120;
/// Bytes of a hello piece before the piece.
const PIECE_HEADER_BYTES: usize = 11;
/// The number that no packet has: what is sealed under it tells keys apart.
const NO_NUMBER: u64 = u64::MAX;

/// What is the same for two directions only if their key and iv are.
type Fingerprint = [u8; TAG_BYTES];

struct Known {
    root: Root,
    toward: Toward,
    initiator: NodeId,
    responder: NodeId,
}

#[derive(Default)]
pub struct Witness {
    roots: HashMap<[u8; 8], Known>,
    runs: BTreeMap<NodeId, Vec<Run>>,
    /// By id and the runs of initiator and responder.
    keys: HashMap<([u8; 8], Run, Run), (Direction, Fingerprint)>,
    /// The runs of the last packet of an id: mostly those of the next one.
    last: HashMap<[u8; 8], (Run, Run)>,
    seen: HashSet<(Fingerprint, u64)>,
    /// What was sealed under keys that are used once, by what they come from.
    once: HashMap<Vec<u8>, Vec<u8>>,
    /// Packets and hails so far.
    pub seals: u64,
}

fn fingerprint(direction: &Direction) -> Fingerprint {
    direction.seal(NO_NUMBER, b"whose", b"").try_into().expect("the tag alone")
}

impl Witness {
    pub fn learn_run(&mut self, node: NodeId, run: Run) {
        self.runs.entry(node).or_default().push(run);
    }

    /// A place is saved before anything is sealed under its roots.
    pub fn learn_place(&mut self, node: NodeId, place: &Place) {
        let Ok(memo) = Memo::decode(place) else { return };
        for held in [memo.current, memo.pending].into_iter().flatten() {
            let (initiator, responder) = match held.role {
                Role::Initiator => (node, memo.peer),
                Role::Responder => (memo.peer, node),
            };
            let ids = held.root.ids();
            for (id, toward) in [(ids.to_responder, Toward::Responder), (ids.to_initiator, Toward::Initiator)]
            {
                self.roots.entry(id).or_insert_with(|| Known {
                    root: held.root.clone(),
                    toward,
                    initiator,
                    responder,
                });
            }
        }
    }

    /// A datagram leaves.
    ///
    /// # Errors
    /// Words on what was sealed twice under one key and nonce, or under a key that nobody has.
    pub fn see(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes[0] {
            PACKET => self.see_packet(bytes),
            HAIL => self.see_hail(bytes),
            HELLO if bytes[9] == 0 => {
                let (header, piece) = bytes.split_at(PIECE_HEADER_BYTES);
                self.see_once(&piece[..ENCAPSULATION_BYTES.min(piece.len())], &header[1..9])
            }
            ANSWER if bytes.len() > 9 + ENCAPSULATION_BYTES => {
                self.see_once(&bytes[1..10 + ENCAPSULATION_BYTES], bytes)
            }
            _ => Ok(()),
        }
    }

    fn see_once(&mut self, from: &[u8], sealed: &[u8]) -> Result<(), String> {
        let before = self.once.entry(from.to_vec()).or_insert_with(|| sealed.to_vec());
        if before == sealed { Ok(()) } else { Err("a hello or answer has the key of another one".into()) }
    }

    fn see_packet(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (header, ciphertext) = bytes.split_at(13);
        let (id, number) = id_and_number(header);
        let Witness { roots, runs, keys, last, .. } = self;
        let known = roots.get(&id).ok_or("a packet has an id of no root that was saved")?;
        let runs = |node: &NodeId| runs.get(node).map_or(&[][..], |runs| &runs[..]).iter().rev().copied();
        let all = runs(&known.initiator)
            .flat_map(|initiator| runs(&known.responder).map(move |responder| (initiator, responder)));
        for (initiator, responder) in last.get(&id).copied().into_iter().chain(all) {
            let (direction, whose) = keys.entry((id, initiator, responder)).or_insert_with(|| {
                let pair = known.root.pair(&initiator, &responder);
                let direction = match known.toward {
                    Toward::Responder => pair.to_responder,
                    Toward::Initiator => pair.to_initiator,
                };
                let whose = fingerprint(&direction);
                (direction, whose)
            });
            if direction.open(number, header, ciphertext).is_ok() {
                let whose = *whose;
                last.insert(id, (initiator, responder));
                return self.note(whose, number);
            }
        }
        Err("a packet was sealed under no key of two known runs".into())
    }

    fn see_hail(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (header, ciphertext) = bytes.split_at(13 + RUN_BYTES);
        let (id, number) = id_and_number(header);
        let known = self.roots.get(&id).ok_or("a hail has an id of no root that was saved")?;
        let run = Run::from_bytes(header[13..].try_into().unwrap());
        let direction = known.root.hail(known.toward, &run);
        direction.open(number, header, ciphertext).map_err(|_| "a hail was sealed under another key")?;
        self.note(fingerprint(&direction), number)
    }

    fn note(&mut self, whose: Fingerprint, number: u64) -> Result<(), String> {
        self.seals += 1;
        if self.seen.insert((whose, number)) {
            Ok(())
        } else {
            Err(format!("number {number} was sealed twice under one key"))
        }
    }
}

fn id_and_number(header: &[u8]) -> ([u8; 8], u64) {
    let number = u32::from_be_bytes(header[9..13].try_into().unwrap());
    (header[1..9].try_into().unwrap(), number.into())
}
