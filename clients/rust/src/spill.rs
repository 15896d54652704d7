//! The spill file: what waits for the service, outliving the process.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use prost::Message;
use prost::bytes::Buf;

use crate::types::AfterTurnRequest;

/// An open spill file: requests that could not be sent, each behind its length as a varint.
pub(crate) struct Spill {
    file: File,
}

impl Spill {
    /// Opens a spill file and reads what it holds. A last record that was cut off is taken away.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<AfterTurnRequest>)> {
        let data = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut entries = Vec::new();
        let mut rest = data.as_slice();
        let whole = loop {
            let position = data.len() - rest.len();
            let Some(record) = next_record(&mut rest) else { break position };
            let entry = AfterTurnRequest::decode(record).map_err(|_| {
                let problem = format!("no request at byte {position}: move it away to go on without what it holds");
                io::Error::new(ErrorKind::InvalidData, problem)
            })?;
            entries.push(entry);
        };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        file.set_len(whole as u64)?;
        Ok((Self { file }, entries))
    }

    /// Adds a request. It is on the disk when this returns.
    pub(crate) fn append(&mut self, entry: &AfterTurnRequest) -> io::Result<()> {
        let whole = self.file.metadata()?.len();
        let written = self.file.write_all(&entry.encode_length_delimited_to_vec());
        // Behind half a record nothing could be read again.
        written.and_then(|()| self.file.sync_data()).inspect_err(|_| _ = self.file.set_len(whole))
    }

    /// Leaves the file empty. Where that fails its records are sent again, which does no harm.
    pub(crate) fn clear(&mut self) {
        let _ = self.file.set_len(0);
    }
}

/// The next whole record, taken off `data`. None: there is none.
fn next_record<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *data;
    let length = prost::decode_length_delimiter(&mut rest).ok()?;
    if length > rest.remaining() {
        return None;
    }
    let (record, rest) = rest.split_at(length);
    *data = rest;
    Some(record)
}
