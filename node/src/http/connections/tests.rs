//! Bounds of number and time, over real sockets with a clock that jumps to the next timer when nothing else is to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Mutex;

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;
use crate::handle::{Control, ControlError, Description, Door, Look, Pieces, Post, PostError, ViewError};
use crate::http::limits::{BODY_TIMEOUT, EVENT_KEEP_ALIVE, UNCOUNTED_BYTES_MAX};

/// A node with one app, `log`, whose view `seen` notes what it was asked with and answers it, in so
/// many `bytes`; for `GROWN` a large one once something was published.
#[derive(Clone)]
struct Log {
    asked: Arc<Mutex<Vec<String>>>,
    published: watch::Sender<u64>,
    /// A post is answered once there is a permit.
    release: Arc<Semaphore>,
}

impl Log {
    fn new() -> Log {
        Log { asked: Arc::default(), published: watch::Sender::new(0), release: Arc::new(Semaphore::new(0)) }
    }
}

impl Handle for Log {
    async fn post(&self, post: Post) -> Result<Option<String>, PostError> {
        self.release.acquire().await.unwrap().forget();
        self.asked.lock().unwrap().push(post.input);
        Ok(None)
    }

    fn view(&self, Look { query, .. }: Look<'_>) -> Result<String, ViewError> {
        let of = |name: &str| query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let argument = of("a").unwrap_or_default().to_owned();
        let bytes = match of("bytes") {
            Some("GROWN") if *self.published.borrow() > 0 => LARGE_BYTES,
            bytes => bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        };
        let mut asked = self.asked.lock().unwrap();
        asked.push(argument.clone());
        let answer = format!("{argument:?}");
        let space = " ".repeat(usize::saturating_sub(bytes, answer.len()));
        Ok(answer + &space)
    }

    fn watch(&self, _: &str) -> Option<watch::Receiver<u64>> {
        Some(self.published.subscribe())
    }

    async fn control(&self, _: Control) -> Result<serde_json::Value, ControlError> {
        Err(ControlError::Stopping)
    }

    async fn backup(&self) -> Result<Pieces, ControlError> {
        Err(ControlError::Stopping)
    }

    fn token(&self) -> &str {
        ""
    }

    fn describe(&self, app: &str) -> Option<Description> {
        let door = |name: &str| Door { name: name.to_owned(), ..Door::default() };
        let (inputs, views) = (vec![door("add"), door("hold")], vec![door("seen")]);
        Some(Description { app: app.to_owned(), inputs, views, ..Description::default() })
    }

    fn apps(&self) -> Vec<String> {
        vec!["log".to_owned()]
    }

    fn node_id(&self) -> String {
        "sv1log".to_owned()
    }
}

/// Runs `client` against a server with so many places, then stops the server, which must end.
async fn with_server<F: Future<Output = ()>>(
    connections_max: usize,
    client: impl FnOnce(SocketAddr, Log) -> F,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let log = Log::new();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, log.clone(), connections_max, async {
        let _ = stopped.await;
    }));
    client(address, log).await;
    stop.send(()).unwrap();
    server.await.unwrap().unwrap();
}

