// What becomes of a paused call when somebody does not stay: the client gives up, is let go, or leaves; the server takes
// its question back or exits; the gateway is stopped.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";

import { EVERY_FIELD, rawResult } from "../lib/everything.mjs";
import { openHouse } from "../lib/house.mjs";
import {
  behindGateway,
  childrenOf,
  connect,
  EVERYTHING,
  heard,
  LineClient,
  overheard,
  textOf,
  WITHDRAWING,
} from "../lib/mcp.mjs";

const FORM = { name: "trigger-elicitation-request", arguments: {} };
const ACCEPTED = { elicitation: { action: "accept", content: EVERY_FIELD } };

function ask(client, options) {
  return client.callTool(FORM, options);
}

/** The calls that a server was sent. */
async function callsHeard(file) {
  return (await heard(file)).filter((message) => message.method === "tools/call");
}

describe("a paused call behind the gateway", { concurrency: 4 }, () => {
  test("a client that gives up and calls again gets the one result; the server ran once", async (t) => {
    const house = await openHouse(t);
    const file = join(house.data, "heard");
    const server = behindGateway(house.data, "everything", overheard(EVERYTHING, file));
    const { client, messages } = await connect(t, server);
    await assert.rejects(ask(client, { timeout: 2000 }), { code: "REQUEST_TIMEOUT" });
    const { round_id, execution_id } = await house.asked();
    assert.ok(messages.some(({ message }) => message.method === "notifications/cancelled"));
    const again = ask(client);
    assert.equal((await house.people.answer(round_id, ACCEPTED, { key: "k" })).status, 200);
    assert.deepEqual(rawResult(textOf(await again)).content, EVERY_FIELD);
    assert.equal((await house.over(round_id)).status, "resolved");
    assert.equal(house.events.count("round_created"), 1);
    assert.equal((await callsHeard(file)).length, 1);
    assert.ok(!(await heard(file)).some((message) => message.method === "notifications/cancelled"));
    const { body } = await house.people.get(`/v1/executions/${execution_id}/result?wait=10s`);
    assert.deepEqual(rawResult(textOf(body.result.result)).content, EVERY_FIELD);
  });

  test("an answer that comes while nobody waits is kept for the same call", async (t) => {
    const house = await openHouse(t);
    const file = join(house.data, "heard");
    const { client } = await connect(t, behindGateway(house.data, "everything", overheard(EVERYTHING, file)));
    const gone = new AbortController();
    const first = ask(client, { signal: gone.signal });
    const { round_id, execution_id } = await house.asked();
    gone.abort();
    await assert.rejects(first);
    await house.people.answer(round_id, ACCEPTED, { key: "k" });
    await house.events.first("execution_state", (event) => event.execution_id === execution_id);
    assert.deepEqual(rawResult(textOf(await ask(client))).content, EVERY_FIELD);
    assert.equal((await callsHeard(file)).length, 1);
  });

  test("a call held long enough says that it waits, and sayso_wait gets its result", async (t) => {
    const house = await openHouse(t);
    const server = behindGateway(house.data, "everything", EVERYTHING, ["--hold", "1"]);
    const { client } = await connect(t, server);
    const call = ask(client);
    const { round_id, execution_id } = await house.asked();
    const pending = await call;
    assert.ok(!pending.isError);
    assert.match(textOf(pending), /still waiting for a person to answer\. It was not denied and it has not run/);
    assert.match(textOf(pending), new RegExp(round_id));
    const { paused } = pending.structuredContent;
    assert.deepEqual(paused, {
      execution_id,
      tool_path: "everything:trigger-elicitation-request",
      message: "Please provide inputs for the following fields:",
      args: {},
    });
    const wait = { name: "sayso_wait", arguments: { execution_id: paused.execution_id } };
    const still = await client.callTool(wait);
    assert.equal(still.structuredContent.paused.execution_id, execution_id);
    const last = client.callTool(wait);
    assert.equal((await house.people.answer(round_id, ACCEPTED, { key: "k" })).status, 200);
    assert.deepEqual(rawResult(textOf(await last)).content, EVERY_FIELD);
  });

  test("a client that ends its input while paused leaves a result that another gateway waits for", async (t) => {
    const house = await openHouse(t);
    const leaving = new LineClient(t, behindGateway(house.data, "everything", EVERYTHING));
    await leaving.initialize();
    leaving.ask("tools/call", FORM).catch(() => {});
    const { round_id, execution_id } = await house.asked();
    leaving.program.closeInput();

    const { client } = await connect(t, behindGateway(house.data, "everything", EVERYTHING));
    const waiting = client.callTool({ name: "sayso_wait", arguments: { execution_id } });
    assert.equal((await house.people.answer(round_id, ACCEPTED, { key: "k" })).status, 200);
    assert.deepEqual(await leaving.program.end, { code: 0, signal: null });
    assert.equal((await house.over(round_id)).status, "resolved");
    assert.deepEqual(rawResult(textOf(await waiting)).content, EVERY_FIELD);
    const { body } = await house.people.get(`/v1/executions/${execution_id}/result`);
    assert.equal(body.execution.outcome.status, "completed");
    assert.deepEqual(rawResult(textOf(body.result.result)).content, EVERY_FIELD);
  });

  test("a server that exits while paused ends the call with words, and the next call runs", async (t) => {
    const house = await openHouse(t);
    const { client, transport } = await connect(t, behindGateway(house.data, "everything", EVERYTHING));
    const call = ask(client);
    const first = await house.asked();
    const [upstream] = await childrenOf(transport.pid);
    process.kill(upstream, "SIGKILL");
    const lost = await call;
    assert.equal(lost.isError, true);
    assert.match(textOf(lost), /the server everything ended \(signal: 9 \(SIGKILL\)\) while this call was open/);
    const { status, failure } = await house.over(first.round_id);
    assert.deepEqual([status, failure.code], ["failed", "recovery_unavailable"]);
    assert.match(failure.message, /before anybody answered/);
    const late = await house.people.answer(first.round_id, ACCEPTED, { key: "late" });
    assert.deepEqual([late.status, late.body.code], [409, "managed_input_state"]);
    assert.match(late.body.detail, /recovery_unavailable/);

    const next = ask(client);
    const second = await house.asked();
    assert.notEqual(second.execution_id, first.execution_id);
    assert.equal((await house.people.answer(second.round_id, ACCEPTED, { key: "k" })).status, 200);
    assert.deepEqual(rawResult(textOf(await next)).content, EVERY_FIELD);
  });

  test("a question that the server takes back goes on, and its answer is used when the call is made again", async (t) => {
    const house = await openHouse(t);
    const { client } = await connect(t, behindGateway(house.data, "withdrawing", WITHDRAWING));
    const call = client.callTool({ name: "ask", arguments: {} });
    const { round_id } = await house.asked();
    await client.callTool({ name: "withdraw", arguments: {} });
    assert.equal(textOf(await call), "Nobody answered in time.");
    const { status, failure } = await house.over(round_id);
    assert.deepEqual([status, failure.code], ["failed", "withdrawn"]);
    const late = await house.cli(["answer", round_id, "--field", "city=Pune"]);
    assert.equal(late.code, 5);
    assert.match(late.stderr, /withdrawn/);

    const later = await house.asked();
    assert.equal(later.delivery, "resumable");
    assert.ok(failure.message.includes(later.round_id), failure.message);
    assert.equal((await house.cli(["answer", later.round_id, "--field", "city=Pune"])).code, 0);
    const again = await client.callTool({ name: "ask", arguments: {} });
    assert.equal(textOf(again), 'Answered: {"action":"accept","content":{"city":"Pune"}}');
    assert.equal((await house.over(later.round_id)).status, "resolved");
    assert.equal(house.events.count("round_created"), 2);
  });

  test("a gateway that is stopped while paused says why its round ended", async (t) => {
    const house = await openHouse(t);
    const stopped = new LineClient(t, behindGateway(house.data, "everything", EVERYTHING));
    await stopped.initialize();
    const call = stopped.ask("tools/call", FORM);
    const { round_id, execution_id } = await house.asked();
    stopped.program.signal("SIGTERM");
    const { result } = JSON.parse(await call);
    assert.equal(result.isError, true);
    assert.match(textOf(result), /the gateway was stopped/);
    assert.deepEqual(await stopped.program.end, { code: 0, signal: null });
    const { status, failure } = await house.over(round_id);
    assert.deepEqual([status, failure.code], ["failed", "recovery_unavailable"]);
    assert.match(failure.message, /the gateway was stopped/);
    const { body } = await house.people.get(`/v1/executions/${execution_id}`);
    assert.equal(body.outcome.status, "failed");
  });
});
