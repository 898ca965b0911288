//! Identities, signed cards, tickets, the key schedule of a link: pure.
