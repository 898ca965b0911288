//! What happens to an app and what comes of it: plain data.

use crate::deltas::Deltas;
use sealing::NodeId;

/// What an event may know of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Milliseconds since 1970 UTC, fixed when the event begins.
    pub now: i64,
    /// The event's only source of chance.
    pub entropy: [u8; 32],
    /// Sends that the outbox still has room for; an event that would make more is [`EventError::NoRoom`].
    pub room: usize,
}

/// One thing that happens to an app.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A post from outside.
    Input {
        /// The `on` that takes it.
        name: &'a str,
        /// The text of a JSON object.
        arguments: &'a [u8],
        /// Who posts: the token's user, or `local`.
        by: &'a str,
    },
    /// A send from another node, proven to be `peer`.
    From {
        /// The `on … from` that takes it.
        name: &'a str,
        /// As [`Send::arguments`] made them.
        arguments: &'a [u8],
        /// The sending node.
        peer: NodeId,
        /// The sending app.
        app: &'a str,
    },
    /// The fabric says that an own send was applied there.
    Delivered {
        /// The output that was sent.
        output: &'a str,
        /// The send's arguments.
        arguments: &'a [u8],
        /// The receiving node.
        peer: NodeId,
        /// What its handler returned, as [`Applied::carried`] is; none if it has no answer.
        answer: Option<&'a [u8]>,
    },
    /// The fabric says that an own send was refused there.
    Refused {
        /// The output that was sent.
        output: &'a str,
        /// The send's arguments.
        arguments: &'a [u8],
        /// The receiving node.
        peer: NodeId,
        /// Why, in the receiving app's words.
        reason: &'a str,
    },
    /// An address on the web took an own send, or refused it.
    Answered {
        /// The output that was sent.
        output: &'a str,
        /// As [`EndpointSend::encoded`] has them.
        arguments: &'a [u8],
        /// The address.
        to: &'a str,
        /// Why it was refused, if it was.
        refusal: Option<&'a str>,
    },
    /// The timer or `every` that is due first, by [`crate::App::next_due`], if it is due by now.
    Due,
}

/// What an event did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The handler's answer as JSON text, where it has one.
    pub answer: Option<String>,
    /// Of [`Event::From`]: the same answer as it goes back to the sender, self-describing, after a version byte.
    pub carried: Option<Vec<u8>>,
    /// Changed rows, in order of list and key.
    pub deltas: Deltas,
    /// Sends, in the order in which they were made.
    pub sends: Vec<Send>,
    /// Sends to endpoints, in the order in which they were made.
    pub endpoint_sends: Vec<EndpointSend>,
    /// Whether state that is not durable was touched: views may show something else though no row changed.
    pub transient: bool,
    /// Of [`Event::Due`]: what fired failed, and why. It is over all the same: its own changes are undone, and only
    /// that it is no longer pending is among the deltas.
    pub failed: Option<String>,
    /// What was charged.
    pub operations: u64,
}

/// A message to an app of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// The receiving `on … from`.
    pub output: String,
    /// Field names and typed values, self-describing, after a version byte.
    pub arguments: Vec<u8>,
    /// The receiving node.
    pub to: NodeId,
    /// The receiving app.
    pub app: String,
    /// Whether it is worth something now or never: not stored, not sent again, without an outcome.
    pub transient: bool,
}

/// A message to an address on the web.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSend {
    /// The output.
    pub output: String,
    /// JSON object of its fields.
    pub arguments: String,
    /// Its fields as [`Event::Answered`] takes them, also after the module has changed.
    pub encoded: Vec<u8>,
    /// The address.
    pub to: String,
}

/// Why an event changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The module has no such handler.
    #[error("app `{app}` has no input `{name}`")]
    NoSuchInput {
        /// The app.
        app: String,
        /// The name asked for.
        name: String,
    },
    /// The arguments are not of the handler's shape.
    #[error("{message}")]
    Shape {
        /// Which field, what was expected, what was found.
        message: String,
    },
    /// The app refused, in its own words, or a rule of the language did.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The event would send more than the outbox has room for.
    #[error("the outbox has room for {room} more sends: wait until peers have taken what is on its way")]
    NoRoom {
        /// Sends that there was room for.
        room: usize,
    },
    /// The event would make larger what is kept, or send, when it was to do neither.
    #[error("there is no room for more rows, longer texts or sends; what removes or replaces goes on")]
    Grows,
    /// The event cost more than an event may.
    #[error("the event went over its budget of {limit} {unit}")]
    Budget {
        /// `operations` or `bytes`.
        unit: &'static str,
        /// The most there is.
        limit: u64,
    },
}

/// Why a view gives nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The module has no such view.
    #[error("app `{app}` has no view `{name}`")]
    NoSuchView {
        /// The app.
        app: String,
        /// The name asked for.
        name: String,
    },
    /// The query is not of the view's shape.
    #[error("{message}")]
    Shape {
        /// Which field, what was expected, what was found.
        message: String,
    },
    /// The view refused: overflow, division by zero, its own words.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The result has more bytes than were asked for.
    #[error("the view has more than {bytes_max} bytes: take fewer rows")]
    TooLarge {
        /// The most that were asked for.
        bytes_max: usize,
    },
    /// The view cost more than a view may.
    #[error("the view went over its budget of {limit} {unit}")]
    Budget {
        /// `operations` or `bytes`.
        unit: &'static str,
        /// The most there is.
        limit: u64,
    },
    /// Other views make so much now that it is too much together.
    #[error(
        "there is no room for this view now: it and others that are being computed would make more than {limit} \
         bytes together. Try again"
    )]
    Crowded {
        /// The most that they may make.
        limit: u64,
    },
}

/// Why a setting does not have a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The app has no such setting.
    #[error("app `{app}` has no setting `{name}`{}", listed(there))]
    NoSuch {
        /// The app.
        app: String,
        /// The name given.
        name: String,
        /// The settings that it has.
        there: Vec<String>,
    },
    /// The value is not of the setting's type.
    #[error("setting `{app}.{name}`: {message}")]
    Value {
        /// The app.
        app: String,
        /// The setting.
        name: String,
        /// What was expected, what was found.
        message: String,
    },
}

fn listed(there: &[String]) -> String {
    if there.is_empty() { String::new() } else { format!(": it has {}", there.join(", ")) }
}

/// A row from a log that this module cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The module has no list of that number.
    #[error("app `{app}` has no list number {list}")]
    NoSuchList {
        /// The app.
        app: String,
        /// The number.
        list: u32,
    },
    /// The key or the row is not of the list's type.
    #[error("a row of `{list}` does not read: {message}")]
    Row {
        /// The list's name.
        list: String,
        /// What is wrong.
        message: String,
    },
}
