//! Weft, the app language: parse, check, compile: pure.
