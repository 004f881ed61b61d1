// An MCP server that takes its question back. `ask` elicits and waits; `withdraw` cancels what `ask` is waiting for, and
// `ask` then fails, as it does in a server whose wait for an answer is over.
import { createInterface } from "node:readline";

const TOOLS = ["ask", "withdraw"].map((name) => ({ name, inputSchema: { type: "object" } }));
const FORM = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const QUESTION = "question-1";
let asking;

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function say(id, text, isError = false) {
  send({ id, result: { content: [{ type: "text", text }], isError } });
}

function call(id, name) {
  if (name === "ask") {
    asking = id;
    send({ id: QUESTION, method: "elicitation/create", params: { message: "Which city?", requestedSchema: FORM } });
    return;
  }
  send({ method: "notifications/cancelled", params: { requestId: QUESTION, reason: "nobody answered in time" } });
  say(asking, "Nobody answered in time.", true);
  say(id, "Withdrawn.");
}

function take({ id, method, params, result }) {
  if (method === "initialize") {
    const { protocolVersion } = params;
    send({
      id,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "withdrawing", version: "1" } },
    });
  } else if (method === "tools/list") {
    send({ id, result: { tools: TOOLS } });
  } else if (method === "tools/call") {
    call(id, params.name);
  } else if (id === QUESTION && result) {
    say(asking, `Answered: ${JSON.stringify(result)}`);
  } else if (id !== undefined && method) {
    send({ id, result: {} });
  }
}

createInterface({ input: process.stdin }).on("line", (line) => take(JSON.parse(line)));
