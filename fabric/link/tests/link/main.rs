//! The link under test as a whole: endpoints of the production type over a virtual network.
//!
//! `world` is the network, the clock and the faults, all from one seed; `node` is an endpoint with a small store beside
//! it; `course` is a path with a rate and links that fill it; `seeds` runs many worlds; `cases` are single situations with
//! their expected course; `clones` two nodes that are one, `epochs` is the change of roots; `discretion` what a bystander
//! sees, `flood` hellos of many who are not there; `noise` is bytes of anybody; `threats` is what an attacker tries,
//! `witness` knows all keys, and `nonces` that none of them seals twice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is a test that failed")]

mod cases;
mod clauses;
mod clones;
mod course;
mod discretion;
mod epochs;
mod flood;
mod node;
mod noise;
mod nonces;
mod rest;
mod seeds;
mod threats;
mod witness;
mod world;
