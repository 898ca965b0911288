//! The node over HTTP: its apps' inputs and views, the views pushed as they change, a page for the messenger, and what
//! the operator does with the control token.
//!
//! It must not know how the node keeps its state: all it has is a [`Handle`]. How the parts meet, in the order in which
//! a request meets them:
//!
//! | part | does |
//! | --- | --- |
//! | `connections` | accepts so many at once, times out the slow, drains at the end |
//! | `activity` | what a connection is doing |
//! | `patience` | a socket whose reader may be slow, but not for ever |
//! | `guard` | refuses requests for other hosts, from other origins and from other machines; the answer's headers |
//! | `routes` | the paths |
//! | `body` | a JSON object from a request, small enough and soon enough |
//! | `apps`, `events` | an app's inputs and views, and the views as streams |
//! | `answers` | what views answer: computed and kept once for many, counted while it is sent |
//! | `doors` | what is told of an app, an input or a view that is not there |
//! | `control`, `backup` | peers and status, and a backup as it is made, with the token |
//! | `page` | the list of apps, a page for each, and the messenger's own |
//! | `problem` | every answer that is not a success |
//! | `limits` | every bound, with its reason |

mod activity;
mod answers;
mod apps;
mod backup;
mod body;
mod connections;
mod control;
mod doors;
mod events;
mod guard;
mod limits;
mod page;
mod patience;
mod problem;
mod routes;

use std::io;

use tokio::net::TcpListener;

pub(crate) use self::limits::{LITTLE_OPERATIONS_MAX, VIEW_BYTES_MAX, VIEWS_BYTES_MAX};
use crate::handle::Handle;

/// Serves until `shutdown` resolves, then ends the event streams, lets what is under way finish and returns.
///
/// # Errors
///
/// Only if the listener has no address. A connection that cannot be accepted is no error: it is tried again.
pub async fn serve<H: Handle>(
    listener: TcpListener,
    handle: H,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    connections::serve(listener, handle, limits::CONNECTIONS_MAX, shutdown).await
}
