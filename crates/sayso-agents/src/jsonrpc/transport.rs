//! The ways to a server: whoever speaks to one sees messages, and not what carries them.

use async_trait::async_trait;
use tokio::io::AsyncRead;

use super::http::HttpFault;
use super::{Launch as _, Line, LineReader, Program, Running};

/// A way to a server. Each conversation is one of its own: a process, or a session.
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// Begins a conversation. The error is a sentence for whoever asked.
    fn open(&self) -> Result<Conversation, String>;
}

/// The two ends of a conversation.
pub struct Conversation {
    /// What speaks to the server, and ends the conversation.
    pub sender: Box<dyn MessageSender>,
    /// What hears it.
    pub receiver: Box<dyn MessageReceiver>,
}

/// What speaks to a server.
#[async_trait]
pub trait MessageSender: Send + Sync {
    /// Sends a message, after those before it. One that cannot arrive is told of by the receiver.
    async fn send(&self, message: String);
    /// Ends the conversation as its transport has it, within a few seconds.
    async fn close(self: Box<Self>);
    /// Takes note that the server has ended the conversation, and says how.
    async fn ended(self: Box<Self>) -> String;
}

/// What hears a server.
#[async_trait]
pub trait MessageReceiver: Send {
    /// What comes next. Given up half-way, it may lose what it has read.
    async fn next(&mut self) -> Received;
}

/// What was heard.
#[derive(Debug)]
pub enum Received {
    /// A message, or what a server says where only messages belong.
    Message(String),
    /// A line over the limit; nothing more can be heard.
    TooLong,
    /// The server has ended the conversation.
    Ended,
    /// The conversation over HTTP cannot go on.
    Lost(HttpFault),
}

impl Transport for Program {
    fn open(&self) -> Result<Conversation, String> {
        let (running, lines) = self.launch()?.speak();
        Ok(Conversation { sender: Box::new(running), receiver: Box::new(lines) })
    }
}

#[async_trait]
impl MessageSender for Running {
    async fn send(&self, message: String) {
        Running::send(self, message).await;
    }

    async fn close(self: Box<Self>) {
        Running::close(*self).await;
    }

    async fn ended(self: Box<Self>) -> String {
        Running::ended(*self).await
    }
}

#[async_trait]
impl<R: AsyncRead + Send + Unpin> MessageReceiver for LineReader<R> {
    async fn next(&mut self) -> Received {
        match LineReader::next(self).await {
            Line::Text(line) => Received::Message(line),
            Line::TooLong => Received::TooLong,
            Line::End => Received::Ended,
        }
    }
}
