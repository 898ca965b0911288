//! quinn-proto with one stream of the same records, each behind its length, driven as quinn does.

use super::load::Load;
use super::network::Flow;
use crate::BenchError;
use bytes::{Bytes, BytesMut};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
    WriteError,
};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::version::TLS13;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As Cargo.lock has it.
pub const VERSION: &str = "0.11.19";

/// Datagrams that quinn asks for at once, to send them by segmentation offload (quinn's `MAX_TRANSMIT_SEGMENTS`).
const SEGMENTS: usize = 10;
/// What is written at once from the backlog.
const WRITE_BYTES: usize = 64 * 1024;
/// Payloads from here on are handed over as they are, not copied behind each other.
const SHARED_BYTES_MIN: usize = 4 * 1024;
/// Windows that no path here fills.
const WINDOW_BYTES: u32 = 64 * 1024 * 1024;
const NAME: &str = "receiver";

/// How congestion is controlled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Cubic,
    NewReno,
    Bbr,
}

/// What a path may carry.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub control: Control,
    /// Of datagrams: 1,200 are not exceeded; more are tried, up to this size.
    pub datagram_bytes_max: u16,
    /// An acknowledgement for so many packets at the least; none: for every second one.
    pub packets_an_acknowledgement: Option<u32>,
    /// Each record by a write of its own.
    pub writes_each: bool,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    begin: Instant,
    /// What the endpoint itself answers.
    answers: Vec<Vec<u8>>,
}

impl End {
    fn at(&self, now: u64) -> Instant {
        self.begin + Duration::from_micros(now)
    }

    fn handle(&mut self, now: u64, datagram: Vec<u8>) -> Result<(), BenchError> {
        let (at, mut answer) = (self.at(now), Vec::new());
        let data = BytesMut::from(Bytes::from(datagram));
        match self.endpoint.handle(at, self.remote, None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, at, &mut answer, None);
                let accepted = accepted.map_err(|error| BenchError::Process(error.cause.to_string()))?;
                self.connection = Some(accepted);
            }
            Some(DatagramEvent::Response(_)) => self.answers.push(answer),
            None => {}
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Event>, BenchError> {
        let Some((handle, connection)) = &mut self.connection else { return Ok(None) };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let event = connection.poll();
        if matches!(event, Some(Event::ConnectionLost { .. })) {
            // It gave up its own connection: what came until then counts.
            self.connection = None;
            return Ok(None);
        }
        Ok(event)
    }

    fn transmit(&mut self, now: u64, out: &mut dyn FnMut(Vec<u8>)) {
        self.answers.drain(..).for_each(&mut *out);
        let at = self.at(now);
        let Some((_, connection)) = &mut self.connection else { return };
        let mut buffer = Vec::new();
        while let Some(transmit) = connection.poll_transmit(at, SEGMENTS, &mut buffer) {
            match transmit.segment_size {
                None => out(std::mem::take(&mut buffer)),
                Some(size) => {
                    buffer[..transmit.size].chunks(size).for_each(|segment| out(segment.to_vec()));
                    buffer.clear();
                }
            }
        }
    }

    fn next_timeout(&mut self) -> Option<u64> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        // In whole microseconds, and never too early.
        Some(at.saturating_duration_since(self.begin).as_nanos().div_ceil(1_000) as u64)
    }
}

/// Reads records out of the bytes of a stream.
#[derive(Default)]
struct Reader {
    prefix: [u8; 4],
    prefix_bytes: usize,
    /// Of the record that is being read.
    offset: usize,
    left: usize,
    records: u64,
}

impl Reader {
    fn take(&mut self, load: &Load, mut bytes: &[u8]) -> Result<(), BenchError> {
        while let Some(first) = bytes.first() {
            if self.left == 0 {
                self.prefix[self.prefix_bytes] = *first;
                self.prefix_bytes += 1;
                bytes = &bytes[1..];
                if self.prefix_bytes == 1 << (self.prefix[0] >> 6) {
                    let length = self.prefix[1..self.prefix_bytes].iter();
                    let start = usize::from(self.prefix[0] & 0x3f);
                    self.left = length.fold(start, |length, byte| length << 8 | usize::from(*byte));
                    BenchError::unless("quinn", load.bytes, self.left)?;
                    (self.prefix_bytes, self.offset) = (0, 0);
                }
                continue;
            }
            let (there, rest) = bytes.split_at(self.left.min(bytes.len()));
            load.check("quinn", self.records + 1, self.offset, there)?;
            self.left -= there.len();
            self.offset += there.len();
            self.records += u64::from(self.left == 0);
            bytes = rest;
        }
        Ok(())
    }
}

