//! The command `sayso`: arguments, wiring, exit codes and terminal forms. It has no rules of its own: what may be asked
//! and answered is decided by the library, which every other surface uses too.

mod account;
mod answering;
mod args;
mod commands;
mod credential;
mod data_folder;
mod demo;
mod error;
mod exit;
mod output;
mod plan_file;
mod remote;
mod render;
mod session;
mod stop;
mod store;
mod terminal_form;
mod typed;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::error::CommandError;
use crate::exit::Exit;

/// A cycle of a round makes and drops some hundreds of small texts on several threads, and is a tenth faster with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let json = args.command.is_json();
    match run(args) {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            output::error(&error, json);
            error.exit().into()
        }
    }
}

fn run(args: Args) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CommandError::Runtime)?;
    let done = runtime.block_on(commands::run(args));
    // A read of standard input cannot be taken back; waiting for it would keep a gateway whose client stays connected.
    runtime.shutdown_background();
    done
}

/// A command line that cannot be read, or a page of help that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help that nobody reads any more is no failure.
        let _ = error.print();
        return Exit::Done.into();
    }
    if std::env::args_os().any(|arg| arg == "--json") {
        let message = error.kind().to_string();
        let help = error.render().to_string();
        output::error(&CommandError::Usage { message, help }, true);
    } else {
        let _ = error.print();
    }
    Exit::Usage.into()
}
