// Processes are killed at the worst moments, and many answer at once: nothing is lost, nothing delivered twice, and every
// round that ends says why.
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { describe, test } from "node:test";

import { EVERY_FIELD } from "../lib/everything.mjs";
import { Api, EventStream, openHouse, serve } from "../lib/house.mjs";
import { behindGateway, connect, EVERYTHING, heard, LineClient, overheard } from "../lib/mcp.mjs";
import { finished, sayso } from "../lib/sayso.mjs";

// The lease has to run out and then to be seen expired twice, each 30 s.
const SWEPT_LIMIT_MS = 100_000;
const ANSWERS = 50;

const ADDRESS = {
  kind: "form",
  message: "Where to?",
  schema: {
    type: "object",
    properties: { street: { type: "string" }, city: { type: "string" } },
    required: ["street"],
  },
};

function accepted(street) {
  return { address: { action: "accept", content: { street } } };
}

/** The problem that a command printed. */
function problemOf({ stderr }) {
  return JSON.parse(stderr.split("\n").find((line) => line.startsWith("{")));
}

describe("what is stored outlives its processes", { concurrency: 6 }, () => {
  test("an answer that was accepted but never delivered fails its round, with the reason", async (t) => {
    const house = await openHouse(t);
    const file = join(house.data, "heard");
    const gateway = new LineClient(t, behindGateway(house.data, "everything", overheard(EVERYTHING, file)));
    await gateway.initialize();
    gateway.ask("tools/call", { name: "trigger-elicitation-request", arguments: {} }).catch(() => {});
    const { round_id, execution_id } = await house.asked();
    gateway.program.signal("SIGSTOP");
    const responses = { elicitation: { action: "accept", content: EVERY_FIELD } };
    const answered = await house.people.answer(round_id, responses, { key: "k" });
    assert.deepEqual([answered.status, answered.body.status], [200, "response_validated"]);
    await gateway.program.kill();

    const failed = await house.events.first("failed", (event) => event.round_id === round_id, {
      limit: SWEPT_LIMIT_MS,
    });
    assert.equal(failed.body.code, "recovery_unavailable");
    const round = await house.people.round(round_id);
    assert.equal(round.status, "failed");
    assert.equal(round.answered.principal, "person ada");
    assert.match(round.failure.message, /^\S+ .*\S+$/);
    const { body: execution } = await house.people.get(`/v1/executions/${execution_id}`);
    assert.deepEqual([execution.lifecycle, execution.outcome.status], ["finished", "failed"]);
    assert.equal(execution.outcome.code, "recovery_unavailable");
    for (const key of ["k", "another"]) {
      const late = await house.people.answer(round_id, responses, { key });
      assert.deepEqual([late.status, late.body.code], [409, "managed_input_state"], key);
      assert.ok(late.body.detail.includes(round.failure.message), late.body.detail);
    }
    assert.deepEqual(
      (await heard(file)).filter((message) => message.result !== undefined),
      [],
    );
    assert.equal(house.events.count("failed"), 1);
  });

  test("a round is still pending after its server was killed; it is answered, and collected once", async (t) => {
    const house = await openHouse(t);
    const asked = await house.agents.ask({ address: ADDRESS }, { request_state: "opaque" });
    assert.equal(asked.status, "pending");
    await house.server.kill();

    const again = await serve(t, house.data);
    const people = new Api(again.address, house.person.secret);
    const agents = new Api(again.address, house.agent.secret);
    assert.deepEqual(await people.round(asked.round_id), asked);
    const waiting = agents.collect(asked.round_id, { key: "collect-1" });
    const answered = await people.answer(asked.round_id, accepted("1 Main Street"), { key: "k" });
    assert.equal(answered.status, 200);
    const collected = await waiting;
    assert.equal(collected.status, 200, JSON.stringify(collected.body));
    assert.equal(collected.body.round.status, "resolved");
    assert.equal(collected.body.request_state, "opaque");
    assert.deepEqual(collected.body.responses.address.content, { street: "1 Main Street" });

    await again.program.kill();
    const third = await serve(t, house.data);
    const later = new Api(third.address, house.agent.secret);
    const same = await later.collect(asked.round_id, { key: "collect-1" });
    assert.deepEqual([same.status, same.body.responses], [200, collected.body.responses]);
    const other = await later.collect(asked.round_id, { key: "collect-2" });
    assert.equal(other.status, 409, JSON.stringify(other.body));
    const events = await EventStream.open(t, third.address, house.person.secret);
    await events.first("resolved");
    assert.deepEqual(
      ["answered", "resolved", "failed"].map((kind) => events.count(kind)),
      [1, 1, 0],
    );
  });

  test("of 50 answers at once one wins, and 49 are told who", async (t) => {
    const house = await openHouse(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    const overHttp = async (number) => {
      const { status, body } = await house.people.answer(round_id, accepted(`${number} Main Street`), {
        key: `key-${number}`,
      });
      return status === 200 ? { round: body } : { problem: body };
    };
    const onTheCommandLine = async (number) => {
      const args = ["--field", `street=${number} Main Street`, "--key", `key-${number}`, "--json"];
      const ended = await house.cli(["answer", round_id, ...args]);
      if (ended.code === 0) return { round: JSON.parse(ended.stdout) };
      assert.equal(ended.code, 4, ended.stderr);
      return { problem: problemOf(ended) };
    };
    const numbers = Array.from({ length: ANSWERS }, (_, number) => number);
    const answer = (number) => (number % 2 === 0 ? overHttp(number) : onTheCommandLine(number));
    const outcomes = await Promise.all(numbers.map(answer));

    const winners = outcomes.filter(({ round }) => round);
    assert.equal(winners.length, 1);
    const { answered } = winners[0].round;
    const losers = outcomes.filter(({ problem }) => problem);
    assert.equal(losers.length, ANSWERS - 1);
    for (const { problem } of losers) {
      assert.equal(problem.code, "managed_input_conflict");
      assert.equal(problem.round, round_id);
      assert.deepEqual(problem.winner, answered);
    }
    const number = outcomes.indexOf(winners[0]);
    const { body } = await house.agents.collect(round_id, { key: "c" });
    assert.deepEqual(body.responses.address.content, { street: `${number} Main Street` });
    await house.events.first("resolved");
    assert.equal(house.events.count("answered"), 1);
    assert.equal(house.events.count("response_refused"), ANSWERS - 1);
  });

  test("the same answer under the same key is the same record, wherever it is sent and however often", async (t) => {
    const house = await openHouse(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    const first = await house.people.answer(round_id, accepted("1 Main Street"), { key: "k" });
    const second = await house.people.answer(round_id, accepted("1 Main Street"), { key: "k" });
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.deepEqual(second.body, first.body);
    const third = await house.cli(["answer", round_id, "--field", "street=1 Main Street", "--key", "k", "--json"]);
    assert.equal(third.code, 0, third.stderr);
    assert.deepEqual(JSON.parse(third.stdout), first.body);
    const other = await house.people.answer(round_id, accepted("2 Main Street"), { key: "k" });
    assert.deepEqual([other.status, other.body.code], [409, "managed_input_conflict"]);
    assert.equal(house.events.count("answered"), 1);
  });

  test("a command repeated word for word repeats nothing", async (t) => {
    const house = await openHouse(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    const command = ["answer", round_id, "--field", "street=1 Main Street", "--json"];
    const [first, second] = [await house.cli(command), await house.cli(command)];
    assert.deepEqual([first.code, second.code], [0, 0], second.stderr);
    assert.equal(second.stdout, first.stdout);
  });

  test("two servers over one folder see each other's questions and answers", async (t) => {
    const house = await openHouse(t);
    const other = await serve(t, house.data);
    const people = new Api(other.address, house.person.secret);
    const events = await EventStream.open(t, other.address, house.person.secret);
    const rounds = await Promise.all(Array.from({ length: 20 }, () => house.agents.ask({ address: ADDRESS })));
    const collected = rounds.map(({ round_id }) => house.agents.collect(round_id, { key: "c" }));
    for (const { round_id } of rounds) {
      await events.first("round_created", (event) => event.round_id === round_id);
      const { status } = await people.answer(round_id, accepted(round_id), { key: "k" });
      assert.equal(status, 200);
    }
    for (const [at, { body }] of (await Promise.all(collected)).entries()) {
      assert.deepEqual(body.responses.address.content, { street: rounds[at].round_id });
    }
    await events.first("resolved", (event) => event.round_id === rounds.at(-1).round_id);
  });

  test("the server process goes with its gateway, even where it waits for an answer", async (t) => {
    const house = await openHouse(t);
    // As `npx` does it: the server is a child of what the gateway starts.
    const launched = { command: "/bin/sh", args: ["-c", '"$@"; :', "sh", EVERYTHING.command, ...EVERYTHING.args] };
    const server = behindGateway(house.data, "everything", launched);
    const { client, transport } = await connect(t, server, { stderr: "pipe" });
    client.callTool({ name: "trigger-elicitation-request", arguments: {} }).catch(() => {});
    const { round_id } = await house.asked();
    const everybodyGone = once(transport.stderr.resume(), "end");
    // The client closes the gateway's input, waits 2 s, sends SIGTERM, waits 2 s, and kills it.
    await client.close();
    assert.equal((await house.over(round_id)).failure.code, "recovery_unavailable");
    await everybodyGone;
  });

  test("a folder that two commands create at once is one folder", async (t) => {
    const house = await openHouse(t);
    const data = join(house.data, "new", "folder");
    const commands = Array.from({ length: 4 }, () => sayso(t, data, ["serve", "--listen", "127.0.0.1:0", "--json"]));
    await Promise.all(commands.map((program) => program.line(/^\{/)));
    for (const program of commands) program.signal("SIGTERM");
    for (const program of commands) assert.equal((await finished(program)).code, 0);
  });
});
