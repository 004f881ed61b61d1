//! A proxy that can lose an answer after the server has given it, and that counts what it has passed on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Default)]
struct Counts {
    asked: Vec<String>,
    answered: Vec<String>,
    open: usize,
    accepted: usize,
}

#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    counts: Arc<watch::Sender<Counts>>,
    losing: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub async fn before(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            counts: Arc::new(watch::channel(Counts::default()).0),
            losing: Arc::default(),
        };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let proxy = accepting.clone();
                proxy.counts.send_modify(|counts| {
                    counts.open += 1;
                    counts.accepted += 1;
                });
                tokio::spawn(async move {
                    proxy.pass(client, upstream).await;
                    proxy.counts.send_modify(|counts| counts.open -= 1);
                });
            }
        });
        proxy
    }

    /// The next answer to a path with `part` in it is lost on its way.
    pub fn lose(&self, part: &str) {
        self.losing.lock().unwrap().push(part.to_owned());
    }

    /// How many requests with `part` in their path were answered.
    pub fn answered(&self, part: &str) -> usize {
        count(&self.counts.borrow().answered, part)
    }

    /// How many connections were made.
    pub fn accepted(&self) -> usize {
        self.counts.borrow().accepted
    }

    /// Returns once `times` requests with `part` in their path were answered.
    pub async fn until_answered(&self, part: &str, times: usize) {
        self.until(|counts| count(&counts.answered, part) >= times).await;
    }

    /// Returns once a request with `part` in its path was passed on.
    pub async fn until_asked(&self, part: &str) {
        self.until(|counts| count(&counts.asked, part) > 0).await;
    }

    /// Returns once nobody is connected.
    pub async fn until_left(&self) {
        self.until(|counts| counts.open == 0).await;
    }

    async fn until(&self, is_so: impl Fn(&Counts) -> bool) {
        self.counts.subscribe().wait_for(|counts| is_so(counts)).await.unwrap();
    }

    /// Passes requests on one by one until either side is gone.
    async fn pass(&self, mut client: TcpStream, upstream: SocketAddr) {
        let Ok(mut server) = TcpStream::connect(upstream).await else { return };
        while let Some((head, request)) = message(&mut client).await {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            if server.write_all(&request).await.is_err() {
                return;
            }
            self.counts.send_modify(|counts| counts.asked.push(path.clone()));
            // The client may give up while it waits.
            let mut gone = [0; 1];
            let answer = tokio::select! {
                answer = message(&mut server) => answer,
                _ = client.peek(&mut gone) => None,
            };
            let Some((_, answer)) = answer else { return };
            let is_lost = {
                let mut losing = self.losing.lock().unwrap();
                let at = losing.iter().position(|part| path.contains(part.as_str()));
                at.map(|at| losing.remove(at)).is_some()
            };
            if is_lost || client.write_all(&answer).await.is_err() {
                return;
            }
            self.counts.send_modify(|counts| counts.answered.push(path));
        }
    }
}

fn count(paths: &[String], part: &str) -> usize {
    paths.iter().filter(|path| path.contains(part)).count()
}

/// The next message: its head, and all its bytes.
async fn message(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            let rest = (end + length.unwrap_or(0)).saturating_sub(bytes.len());
            let mut body = vec![0; rest];
            stream.read_exact(&mut body).await.ok()?;
            bytes.extend(body);
            return Some((head, bytes));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
