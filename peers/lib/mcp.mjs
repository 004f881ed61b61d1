// The official TypeScript client over stdio, and the servers that the tests speak to.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { atEnd } from "./ending.mjs";
import { baseEnv, Program } from "./program.mjs";
import { SAYSO } from "./sayso.mjs";

/** The reference server, with every field kind of a form. */
export const EVERYTHING = {
  command: process.execPath,
  args: [fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js")), "stdio"],
};

/**
 * The reference server over HTTP, on a port of its own; it ends with the test.
 * @returns its endpoint
 */
export async function everythingOverHttp(t) {
  const port = await freePort();
  const [path] = EVERYTHING.args;
  const server = new Program(t, EVERYTHING.command, [path, "streamableHttp"], { env: { PORT: String(port) } });
  await server.line(/listening on port/, { stream: "stderr" });
  return `http://127.0.0.1:${port}/mcp`;
}

/** A port that nobody listens on: the reference server does not say which one it was given. */
async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

/** The reference filesystem server, which may touch this folder and nothing else. */
export function filesystem(folder) {
  const program = import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js");
  return { command: process.execPath, args: [fileURLToPath(program), folder] };
}

/** A server that takes its question back. */
export const WITHDRAWING = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../servers/withdrawing.mjs", import.meta.url))],
};

/** A server behind `sayso gateway`. */
export function behindGateway(data, name, server, options = []) {
  const args = ["gateway", "--data", data, "--name", name, ...options, "--", server.command, ...server.args];
  return { command: SAYSO, args };
}

/**
 * Connects to a stdio server; both end with the test.
 * @param onElicit answers `elicitation/create`: its params in, an ElicitResult out. Without it the client declares no
 *   elicitation capability.
 * @param protocolVersion the only version offered; the client's own list if absent.
 * @param stderr `pipe` to read `transport.stderr`, which ends once every process that was started has ended.
 * @returns the client, its transport, and the messages that crossed it after `initialize`, in order
 */
export async function connect(t, server, { onElicit, protocolVersion, stderr = "ignore" } = {}) {
  const capabilities = onElicit ? { elicitation: { form: {}, url: {} } } : {};
  const supportedProtocolVersions = protocolVersion && [protocolVersion];
  const client = new Client({ name: "sayso-peers", version: "0.0.0" }, { capabilities, supportedProtocolVersions });
  if (onElicit) client.setRequestHandler("elicitation/create", (request) => onElicit(request.params));

  const transport = new StdioClientTransport({ ...server, env: baseEnv(), stderr });
  atEnd(t, () => client.close());
  await client.connect(transport);

  const messages = [];
  const deliver = transport.onmessage;
  transport.onmessage = (message) => {
    messages.push({ from: "server", message });
    deliver(message);
  };
  const send = transport.send.bind(transport);
  transport.send = (message) => {
    messages.push({ from: "client", message });
    return send(message);
  };
  return { client, transport, messages };
}

/** All text of a tool's result. */
export function textOf(result) {
  return result.content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}

/** A client that speaks in lines, for what the official one hides: the bytes, and the end of its standard input. */
export class LineClient {
  #next = 1;

  constructor(t, server) {
    this.program = new Program(t, server.command, server.args);
  }

  /** Says hello as a client that can be elicited, which is what the gateway says to the server in its place. */
  async initialize({ protocolVersion = "2025-11-25", capabilities = { elicitation: { form: {}, url: {} } } } = {}) {
    const clientInfo = { name: "sayso-peers", version: "0.0.0" };
    const answer = await this.ask("initialize", { protocolVersion, capabilities, clientInfo });
    this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return answer;
  }

  /** Sends a request. @returns the line that answers it, as it came. */
  ask(method, params) {
    const id = this.#next++;
    this.send({ jsonrpc: "2.0", id, method, params });
    return this.program.line((line) => isAnswer(line, id) && line);
  }

  send(message) {
    this.program.write(`${JSON.stringify(message)}\n`);
  }
}

function isAnswer(line, id) {
  const message = JSON.parse(line);
  return message.id === id && message.method === undefined;
}

/** `server` with every line that is sent to it kept in `file`. */
export function overheard(server, file) {
  return {
    command: "/bin/sh",
    args: ["-c", 'file=$1; shift; tee "$file" | exec "$@"', "sh", file, server.command, ...server.args],
  };
}

/** The messages that a server was sent, as `overheard` kept them. */
export async function heard(file) {
  const text = await readFile(file, "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** The processes that process `pid` has started and that still run. */
export async function childrenOf(pid) {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
}
