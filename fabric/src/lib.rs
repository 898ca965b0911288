//! The driver of the link: sockets, timers, the memo file.
