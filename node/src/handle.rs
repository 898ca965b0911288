//! The door between HTTP and the node's owner: what the server asks of the node, and what the node may say.
//!
//! HTTP knows nothing of threads, logs or links: it holds a [`Handle`], and whoever runs the node implements it. A
//! test implements it over a few maps. Nothing here names a status code but in words; [`crate::http`] maps them.

use std::future::Future;
use std::net::SocketAddr;

/// One input from outside, as it came over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// The app's name, as in the path.
    pub app: String,
    /// The input's name, as in the path.
    pub input: String,
    /// The arguments: the text of a JSON object, not looked at yet.
    pub body: Vec<u8>,
    /// Who asks: the token's user, `"local"` on loopback without tokens.
    pub by: String,
    /// At most 128 printable ASCII characters: a second post with the same key gets the first one's answer.
    pub idempotency_key: Option<String>,
}

/// Why an input did not become an event, or what became of it when nobody can say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The arguments do not have the input's shape; names the field and what was expected.
    #[error("{0}")]
    Shape(String),
    /// No such app, or no such input in it.
    #[error("there is no input {input} in an app {app} here")]
    NoSuchRoute {
        /// The app asked for.
        app: String,
        /// The input asked for.
        input: String,
    },
    /// The app refused, in its own words. Nothing changed.
    #[error("{0}")]
    Refused(String),
    /// The event was over its budget of operations or bytes. Nothing changed.
    #[error("{0}")]
    Budget(String),
    /// A repeat of what was applied, whose answer is no longer kept.
    #[error("{0}")]
    AnswerForgotten(String),
    /// The queue of inputs is full. Nothing changed; try again after so many seconds.
    #[error("the node has as many inputs waiting as it takes; try again in {retry_after_seconds} s")]
    Full {
        /// When it is worth another try.
        retry_after_seconds: u32,
    },
    /// The disk took no more, or the like: nothing changed, and trying again does not help until somebody acts.
    #[error("{0}")]
    Unwritable(String),
    /// The node is stopping and took nothing.
    #[error("the node is stopping; the input was not taken")]
    Stopping,
    /// The input was taken and what became of it is not known: it may or may not be applied after the next start. The
    /// same idempotency key makes it safe to ask again.
    #[error("{0}; whether the input was applied is not known, ask again with the same Idempotency-Key")]
    Unknown(String),
}

/// Why a view could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The arguments do not have the view's shape; names the argument and what was expected.
    #[error("{0}")]
    Shape(String),
    /// No such app, or no such view in it.
    #[error("there is no view {view} in an app {app} here")]
    NoSuchRoute {
        /// The app asked for.
        app: String,
        /// The view asked for.
        view: String,
    },
    /// The view itself failed: a division by zero, a missing row.
    #[error("{0}")]
    Refused(String),
    /// The view was over its budget of operations or bytes.
    #[error("{0}")]
    Budget(String),
    /// It is not done with [`Effort::Little`]: it costs more, or there is no room now. [`Effort::Whole`] says which.
    #[error("the view costs more than a little")]
    Costly,
    /// Other views leave no room for it now; try again after so many seconds.
    #[error("{words}")]
    Crowded {
        /// Why.
        words: String,
        /// When it is worth another try.
        retry_after_seconds: u32,
    },
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
}

/// How much of a view's budget it may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// So little that it is done at once: what costs more is [`ViewError::Costly`].
    Little,
    /// All of it.
    Whole,
}

/// One view of an app, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look<'l> {
    /// The app.
    pub app: &'l str,
    /// Its view.
    pub view: &'l str,
    /// The view's arguments as text.
    pub query: &'l [(String, String)],
    /// Who asks.
    pub by: &'l str,
    /// How much it may cost.
    pub effort: Effort,
}

/// What whoever runs the node asks of it, with the control token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Make the node of this ticket a peer, or learn its newer addresses.
    AddPeer {
        /// The ticket's text, `svt2…`.
        ticket: String,
        /// What people here call it; empty is no name.
        name: String,
        /// Where to reach it, in place of what the ticket says; empty: as the ticket says.
        addresses: Vec<SocketAddr>,
    },
    /// The node is a peer no more; what waits for it, or for this address on the web, is refused.
    RemovePeer {
        /// The node's text, `sv1…`, or an address.
        node: String,
    },
    /// This copy of the node goes on with a peer that took another one.
    Resume {
        /// The node's text, `sv1…`.
        node: String,
    },
    /// All peers with how their links are.
    Peers,
    /// How the node is.
    Status,
    /// What another version of an app would do to what it keeps.
    Plan {
        /// Its source.
        source: String,
    },
}

