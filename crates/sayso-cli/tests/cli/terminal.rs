//! A pseudo-terminal with the command on it: what a person sees is read from it, what a person types is written to it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::folder::{Ended, Folder};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub const ENTER: &str = "\r";
pub const DOWN: &str = "\x1b[B";
pub const ESC: &str = "\x1b";
pub const CTRL_C: &str = "\x03";

pub struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<Vec<u8>>,
    screen: Vec<u8>,
    /// How much of the screen has been expected already.
    seen: usize,
}

impl Terminal {
    /// Starts the command with all three streams on a terminal.
    pub fn open(folder: &Folder, args: &[&str]) -> Self {
        Self::start(folder, args, None, None)
    }

    /// Starts it with other streams than the terminal's where they are given.
    pub fn start(folder: &Folder, args: &[&str], stdin: Option<Stdio>, stdout: Option<Stdio>) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 60, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let side = || Stdio::from(OpenOptions::new().read(true).write(true).open(path).unwrap());
        let mut command = folder.command(args);
        command.stdin(stdin.unwrap_or_else(side)).stdout(stdout.unwrap_or_else(side)).stderr(side());
        let child = command.spawn().unwrap();
        // The other side is open in the child only from here on, so that its end is seen.
        drop(command);
        let keys = File::from(master);
        let mut from = keys.try_clone().unwrap();
        let (send, shown) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // At the end of the child the kernel answers EIO.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, shown, screen: Vec::new(), seen: 0 }
    }

    /// Waits until the terminal shows `text`, after whatever was expected before.
    pub fn expect(&mut self, text: &str) -> &mut Self {
        loop {
            let screen = plain(&self.screen);
            if let Some(at) = screen.get(self.seen..).and_then(|rest| rest.find(text)) {
                self.seen += at + text.len();
                return self;
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(more) => self.screen.extend(more),
                Err(_) => panic!("the terminal never showed {text:?}:\n{screen}"),
            }
        }
    }

    pub fn type_keys(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the end; `stderr` is what the terminal showed.
    pub fn end(mut self) -> Ended {
        loop {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(more) => self.screen.extend(more),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it never ended:\n{}", plain(&self.screen)),
            }
        }
        let mut stdout = String::new();
        if let Some(mut piped) = self.child.stdout.take() {
            piped.read_to_string(&mut stdout).unwrap();
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Ended { code, stdout, stderr: plain(&self.screen) }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of a test that failed; one that ended is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command that asks nothing, as a person who pipes its result somewhere.
pub fn person(folder: &Folder, args: &[&str]) -> Ended {
    Terminal::start(folder, args, None, Some(Stdio::piped())).end()
}

/// The text without escape sequences and carriage returns.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\x1b' if chars.peek() == Some(&'[') => {
                chars.next();
                // A control sequence ends with a letter or one of a few signs.
                while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {}
            }
            '\x1b' => drop(chars.next()),
            '\r' => {}
            next => out.push(next),
        }
    }
    out
}
