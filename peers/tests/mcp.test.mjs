// The official client at /mcp of `sayso serve`: it asks, waits, learns verdicts, and comes back after a restart.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { atEnd } from "../lib/ending.mjs";
import { openHouse } from "../lib/house.mjs";
import { textOf } from "../lib/mcp.mjs";

const QUESTIONS = {
  questions: [
    { question: "Which target?", header: "Target", options: [{ label: "staging" }, { label: "live" }] },
    { question: "Anything else?" },
  ],
};

/** The client, connected with the agent's token. */
async function connected(t, house, { secret = house.agent.secret, options = {} } = {}) {
  const client = new Client({ name: "sayso-peers", version: "0.0.0" }, options);
  const requestInit = { headers: { authorization: `Bearer ${secret}` } };
  const transport = new StreamableHTTPClientTransport(new URL(`${house.address}/mcp`), { requestInit });
  atEnd(t, () => client.close());
  await client.connect(transport);
  return { client, transport };
}

function answer(house, round) {
  const responses = {
    q0: { action: "accept", content: { answer: ["staging"] } },
    q1: { action: "accept", content: { answer: ["no"] } },
  };
  return house.people.answer(round.round_id, responses, { key: "k" });
}

describe("the official client over streamable HTTP", { concurrency: 3 }, () => {
  test("it lists the tools, asks a person, and gets the answers", async (t) => {
    const house = await openHouse(t);
    const { client, transport } = await connected(t, house);
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["ask_user", "sayso_wait", "resume"],
    );
    await client.ping();
    const calling = client.callTool({ name: "ask_user", arguments: QUESTIONS });
    const round = await house.asked();
    assert.equal(round.requests.q0.question, "Target: Which target?");
    assert.equal((await answer(house, round)).status, 200);
    const result = await calling;
    assert.deepEqual(result.structuredContent.answers, [
      { question: "Which target?", answer: ["staging"] },
      { question: "Anything else?", answer: ["no"] },
    ]);
    assert.match(textOf(result), /staging/);
    await transport.terminateSession();
  });

  test("a client that negotiates its version settles on one that is spoken", async (t) => {
    const house = await openHouse(t);
    const { client } = await connected(t, house, { options: { versionNegotiation: { mode: "auto" } } });
    assert.equal((await client.listTools()).tools.length, 3);
  });

  test("a call that is given up is asked once, and its answer is there for the next", async (t) => {
    const house = await openHouse(t);
    const { client } = await connected(t, house);
    const call = { name: "ask_user", arguments: QUESTIONS };
    const given = new AbortController();
    const calling = client.callTool(call, { signal: given.signal });
    const round = await house.asked();
    given.abort();
    await assert.rejects(calling);
    await answer(house, round);
    const result = await client.callTool({ name: "sayso_wait", arguments: { execution_id: round.execution_id } });
    assert.deepEqual(result.structuredContent.answers[0], { question: "Which target?", answer: ["staging"] });
    assert.equal(house.events.count("round_created"), 1);
  });

  test("resume reports the person's verdict on a gated call, whatever the agent says", async (t) => {
    const house = await openHouse(t);
    const { client } = await connected(t, house);
    const body = { session_id: "s", tool: "bank:transfer", arguments: { amount: 12 } };
    const gated = (await house.agents.call("POST", "/v1/gate", { body })).body;
    const { execution_id } = gated.paused;
    const resume = () => client.callTool({ name: "resume", arguments: { execution_id, approved: true } });
    const pending = (await resume()).structuredContent;
    assert.deepEqual([pending.resolved, pending.paused], [false, gated.paused]);
    assert.equal(pending.answer_at, `${house.address}/rounds/${gated.round.round_id}`);
    await house.people.answer(
      gated.round.round_id,
      { call: { action: "decline", reason: "too much" } },
      { key: "k", digest: gated.round.digest },
    );
    const denied = (await house.agents.call("POST", "/v1/gate", { body })).body;
    assert.equal(denied.verdict, "deny");
    const verdict = (await resume()).structuredContent;
    assert.deepEqual([verdict.resolved, verdict.approved], [true, false]);
  });

  test("a person's token does not ask, and no token gets nothing", async (t) => {
    const house = await openHouse(t);
    await assert.rejects(connected(t, house, { secret: house.person.secret }));
    await assert.rejects(connected(t, house, { secret: "sayso_agent_00" }));
  });
});
