//! The link protocol: datagrams and time in, effects out: pure.