/// A connection with records without end.
pub struct Quic {
    client: End,
    server: End,
    config: ClientConfig,
    settings: Settings,
    load: Load,
    prefix: Bytes,
    stream: Option<StreamId>,
    incoming: Option<StreamId>,
    /// The next record to be written.
    next: u64,
    chunks: Vec<Bytes>,
    written: usize,
    reader: Reader,
}

impl Quic {
    pub fn new(seed: u64, load: Load, settings: Settings) -> Result<Quic, BenchError> {
        let transport = Arc::new(transport(settings));
        let (mut config, mut server_config) = configs()?;
        config.transport_config(Arc::clone(&transport));
        server_config.transport_config(transport);
        let begin = Instant::now();
        let end = |server: Option<Arc<ServerConfig>>, number: u8| {
            let mut config = EndpointConfig::default();
            let mut rng_seed = [number; 32];
            rng_seed[..8].copy_from_slice(&seed.to_be_bytes());
            config.rng_seed(Some(rng_seed));
            End {
                endpoint: Endpoint::new(Arc::new(config), server, true, None),
                connection: None,
                remote: SocketAddr::from(([10, 1, 0, 3 - number], 4000)),
                begin,
                answers: Vec::new(),
            }
        };
        Ok(Quic {
            client: end(None, 1),
            server: end(Some(Arc::new(server_config)), 2),
            config,
            settings,
            prefix: prefix(load.bytes),
            load,
            stream: None,
            incoming: None,
            next: 1,
            chunks: Vec::new(),
            written: 0,
            reader: Reader::default(),
        })
    }

    /// Makes the next writes of the backlog.
    fn prepare(&mut self) {
        self.chunks.clear();
        self.written = 0;
        let record = self.prefix.len() + self.load.bytes;
        let records = if self.settings.writes_each { 1 } else { WRITE_BYTES.div_ceil(record) };
        if self.load.bytes >= SHARED_BYTES_MIN {
            for _ in 0..records {
                let payload = Bytes::from_owner(Arc::clone(self.load.payload(self.next)));
                self.chunks.extend([self.prefix.clone(), payload]);
                self.next += 1;
            }
            return;
        }
        let mut bytes = Vec::with_capacity(records * record);
        for _ in 0..records {
            bytes.extend_from_slice(&self.prefix);
            bytes.extend_from_slice(self.load.payload(self.next));
            self.next += 1;
        }
        self.chunks.push(bytes.into());
    }

    /// Writes until the stream takes no more.
    fn write(&mut self) -> Result<(), BenchError> {
        let Some(stream) = self.stream else { return Ok(()) };
        loop {
            if self.written == self.chunks.len() {
                self.prepare();
            }
            let Some((_, connection)) = &mut self.client.connection else { return Ok(()) };
            match connection.send_stream(stream).write_chunks(&mut self.chunks[self.written..]) {
                Ok(written) => self.written += written.chunks,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(BenchError::Process(format!("quinn: {error}"))),
            }
        }
    }

    fn read(&mut self) -> Result<(), BenchError> {
        let failed = |error: String| BenchError::Process(format!("quinn: {error}"));
        let (Some(stream), Some((_, connection))) = (self.incoming, &mut self.server.connection) else {
            return Ok(());
        };
        let mut stream = connection.recv_stream(stream);
        let mut chunks = stream.read(true).map_err(|error| failed(error.to_string()))?;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.reader.take(&self.load, &chunk.bytes)?;
        }
        let _ = chunks.finalize();
        Ok(())
    }

    fn happen_at_server(&mut self) -> Result<(), BenchError> {
        let mut readable = false;
        while let Some(event) = self.server.poll()? {
            if matches!(event, Event::Stream(StreamEvent::Opened { .. }))
                && let Some((_, connection)) = &mut self.server.connection
            {
                self.incoming = connection.streams().accept(Dir::Uni).or(self.incoming);
            }
            readable |=
                matches!(event, Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }));
        }
        if readable { self.read() } else { Ok(()) }
    }

    fn happen_at_client(&mut self) -> Result<(), BenchError> {
        let mut writable = false;
        while let Some(event) = self.client.poll()? {
            if matches!(event, Event::Connected)
                && let Some((_, connection)) = &mut self.client.connection
            {
                self.stream = connection.streams().open(Dir::Uni);
                writable = true;
            }
            writable |= matches!(event, Event::Stream(StreamEvent::Writable { .. }));
        }
        if writable { self.write() } else { Ok(()) }
    }
}