async fn connect(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

async fn rest(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn get(address: SocketAddr, argument: &str) -> String {
    format!("GET /log/seen?a={argument} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_place_waits_and_is_answered_later() {
    with_server(1, async |address, log| {
        let post = "POST /log/hold HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n";
        let post = format!("{post}Host: {address}\r\nContent-Length: 2\r\n\r\n{{}}");
        let mut first = connect(address, &post).await;
        let mut second = connect(address, &get(address, "second")).await;
        // The clock goes on only when nothing else can: whoever could be answered by now has been.
        sleep(CROWDED_IDLE_SPARED * 3).await;
        assert_eq!(*log.asked.lock().unwrap(), [] as [&str; 0]);
        log.release.add_permits(1);
        assert!(rest(&mut first).await.ends_with("{}"));
        assert!(rest(&mut second).await.ends_with("\"second\""));
        assert_eq!(*log.asked.lock().unwrap(), ["hold", "second"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_idle_make_place_and_streams_stay() {
    with_server(2, async |address, log| {
        let began = Instant::now();
        let watch =
            format!("GET /log/seen?a=x HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
        let mut stream = connect(address, &watch).await;
        let mut told = [0; 4096];
        assert!(stream.read(&mut told).await.unwrap() > 0);
        for number in 0..10 {
            let mut idle = connect(address, if number % 2 == 0 { "" } else { "GET / HT" }).await;
            let number = number.to_string();
            assert!(
                rest(&mut connect(address, &get(address, &number)).await)
                    .await
                    .ends_with(&format!("{number:?}"))
            );
            assert_eq!(rest(&mut idle).await, "");
        }
        assert!(began.elapsed() < HEAD_TIMEOUT);
        // Still there: the end of the server ends it.
        assert_eq!(log.published.receiver_count(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_ends_its_connection() {
    with_server(2, async |address, _| {
        let began = Instant::now();
        let mut slow = connect(address, "GET / HTTP/1.1\r\nHost:").await;
        assert_eq!(rest(&mut slow).await, "");
        assert!(began.elapsed() >= HEAD_TIMEOUT);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_answered_so() {
    with_server(1, async |address, _| {
        let began = Instant::now();
        let head = format!(
            "POST /log/add HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        );
        let answer = rest(&mut connect(address, &head).await).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains(r#""code":"slow""#), "{answer}");
        assert!(began.elapsed() >= BODY_TIMEOUT);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_lives() {
    with_server(1, async |address, _| {
        let request =
            format!("GET /log/seen?a=x HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
        let mut stream = connect(address, &request).await;
        let began = Instant::now();
        let mut text = String::new();
        while !text.contains("\n: alive\n") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the stream ended: {text}");
            text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        assert!(text.contains("data: \"x\"\n\n"), "{text}");
        assert!(began.elapsed() >= EVENT_KEEP_ALIVE);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_half_sent_head_does_not_hold_up_the_end() {
    let began = Instant::now();
    with_server(2, async |address, _| {
        let half = connect(address, "GET / HTTP/1.1\r\nHo").await;
        // One that is answered after it, so that the half one is surely accepted.
        rest(&mut connect(address, &get(address, "x")).await).await;
        tokio::spawn(async move { rest(&mut { half }).await });
    })
    .await;
    assert!(began.elapsed() < HEAD_TIMEOUT);
}

/// What is not small, and how many of it there is room for.
const LARGE_BYTES: usize = 2 * UNCOUNTED_BYTES_MAX;
const LARGE_AT_ONCE: usize = 16;

fn routes_with_room(log: Log) -> (watch::Sender<()>, Router) {
    let (stop, stopping) = watch::channel(());
    let answers = Answers::with_room(LARGE_AT_ONCE * LARGE_BYTES);
    (stop, routes::router(log, stopping, answers))
}

/// A request to the routes alone, whose answers nobody reads until the test does.
async fn ask_routes(router: &Router, target: &str, accept: &str) -> Response {
    let request = Request::builder().uri(target).header("accept", accept).body(axum::body::Body::empty());
    TowerToHyperService::new(router.clone()).call(request.unwrap()).await.unwrap()
}

fn large(argument: &str) -> String {
    format!("/log/seen?a={argument}&bytes={LARGE_BYTES}")
}

#[tokio::test]
async fn answers_that_nobody_reads_take_no_more_than_their_room() {
    let (_stop, router) = routes_with_room(Log::new());
    let mut unread = Vec::new();
    for number in 0..LARGE_AT_ONCE {
        let accept = if number % 2 == 0 { "text/event-stream" } else { "*/*" };
        let answer = ask_routes(&router, &large(&number.to_string()), accept).await;
        assert_eq!(answer.status(), 200, "{number}");
        unread.push(answer);
    }
    for accept in ["text/event-stream", "*/*"] {
        let refused = ask_routes(&router, &large("more"), accept).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
    }
    assert_eq!(ask_routes(&router, "/log/seen?a=small", "*/*").await.status(), 200);
    unread.pop();
    assert_eq!(ask_routes(&router, &large("more"), "*/*").await.status(), 200);
}

#[tokio::test]
async fn a_stream_that_was_told_holds_nothing_that_another_needs() {
    let (_stop, router) = routes_with_room(Log::new());
    let mut told = Vec::new();
    for number in 0..2 * LARGE_AT_ONCE {
        let answer = ask_routes(&router, &large(&number.to_string()), "text/event-stream").await;
        assert_eq!(answer.status(), 200, "{number}");
        let mut events = answer.into_body().into_data_stream();
        assert_eq!(events.next().await.unwrap().unwrap().len(), "data: \n\n".len() + LARGE_BYTES);
        told.push(events);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_finds_no_room_tells_the_newest_once_there_is() {
    let log = Log::new();
    let (_stop, router) = routes_with_room(log.clone());
    let answer = ask_routes(&router, "/log/seen?a=x&bytes=GROWN", "text/event-stream").await;
    let mut events = answer.into_body().into_data_stream();
    assert_eq!(events.next().await.unwrap().unwrap(), "data: \"x\"\n\n");
    let mut unread = Vec::new();
    for number in 0..LARGE_AT_ONCE {
        unread.push(ask_routes(&router, &large(&number.to_string()), "*/*").await);
    }
    log.published.send_modify(|version| *version += 1);
    // The clock goes on only when nothing else can: whoever could be told has been.
    while log.asked.lock().unwrap().iter().filter(|asked| *asked == "x").count() < 4 {
        assert_eq!(events.next().await.unwrap().unwrap(), ": alive\n\n");
    }
    unread.clear();
    let mut event = events.next().await.unwrap().unwrap();
    while event == ": alive\n\n" {
        event = events.next().await.unwrap().unwrap();
    }
    assert_eq!(event.len(), "data: \n\n".len() + LARGE_BYTES);
}

#[tokio::test]
async fn streams_of_one_view_send_one_buffer() {
    let log = Log::new();
    let (_stop, router) = routes_with_room(log.clone());
    let mut streams = Vec::new();
    for _ in 0..4 * LARGE_AT_ONCE {
        let answer = ask_routes(&router, &large("x"), "text/event-stream").await;
        assert_eq!(answer.status(), 200);
        streams.push(answer.into_body().into_data_stream());
    }
    let mut buffers = std::collections::BTreeSet::new();
    for stream in &mut streams {
        let event = stream.next().await.unwrap().unwrap();
        buffers.insert(event.as_ptr());
        assert_eq!(event.len(), "data: \n\n".len() + LARGE_BYTES);
    }
    assert_eq!(buffers.len(), 1);
}
