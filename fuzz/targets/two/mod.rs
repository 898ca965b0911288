//! Two nodes that met: their memo places were made once, so that each input begins without a public-key operation.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use link::{Config, Declaration, Effect, Endpoint, MemoPlace, Peer, Record, StreamId, Time};
use sealing::{Identity, NodeId, Run, Tag};

/// Where the two are, and somebody else.
pub const PLACES: [SocketAddr; 3] = [place(1), place(2), place(3)];

const fn place(last: u8) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, last)), 4_000)
}

/// The time at which all begins.
pub const START: Time = Time(1_000_000);

static IDENTITIES: LazyLock<[Arc<Identity>; 2]> =
    LazyLock::new(|| [1, 2].map(|seed| Arc::new(Identity::from_seed(&[seed; 64]))));

/// The memo places of both after their hello, in the first run of each.
static MEMOS: LazyLock<[MemoPlace; 2]> = LazyLock::new(|| {
    let mut two = Two { endpoints: [0, 1].map(|at| endpoint(at, 1, None)), memos: [None, None] };
    two.write(0, 1);
    two.settle();
    two.memos.map(|memo| memo.expect("they met"))
});

pub struct Two {
    pub endpoints: [Endpoint; 2],
    memos: [Option<MemoPlace>; 2],
}

pub fn id(at: usize) -> NodeId {
    IDENTITIES[at].id()
}

fn stream(at: usize) -> StreamId {
    StreamId([at as u8 + 1; 16])
}

/// An endpoint whose peer is the other one, which it has met or not.
pub fn endpoint(at: usize, run: u64, memo: Option<MemoPlace>) -> Endpoint {
    let run = Run { counter: run, random: [at as u8; 16] };
    let identity = Arc::clone(&IDENTITIES[at]);
    let (card, record_bytes_max) = (identity.card(1), 1 << 18);
    let mut endpoint = Endpoint::new(Config { identity, card, run, entropy: [7; 32], record_bytes_max });
    let card = Some(IDENTITIES[1 - at].card(1));
    let peer = Peer { node: id(1 - at), card_hash: None, card, addresses: vec![PLACES[1 - at]], memo };
    endpoint.add_peer(START, peer);
    let declaration = Declaration {
        stream: stream(at),
        from_app: "a".into(),
        to_app: "b".into(),
        oldest: 1,
        tag_before: Tag([0; 8]),
        last: 0,
    };
    endpoint.declare(START, id(1 - at), declaration);
    endpoint
}

impl Two {
    /// Both in their second run, a record of each on its way to its outcome.
    pub fn up() -> Two {
        let memos = *MEMOS;
        let endpoints = [0, 1].map(|at| endpoint(at, 2, Some(memos[at])));
        let mut two = Two { endpoints, memos: memos.map(Some) };
        two.settle();
        two.write(0, 1);
        two.write(1, 1);
        two.settle();
        two
    }

    pub fn write(&mut self, at: usize, number: u64) {
        let record = Record { stream: stream(at), number, tag: Tag([1; 8]), payload: vec![7; 100].into() };
        let _ = self.endpoints[at].send(START, id(1 - at), record);
    }

    /// Brings all datagrams, until there are none.
    pub fn settle(&mut self) {
        for _ in 0..64 {
            let mut quiet = true;
            for at in 0..2 {
                while let Some(effect) = self.endpoints[at].poll_effect() {
                    quiet = false;
                    match effect {
                        Effect::SaveMemo { place, .. } => self.memos[at] = Some(place),
                        Effect::Datagram { to, bytes } if to == PLACES[1 - at] => {
                            self.endpoints[1 - at].handle_datagram(START, PLACES[at], &bytes);
                        }
                        _ => {}
                    }
                }
            }
            if quiet {
                return;
            }
        }
    }
}

/// Gives a datagram of somebody to an endpoint: nothing that is kept for peers changes, and what goes back is no more than
/// three times as much.
pub fn somebody_says(endpoint: &mut Endpoint, bytes: &[u8]) {
    let before = format!("{endpoint:?}");
    endpoint.handle_datagram(START, PLACES[2], bytes);
    let mut sent = 0;
    while let Some(effect) = endpoint.poll_effect() {
        match effect {
            Effect::Datagram { to, bytes } if to == PLACES[2] => sent += bytes.len(),
            other => panic!("{other:?}"),
        }
    }
    assert!(sent <= 3 * bytes.len());
    assert_eq!(before, format!("{endpoint:?}"));
}

/// Datagrams in an input, each behind two bytes of length.
pub fn datagrams(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (datagram, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        all.push(datagram);
        bytes = rest;
    }
    all
}
