//! Runs a compiled app: events, views, sends: pure.
