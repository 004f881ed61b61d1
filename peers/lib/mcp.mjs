// The official TypeScript client over stdio, and the servers it is put in front of.
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { baseEnv } from "./program.mjs";
import { SAYSO } from "./sayso.mjs";

/** The reference server, with every field kind of a form. */
export const EVERYTHING = {
  command: process.execPath,
  args: [fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js")), "stdio"],
};

/** The same server behind `sayso gateway`. */
export function behindGateway(data, name, server, options = []) {
  const args = ["gateway", "--data", data, "--name", name, ...options, "--", server.command, ...server.args];
  return { command: SAYSO, args };
}

/**
 * Connects to a stdio server; both end with the test.
 * @param onElicit answers `elicitation/create`: its params in, an ElicitResult out. Without it the client declares no
 *   elicitation capability.
 * @param protocolVersion the only version offered; the client's own list if absent.
 * @returns the client, its transport, and the messages that crossed it after `initialize`, in order
 */
export async function connect(t, server, { onElicit, protocolVersion } = {}) {
  const capabilities = onElicit ? { elicitation: { form: {}, url: {} } } : {};
  const supportedProtocolVersions = protocolVersion && [protocolVersion];
  const client = new Client({ name: "sayso-peers", version: "0.0.0" }, { capabilities, supportedProtocolVersions });
  if (onElicit) client.setRequestHandler("elicitation/create", (request) => onElicit(request.params));

  const transport = new StdioClientTransport({ ...server, env: baseEnv(), stderr: "ignore" });
  t.after(() => client.close());
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
  return result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
}
