use sayso_core::limits::LINE_BYTES_MAX;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end. Bytes that are not UTF-8 are replaced; such a line is no JSON anyway.
    Text(String),
    /// A line over the limit; nothing more can be read.
    TooLong,
    /// The peer has closed its side.
    End,
}

/// Reads lines with a bound.
pub struct LineReader<R> {
    peer: BufReader<R>,
    line_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `peer`.
    pub fn new(peer: R) -> Self {
        Self { peer: BufReader::new(peer), line_bytes_max: LINE_BYTES_MAX }
    }

    /// The next line that is not blank.
    pub async fn next(&mut self) -> Line {
        loop {
            match read_line(&mut self.peer, self.line_bytes_max).await {
                Line::Text(text) if text.trim().is_empty() => {}
                line => return line,
            }
        }
    }
}

async fn read_line(peer: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> Line {
    let mut line = Vec::new();
    loop {
        let Ok(available) = peer.fill_buf().await else { return Line::End };
        if available.is_empty() {
            // A last line without its end was cut off on the way: half a message is no message.
            return Line::End;
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > bytes_max {
            return Line::TooLong;
        }
        line.extend(available.iter().take(taken));
        peer.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Line::Text(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_a_cut_off_one_is_none() {
        let mut reader = LineReader { peer: BufReader::new(&b"one\r\n\n  \ntwo\nhalf"[..]), line_bytes_max: 8 };
        assert_eq!(reader.next().await, Line::Text("one\r".to_owned()));
        assert_eq!(reader.next().await, Line::Text("two".to_owned()));
        assert_eq!(reader.next().await, Line::End);
        let mut reader = LineReader { peer: BufReader::new(&b"123456789\n"[..]), line_bytes_max: 8 };
        assert_eq!(reader.next().await, Line::TooLong);
    }
}
