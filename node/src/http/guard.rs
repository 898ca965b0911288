//! Who may ask at all.
//!
//! A node on loopback is within reach of every page in every browser on its machine, so a request must name us as its
//! host (else a name of the attacker's that resolves to 127.0.0.1 would make his page ours: DNS rebinding), and, when a
//! browser says where it comes from, must come from our own page. No answer carries a CORS header. Without tokens for
//! users, only this machine may ask; from another one the control token is needed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};

use super::problem::Problem;

/// The two ends of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Lets a request through, or says why not.
pub(super) fn admit<B>(request: &Request<B>, caller: Caller, token: &str) -> Result<(), Problem> {
    let headers = request.headers();
    let host = named_host(request)?;
    if !is_ours(&host, caller.local) {
        let message = format!(
            "this is {}, not {host}; requests for other hosts are refused, open it by its address",
            caller.local
        );
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "host", message));
    }
    check_origin(headers, &host)?;
    check_site(request)?;
    if !caller.remote.ip().to_canonical().is_loopback() && !is_authorized(headers, token) {
        let message = "from another machine the control token is needed: Authorization: Bearer TOKEN";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
    }
    Ok(())
}

/// The one host that the request names, in its `Host` and, if there, in its target.
fn named_host<B>(request: &Request<B>) -> Result<Authority, Problem> {
    let wrong = |why: &str| Problem::new(StatusCode::BAD_REQUEST, "host", why);
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(wrong("a request needs exactly one Host header"));
    };
    let host = Authority::try_from(host.as_bytes()).map_err(|_| wrong("the Host header is no host"))?;
    match request.uri().authority() {
        Some(target) if *target != host => Err(wrong("the request's target and its Host header differ")),
        _ => Ok(host),
    }
}

/// Whether a host is this machine's loopback or the address that the connection came to, with our port.
fn is_ours(host: &Authority, local: SocketAddr) -> bool {
    const HTTP_PORT: u16 = 80;
    let text = host.as_str();
    let port = match text.rsplit_once(':') {
        Some((_, digits)) if !digits.ends_with(']') => digits.parse().ok(),
        _ => Some(HTTP_PORT),
    };
    if port != Some(local.port()) || text.contains('@') {
        return false;
    }
    let name = host.host();
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    match literal.parse::<IpAddr>() {
        Ok(address) => {
            address == IpAddr::V4(Ipv4Addr::LOCALHOST)
                || address == IpAddr::V6(Ipv6Addr::LOCALHOST)
                || address.to_canonical() == local.ip().to_canonical()
        }
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// A request that says where it comes from must come from the very host it is for.
fn check_origin(headers: &HeaderMap, host: &Authority) -> Result<(), Problem> {
    let ours = format!("http://{host}");
    for origin in headers.get_all(header::ORIGIN) {
        if !origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes()) {
            let message = format!(
                "requests from other origins are refused; this one is from {}, here is {ours}",
                String::from_utf8_lossy(origin.as_bytes())
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, "origin", message));
        }
    }
    Ok(())
}

/// What browsers add where they send no `Origin` (W3C Fetch Metadata): only our own page and the person at the address
/// bar may ask; a link elsewhere may lead to a page of ours, in a window of its own.
fn check_site<B>(request: &Request<B>) -> Result<(), Problem> {
    let headers = request.headers();
    let is = |name: HeaderName, value: &str| headers.get(name).is_some_and(|found| found == value);
    let Some(site) = headers.get(SEC_FETCH_SITE) else { return Ok(()) };
    if site == "same-origin" || site == "none" {
        return Ok(());
    }
    let navigates = is(SEC_FETCH_MODE, "navigate") && is(SEC_FETCH_DEST, "document");
    if navigates && request.method() == Method::GET && is_page(request.uri().path()) {
        return Ok(());
    }
    let message = "requests from other sites are refused";
    Err(Problem::new(StatusCode::FORBIDDEN, "origin", message))
}

/// Whether a link on another page may lead to a path: `/`, `/{app}` and `/{app}/` are documents that run only our own
/// scripts.
fn is_page(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let app = rest.strip_suffix('/').unwrap_or(rest);
    app != "-" && !app.contains('/')
}

/// Whether the request carries the control token. Takes the same time wherever a wrong one differs.
pub(super) fn is_authorized(headers: &HeaderMap, token: &str) -> bool {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Some((scheme, given)) = value.as_bytes().split_at_checked("Bearer ".len()) else { return false };
    if token.is_empty() || !scheme.eq_ignore_ascii_case(b"Bearer ") || given.len() != token.len() {
        return false;
    }
    let differing =
        given.iter().zip(token.as_bytes()).fold(0, |bits, (a, b)| std::hint::black_box(bits | (a ^ b)));
    differing == 0
}

/// What every answer says to the browser that shows it.
pub(super) fn protect(headers: &mut HeaderMap) {
    const FIXED: [(HeaderName, &str); 5] = [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // State changes with every event; pages and styles come from memory and are as quick as a cache.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    /// The local and the remote end, the named host, the token: whether it is let in, or the status.
    #[test]
    fn from_here_and_from_elsewhere() {
        for (local, remote, host, token, expected) in [
            ("127.0.0.1:80", "127.0.0.1:5", "localhost", "", 200),
            ("127.0.0.1:80", "127.0.0.1:5", "127.0.0.1", "", 200),
            ("127.0.0.1:80", "127.0.0.1:5", "[::1]", "", 200),
            ("127.0.0.1:80", "127.0.0.1:5", "evil.example", "", 421),
            ("127.0.0.1:80", "127.0.0.1:5", "", "", 400),
            ("[::1]:7000", "[::1]:5", "[::1]:7000", "", 200),
            ("[::1]:7000", "[::1]:5", "[::1]", "", 421),
            ("[::ffff:127.0.0.1]:7000", "[::ffff:127.0.0.1]:5", "127.0.0.1:7000", "", 200),
            ("192.0.2.1:7000", "192.0.2.9:5", "192.0.2.1:7000", "", 401),
            ("192.0.2.1:7000", "192.0.2.9:5", "192.0.2.1:7000", "Bearer other", 401),
            ("192.0.2.1:7000", "192.0.2.9:5", "192.0.2.1:7000", "Bearer right", 200),
            ("192.0.2.1:7000", "192.0.2.9:5", "192.0.2.2:7000", "Bearer right", 421),
            ("[::ffff:192.0.2.1]:7000", "[::ffff:192.0.2.9]:5", "192.0.2.1:7000", "Bearer right", 200),
        ] {
            let caller = Caller { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            let request = Request::builder()
                .uri("/notes/all")
                .header(header::HOST, host)
                .header(header::AUTHORIZATION, token)
                .body(())
                .unwrap();
            let status =
                admit(&request, caller, "right").map_or_else(|problem| problem.status.as_u16(), |()| 200);
            assert_eq!(status, expected, "{local} {remote} {host} {token}");
        }
    }

    #[test]
    fn an_empty_token_lets_nobody_in() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer "));
        assert!(!is_authorized(&headers, ""));
    }
}
