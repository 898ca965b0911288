//! What is sealed and signed with fixed entropy, as files that another implementation can check itself against:
//! `tests/vectors/link.txt` and `tests/vectors/statements.txt`.
//!
//! They are compared whole. After a deliberate change, which is another version of the protocol unless none
//! was released, write them anew with `SELVEDGE_WRITE_VECTORS=1 cargo test -p selvedge-sealing vectors`.

mod statements;

use std::convert::Infallible;
use std::fmt::Write;

use rand_core::{TryCryptoRng, TryRng, utils};

use crate::hello::{Answer, open_hello, seal_hello};
use crate::memo::{Held, HelloCounters, Memo, Role};
use crate::{Identity, Run, Toward};

/// Hands out 0, 1, 2, … and keeps what it handed out.
struct CountingEntropy(Vec<u8>);

impl TryRng for CountingEntropy {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = u8::try_from(self.0.len() % 256).expect("below 256");
            self.0.push(*byte);
        }
        Ok(())
    }
}

impl TryCryptoRng for CountingEntropy {}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn comment(&mut self, text: &str) {
        writeln!(self.0, "\n# {text}").unwrap();
    }

    fn text(&mut self, name: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{name} = {value}").unwrap();
    }

    /// Fails unless the file of this name says the same.
    #[allow(clippy::disallowed_methods, reason = "the vectors are a file")]
    fn compare(&self, file: &str) {
        let path = format!("{}/tests/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("SELVEDGE_WRITE_VECTORS").is_some() {
            std::fs::write(&path, &self.0).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        for (line, (found, expected)) in self.0.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "line {} of {path}", line + 1);
        }
        assert_eq!(self.0.lines().count(), expected.lines().count(), "{path}");
    }

    fn bytes(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.text(name, data_encoding::HEXLOWER.encode(value.as_ref()));
    }
}

fn seed(first: u8) -> [u8; 64] {
    std::array::from_fn(|index| first.wrapping_add(u8::try_from(index).expect("below 64")))
}

fn identities(lines: &mut Lines) -> (Identity, Identity) {
    lines.comment("Who: ed25519 seed, then X-Wing seed. Ann says the hello, ben answers.");
    let identities = [("ann", 0x00), ("ben", 0x80)].map(|(name, first)| {
        let identity = Identity::from_seed(&seed(first));
        lines.bytes(&format!("{name}.seed"), seed(first));
        lines.bytes(&format!("{name}.id"), identity.id().as_bytes());
        lines.text(&format!("{name}.id.text"), identity.id());
        identity
    });
    identities.into()
}

fn session(lines: &mut Lines, ann: &Identity, ben: &Identity) -> crate::Root {
    let ann_run = Run { counter: 1, random: *b"ann's random run" };
    let ben_run = Run { counter: 2, random: *b"ben's random run" };
    let card = ben.card(5);
    lines.comment("Ben's card.");
    lines.bytes("ben.card", card.bytes());
    lines.bytes("ben.card.hash", card.hash());

    lines.comment(
        "The hello. Entropy in the order drawn: encapsulation (64), seed of the ephemeral key (32).",
    );
    lines.bytes("ann.run", ann_run.to_bytes());
    lines.bytes("hello.frames", "first frames");
    let mut entropy = CountingEntropy(Vec::new());
    let (hello, pending) = seal_hello(ann, &ann_run, 9, &card, b"first frames", &mut entropy);
    lines.bytes("hello.entropy", &entropy.0);
    lines.text("hello.sequence", 9);
    let opened = open_hello(ben, &card, &hello).unwrap();
    let (th0, body_hash, k0) = opened.transcript();
    lines.bytes("hello.th0", th0);
    lines.bytes("hello.k0", k0);
    lines.bytes("hello.body.hash", body_hash);
    lines.bytes("hello", &hello);

    lines.comment("The answers: an accept with its entropy (encapsulation, 64), a decline with reason 2 and known run 9.");
    lines.bytes("ben.run", ben_run.to_bytes());
    let mut entropy = CountingEntropy(vec![0; 0x40]);
    let (accept, root) = opened.accept(&ben_run, &mut entropy);
    lines.bytes("accept.entropy", &entropy.0[0x40..]);
    lines.bytes("accept", &accept);
    lines.bytes("decline", opened.decline(2, 9));
    assert!(
        matches!(pending.open_answer(&accept), Ok(Answer::Accepted { root: other, .. }) if other == root)
    );
    packets(lines, &root, &ann_run, &ben_run);
    epoch(lines, &root);
    root
}

fn epoch(lines: &mut Lines, root: &crate::Root) {
    lines.comment("The change to epoch 2. Entropy: seed of the offered key (32), encapsulation to it (64).");
    let mut entropy = CountingEntropy(Vec::new());
    let offer = crate::EpochOffer::new(&mut entropy);
    let (ciphertext, next) = crate::accept_offer(root, 2, offer.offered(), &mut entropy).unwrap();
    lines.bytes("epoch.entropy", &entropy.0);
    lines.bytes("epoch.offered", offer.offered());
    lines.bytes("epoch.ciphertext", ciphertext);
    lines.bytes("epoch.root", next.0);
    assert_eq!(offer.accepted(root, 2, &ciphertext), Some(next));
}

fn packets(lines: &mut Lines, root: &crate::Root, ann_run: &Run, ben_run: &Run) {
    lines.comment(
        "What comes from the root. Packets: number 258, header \"header\", plaintext \"plaintext\".",
    );
    lines.bytes("root", root.0);
    lines.bytes("id.to_responder", root.ids().to_responder);
    lines.bytes("id.to_initiator", root.ids().to_initiator);
    let pair = root.pair(ann_run, ben_run);
    for (name, direction) in [
        ("pair.to_responder.packet", pair.to_responder),
        ("pair.to_initiator.packet", pair.to_initiator),
        ("hail.to_responder.packet", root.hail(Toward::Responder, ann_run)),
        ("hail.to_initiator.packet", root.hail(Toward::Initiator, ben_run)),
    ] {
        lines.bytes(name, direction.seal(258, b"header", b"plaintext"));
    }
}

fn memo(lines: &mut Lines, peer: crate::NodeId, root: crate::Root) {
    lines
        .comment("Ann's memo place of the link: initiator, epoch 1, nothing pending, no hello heard of ben.");
    let peer_run = Run { counter: 2, random: *b"ben's random run" };
    let memo = Memo {
        peer,
        current: Some(Held { role: Role::Initiator, epoch: 1, root, peer_run }),
        pending: None,
        hello_heard: HelloCounters::default(),
        address: Some("192.0.2.1:4711".parse().unwrap()),
        is_fenced: false,
    };
    lines.bytes("memo", memo.encode());
}

#[test]
fn the_key_schedule_is_as_in_the_file_of_vectors() {
    let mut lines =
        Lines("# Test vectors of the key schedule, version 1; bytes in hexadecimal.\n".to_owned());
    let (ann, ben) = identities(&mut lines);
    let root = session(&mut lines, &ann, &ben);
    memo(&mut lines, ben.id(), root);
    lines.compare("link.txt");
}
