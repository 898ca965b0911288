//! What the engine's tests share.

use sealing::NodeId;

pub const ME: NodeId = NodeId([9; 32]);
#[allow(dead_code, reason = "not every test has a peer")]
pub const PEER: NodeId = NodeId([8; 32]);

/// A JSON object of ints and texts as the bytes of a send's arguments, written here by hand from the format's page:
/// version 1, a count, then names, tags (2 int, 3 text) and values.
#[allow(dead_code, reason = "not every test sends")]
pub fn arguments_of(json: &str) -> Vec<u8> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap();
    let mut bytes = vec![1, object.len() as u8];
    let text = |text: &str, bytes: &mut Vec<u8>| {
        assert!(text.len() < 128);
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    };
    for (name, value) in &object {
        text(name, &mut bytes);
        match value {
            serde_json::Value::Number(number) => {
                let number = number.as_i64().unwrap();
                assert!((0..64).contains(&number));
                bytes.extend_from_slice(&[2, (number * 2) as u8]);
            }
            serde_json::Value::String(value) => {
                bytes.push(3);
                text(value, &mut bytes);
            }
            other => panic!("not in these tests: {other}"),
        }
    }
    bytes
}
