//! What the fuzz targets need to come behind keys: any frames, rightly sealed by a peer. It is there only under
//! `--cfg fuzzing`.

use sealing::NodeId;

use crate::Endpoint;

/// A packet of any frames, as this endpoint would send it to the peer; none without a session.
pub fn packet(endpoint: &mut Endpoint, peer: NodeId, frames: &[u8]) -> Option<Vec<u8>> {
    let link = endpoint.link_mut(peer)?;
    let which = link.speaking()?;
    link.session_mut(which)?.seal(frames).map(|(_, bytes)| bytes)
}

/// A hail of any frames.
pub fn hail(endpoint: &mut Endpoint, peer: NodeId, frames: &[u8]) -> Option<Vec<u8>> {
    let link = endpoint.link_mut(peer)?;
    let which = link.speaking()?;
    link.session_mut(which)?.seal_hail(frames).map(|(_, bytes)| bytes)
}
