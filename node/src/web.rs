//! Tries of what apps send to addresses on the web: each waits its time, then a thread makes one POST and tells what came.
//!
//! It decides nothing: which try, when again and what an answer means is the core's. The owner never waits for it.

use crate::owner::WebAnswers;
use node_core::{WebAnswer, WebOutcome, WebTry};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use ureq::Agent;
use ureq::http::Uri;

/// Tries made at once, each on a thread of its own that is there only for it: what a small machine bears beside its work.
/// An address that does not answer holds one for [`TRY_SECONDS_MAX`] of each wait.
pub const TRIES_MAX: usize = 16;

/// The longest that a try takes, from looking up the name to the end of the answer.
const TRY_SECONDS_MAX: u64 = 30;

/// Bytes of an answer that are read: its status is what counts, its text is for people.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// How long a connection that nothing is sent on is kept for the next try: less than common servers keep it.
const IDLE_SECONDS_MAX: u64 = 3;

/// The wait before a thread is asked for again when the system had none.
const NO_THREAD_WAIT: Duration = Duration::from_secs(1);

/// Makes tries. When it is dropped, tries that still wait are not made.
#[derive(Debug)]
pub struct Web {
    runtime: Handle,
    agent: Agent,
    answers: WebAnswers,
    places: Arc<Semaphore>,
    running: watch::Sender<()>,
}

impl Web {
    /// Tries wait on `runtime`; what came of them goes into `answers`.
    pub fn new(runtime: Handle, answers: WebAnswers) -> Web {
        Web {
            runtime,
            agent: agent(),
            answers,
            places: Arc::new(Semaphore::new(TRIES_MAX)),
            running: watch::Sender::new(()),
        }
    }

    /// Makes a try when its time has come and there is a place.
    pub fn attempt(&self, attempt: WebTry) {
        let (agent, answers, places) = (self.agent.clone(), self.answers.clone(), Arc::clone(&self.places));
        let mut running = self.running.subscribe();
        self.runtime.spawn(async move {
            let place = async {
                tokio::time::sleep(Duration::from_millis(attempt.after_milliseconds)).await;
                places.acquire_owned().await
            };
            let place = tokio::select! {
                place = place => place,
                // Nothing is ever said: an error says that the owner is gone.
                _ = running.changed() => return,
            };
            let (attempt, place) = (Arc::new(attempt), Arc::new(place));
            loop {
                let (agent, answers) = (agent.clone(), answers.clone());
                let (attempt, place) = (Arc::clone(&attempt), Arc::clone(&place));
                let thread = std::thread::Builder::new().name("web".to_owned()).spawn(move || {
                    let outcome = post(&agent, &attempt);
                    let (route, number) = (attempt.route.clone(), attempt.number);
                    answers.tell(WebAnswer { route, number, outcome });
                    drop(place);
                });
                match thread {
                    Ok(_) => return,
                    Err(_) => tokio::time::sleep(NO_THREAD_WAIT).await,
                }
            }
        });
    }
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(Duration::from_secs(TRY_SECONDS_MAX)))
        .max_idle_age(Duration::from_secs(IDLE_SECONDS_MAX))
        .proxy(None)
        .user_agent(concat!("selvedge/", env!("CARGO_PKG_VERSION")));
    config.build().into()
}

/// Whether the port, if there is one, is a port: the library takes the scheme's own in place of one that is not.
fn has_a_port_that_is_one(uri: &Uri) -> bool {
    let Some(authority) = uri.authority() else { return true };
    let host = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
    let port = host.rsplit_once(']').map_or(host, |(_, behind)| behind).split_once(':');
    port.is_none_or(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok())
}

/// Makes one POST.
fn post(agent: &Agent, attempt: &WebTry) -> WebOutcome {
    let endpoint = &attempt.route.endpoint;
    let uri = match endpoint.parse::<Uri>() {
        Ok(uri) if !has_a_port_that_is_one(&uri) => {
            return WebOutcome::NoAddress(format!("{endpoint} is no address: a port is at most 65535"));
        }
        Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) => uri,
        Ok(_) => return WebOutcome::NoAddress(format!("{endpoint} is no address: it has no host")),
        Err(error) => return WebOutcome::NoAddress(format!("{endpoint} is no address: {error}")),
    };
    let request = agent
        .post(uri)
        .header("content-type", "application/json")
        .header("idempotency-key", &attempt.idempotency_key)
        .header("selvedge-app", &attempt.route.app)
        .header("selvedge-output", &attempt.output);
    match request.send(attempt.body.as_bytes()) {
        Ok(mut response) => {
            let mut bytes = Vec::new();
            // What the status says holds also where the rest of the answer is lost.
            let _ = response.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            WebOutcome::Answered { status: response.status().as_u16(), text }
        }
        Err(error) => WebOutcome::Failed(error.to_string()),
    }
}