impl Flow for Quic {
    fn start(&mut self, now: u64) -> Result<(), BenchError> {
        let (at, remote) = (self.client.at(now), self.client.remote);
        let connected = self.client.endpoint.connect(at, self.config.clone(), remote, NAME);
        self.client.connection = Some(connected.map_err(|error| BenchError::Process(error.to_string()))?);
        Ok(())
    }

    fn handle(&mut self, now: u64, at_receiver: bool, datagram: Vec<u8>) -> Result<(), BenchError> {
        let end = if at_receiver { &mut self.server } else { &mut self.client };
        end.handle(now, datagram)
    }

    fn transmit(&mut self, now: u64, out: &mut dyn FnMut(bool, Vec<u8>)) -> Result<(), BenchError> {
        self.happen_at_server()?;
        self.server.transmit(now, &mut |datagram| out(false, datagram));
        self.happen_at_client()?;
        self.client.transmit(now, &mut |datagram| out(true, datagram));
        Ok(())
    }

    fn next_timeout(&mut self) -> Option<u64> {
        [self.client.next_timeout(), self.server.next_timeout()].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: u64) -> Result<(), BenchError> {
        for end in [&mut self.client, &mut self.server] {
            let at = end.at(now);
            if let (true, Some((_, connection))) =
                (end.next_timeout().is_some_and(|due| due <= now), &mut end.connection)
            {
                connection.handle_timeout(at);
            }
        }
        Ok(())
    }

    fn delivered(&self) -> u64 {
        self.reader.records
    }
}

/// A length as a number of variable length (RFC 9000, 16).
fn prefix(length: usize) -> Bytes {
    let bytes = (length as u32).to_be_bytes();
    match length {
        0..=0x3f => vec![bytes[3]],
        0x40..=0x3fff => vec![bytes[2] | 0x40, bytes[3]],
        _ => vec![bytes[0] | 0x80, bytes[1], bytes[2], bytes[3]],
    }
    .into()
}

fn transport(settings: Settings) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW_BYTES);
    transport.stream_receive_window(window).receive_window(window).send_window(u64::from(WINDOW_BYTES));
    transport.max_idle_timeout(None);
    transport.mtu_discovery_config(None);
    if settings.datagram_bytes_max > 1_200 {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(settings.datagram_bytes_max);
        transport.mtu_discovery_config(Some(discovery));
    }
    if let Some(packets) = settings.packets_an_acknowledgement {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(VarInt::from_u32(packets - 1));
        transport.ack_frequency_config(Some(frequency));
    }
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match settings.control {
        Control::Cubic => Arc::new(CubicConfig::default()),
        Control::NewReno => Arc::new(NewRenoConfig::default()),
        Control::Bbr => Arc::new(BbrConfig::default()),
    };
    transport.congestion_controller_factory(factory);
    transport
}

/// TLS 1.3 by AWS-LC, with a certificate made for the occasion.
fn configs() -> Result<(ClientConfig, ServerConfig), BenchError> {
    let failed = |error: &dyn std::fmt::Display| BenchError::Process(format!("quinn's certificate: {error}"));
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).map_err(|error| failed(&error))?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(|error| failed(&error))?;
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = QuicClientConfig::try_from(client).map_err(|error| failed(&error))?;
    let server = QuicServerConfig::try_from(server).map_err(|error| failed(&error))?;
    Ok((ClientConfig::new(Arc::new(client)), ServerConfig::with_crypto(Arc::new(server))))
}
