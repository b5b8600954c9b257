//! Sessions with Pods: commands that echo their words and their input, and ports that echo.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Message;

use super::channels::{Channels, Received};
use super::{SessionEnd, Socket, send, spdy};
use crate::verbs::subresources::kubelet::Command;

/// Longest silence of a client; upstream's for streams.
pub(super) const IDLE: Duration = Duration::from_secs(4 * 3600);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Byte by which a terminal ends the input.
const END_OF_INPUT: u8 = 4;

/// A session with a Pod, in a subprotocol.
#[derive(Debug)]
pub(crate) enum PodExchange {
    /// A command.
    Command(Command, Channels),
    /// A command that ends at once, with a failure.
    Failed(Command, Channels, Value),
    /// Ports.
    Ports(Vec<u16>, Channels),
    /// Ports within a tunnel.
    Tunnel,
}

/// Runs a session to the end.
pub(super) async fn run(socket: &mut Socket, talk: PodExchange) -> SessionEnd {
    let done = match talk {
        PodExchange::Command(command, channels) => {
            command_session(socket, &command, channels).await
        }
        PodExchange::Failed(command, channels, status) => {
            failed_session(socket, &command, channels, &status).await
        }
        PodExchange::Ports(ports, channels) => ports_session(socket, &ports, channels).await,
        PodExchange::Tunnel => spdy::run(socket).await,
    };
    done.err().unwrap_or(SessionEnd::Done)
}

/// Runs a command: output, input and end.
async fn command_session(
    socket: &mut Socket,
    command: &Command,
    channels: Channels,
) -> Result<(), SessionEnd> {
    greet(socket, command, channels).await?;
    if command.stdout && !command.output.is_empty() {
        send(socket, channels.message(STDOUT, command.output.as_bytes())).await?;
    }
    if command.stdin {
        echo(socket, command, channels).await?;
    }
    send_end(socket, channels, &command.status()).await
}

/// Echoes the input of a command until it ends.
async fn echo(
    socket: &mut Socket,
    command: &Command,
    channels: Channels,
) -> Result<(), SessionEnd> {
    loop {
        match receive(socket, channels).await? {
            Received::Close(STDIN) => return Ok(()),
            Received::Data(STDIN, data) => {
                if command.stdout {
                    send(socket, channels.message(STDOUT, &data)).await?;
                }
                if command.tty && data.contains(&END_OF_INPUT) {
                    return Ok(());
                }
            }
            // The size of the terminal, among others.
            _ => {}
        }
    }
}

/// Ends a command that could not be started.
async fn failed_session(
    socket: &mut Socket,
    command: &Command,
    channels: Channels,
    status: &Value,
) -> Result<(), SessionEnd> {
    greet(socket, command, channels).await?;
    send_end(socket, channels, status).await
}

/// Sends an empty message, which tells the client that the session has begun.
async fn greet(
    socket: &mut Socket,
    command: &Command,
    channels: Channels,
) -> Result<(), SessionEnd> {
    let channel = match command {
        Command { stdout: true, .. } => STDOUT,
        Command { stderr: true, .. } => STDERR,
        _ => ERROR,
    };
    send(socket, channels.message(channel, &[])).await
}

/// Sends the exit status of a command, in the channel's form.
async fn send_end(
    socket: &mut Socket,
    channels: Channels,
    status: &Value,
) -> Result<(), SessionEnd> {
    match channels.end(status) {
        Some(text) => send(socket, channels.message(ERROR, text.as_bytes())).await,
        None => Ok(()),
    }
}

/// Echoes on each port until the client leaves. A port has two channels: data and errors.
async fn ports_session(
    socket: &mut Socket,
    ports: &[u16],
    channels: Channels,
) -> Result<(), SessionEnd> {
    let data_channels = (0_u8..).step_by(2);
    for (channel, port) in data_channels.zip(ports) {
        for channel in [channel, channel + 1] {
            send(socket, channels.message(channel, &port.to_le_bytes())).await?;
        }
    }
    loop {
        if let Received::Data(channel, data) = receive(socket, channels).await?
            && channel % 2 == 0
            && usize::from(channel / 2) < ports.len()
        {
            send(socket, channels.message(channel, &data)).await?;
        }
    }
}

/// Waits for a message of the client.
async fn receive(socket: &mut Socket, channels: Channels) -> Result<Received, SessionEnd> {
    match timeout(IDLE, socket.next()).await {
        Ok(None | Some(Ok(Message::Close(_)))) => Err(SessionEnd::Closed),
        Ok(Some(Ok(message))) => Ok(channels.read(message)),
        Ok(Some(Err(error))) => Err(error.into()),
        Err(_) => Err(SessionEnd::Done),
    }
}
