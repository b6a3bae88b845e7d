//! The body of a request, as it comes.

use crate::abi::Code;
use crate::host::Host;
use std::io;

/// Reads the body of the request as it comes: see [`Context::body_reader`](crate::Context::body_reader).
pub struct BodyReader<'a>(pub(crate) &'a dyn Host);

impl io::Read for BodyReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        self.0.read(into).map_err(|why| {
            let (kind, text) = match why.code {
                Code::TooLarge => (io::ErrorKind::InvalidData, "it is larger than the route allows"),
                Code::Deadline => (io::ErrorKind::TimedOut, "it arrives too slowly"),
                Code::Unavailable => {
                    (io::ErrorKind::UnexpectedEof, "the client has ended the connection, or what it sends is not valid")
                }
                _ => return io::Error::new(io::ErrorKind::Other, why),
            };
            io::Error::new(kind, format!("read the body of the request: {}", text))
        })
    }
}