/// Why a control request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// A ticket or a node's text that cannot be read; says what is wrong with it.
    #[error("{0}")]
    Shape(String),
    /// No such peer.
    #[error("{node} is not a peer of this node")]
    NoSuchPeer {
        /// The node asked for.
        node: String,
    },
    /// The node refuses, with why: one's own ticket, say.
    #[error("{0}")]
    Refused(String),
    /// The queue is full; try again after so many seconds.
    #[error("the node has as many requests waiting as it takes; try again in {retry_after_seconds} s")]
    Full {
        /// When it is worth another try.
        retry_after_seconds: u32,
    },
    /// Another plan is being made; try again after so many seconds.
    #[error(
        "a plan is being made on this node, and one is made at a time; try again in {retry_after_seconds} s"
    )]
    Planning {
        /// When it is worth another try.
        retry_after_seconds: u32,
    },
    /// Another backup is being made; try again after so many seconds.
    #[error(
        "a backup is being made of this node, and one is made at a time; try again in {retry_after_seconds} s"
    )]
    BackingUp {
        /// When it is worth another try.
        retry_after_seconds: u32,
    },
    /// The node is stopping and did nothing.
    #[error("the node is stopping")]
    Stopping,
    /// It failed in a way that leaves open whether it was done.
    #[error("{0}; whether it was done is not known")]
    Unknown(String),
}

/// What an app takes and shows, in the words of its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Description {
    /// The app's name.
    pub app: String,
    /// What can be posted to it.
    pub inputs: Vec<Door>,
    /// What can be looked at.
    pub views: Vec<Door>,
    /// The enums and records by name, that the fields' types name.
    pub types: Vec<NamedType>,
}

/// An input or a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Door {
    /// Its name, as in the path.
    pub name: String,
    /// What it takes.
    pub fields: Vec<Field>,
    /// The type of what it answers or shows; none of an input that answers nothing.
    pub answer: Option<String>,
}

/// A field of an input, a parameter of a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be left out.
    pub optional: bool,
}

/// An enum or a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct NamedType {
    /// Its name.
    pub name: String,
    /// Its declaration: `enum E { a, b }`, `record R { a: int }`.
    pub declaration: String,
}

/// A backup, piece by piece; why it does not go on, in words.
pub type Pieces = Box<dyn Iterator<Item = Result<Vec<u8>, String>> + Send>;

/// The node as HTTP sees it. Cheap to clone: each connection has one.
pub trait Handle: Clone + Send + Sync + 'static {
    /// Applies one input. Resolves only after the sync that covers the event, to the answer's JSON if it has one.
    fn post(&self, post: Post) -> impl Future<Output = Result<Option<String>, PostError>> + Send;

    /// A view's JSON over the last published state. May compute for as long as the effort lets it: it is called where
    /// blocking is allowed.
    fn view(&self, look: Look<'_>) -> Result<String, ViewError>;

    /// Changes each time a batch that touched the app is published, after its sync. `None`: no such app.
    fn watch(&self, app: &str) -> Option<tokio::sync::watch::Receiver<u64>>;

    /// Carries out what the holder of the control token asks, and says what there is to show.
    fn control(
        &self,
        request: Control,
    ) -> impl Future<Output = Result<serde_json::Value, ControlError>> + Send;

    /// All that the node keeps, as it is now, on disk. It is held until the pieces are dropped.
    fn backup(&self) -> impl Future<Output = Result<Pieces, ControlError>> + Send;

    /// The control token. An empty one lets nobody in.
    fn token(&self) -> &str;

    /// What an app takes and shows. `None`: no such app.
    fn describe(&self, app: &str) -> Option<Description>;

    /// The names of the apps that run here, in order.
    fn apps(&self) -> Vec<String>;

    /// This node's identity as text, `sv1…`.
    fn node_id(&self) -> String;
}
