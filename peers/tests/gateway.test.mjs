// The main job: what the reference server asks behind `sayso gateway` is answered by a person, on the command line, on
// the terminal and over HTTP, and the official client gets the tool's own result. (The browser's part is in
// inbox.test.mjs.)
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DEFAULTS, EVERY_FIELD, rawResult } from "../lib/everything.mjs";
import { openHouse } from "../lib/house.mjs";
import { behindGateway, connect, EVERYTHING, textOf } from "../lib/mcp.mjs";
import { saysoInTerminal } from "../lib/sayso.mjs";

const VERSIONS = ["2025-11-25", "2025-06-18"];
const ENTER = "\r";
const DOWN = "\u001b[B";

/** A house, and the official client in front of the reference server behind a gateway. */
async function openGateway(t, { protocolVersion, onElicit, options } = {}) {
  const house = await openHouse(t);
  const server = behindGateway(house.data, "everything", EVERYTHING, options);
  return { house, ...(await connect(t, server, { protocolVersion, onElicit })) };
}

function ask(client) {
  return client.callTool({ name: "trigger-elicitation-request", arguments: {} });
}

/** `--field` for each field; a list as one flag for each of its items. */
function asFlags(fields) {
  return Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().flatMap((one) => ["--field", `${name}=${one}`]),
  );
}

for (const protocolVersion of VERSIONS) {
  describe(`the reference server behind the gateway, ${protocolVersion}`, { concurrency: 2 }, () => {
    test("every field kind is answered on the command line", async (t) => {
      const { house, client } = await openGateway(t, { protocolVersion });
      assert.equal(client.getNegotiatedProtocolVersion(), protocolVersion);
      const call = ask(client);
      const round = await house.asked();
      assert.equal(round.status, "pending");
      assert.equal(round.delivery, "live");
      assert.deepEqual(
        [round.server, round.operation_kind, round.operation_name],
        ["everything", "tool", "trigger-elicitation-request"],
      );
      assert.deepEqual(round.asked_by, "agent gateway:everything");
      assert.deepEqual(round.calls, [{ name: "trigger-elicitation-request", arguments: {} }]);
      assert.deepEqual(Object.keys(round.requests.elicitation.schema.properties), Object.keys(EVERY_FIELD));

      const answered = await house.cli(["answer", round.round_id, ...asFlags(EVERY_FIELD)]);
      assert.equal(answered.code, 0, answered.stderr);
      const text = textOf(await call);
      assert.deepEqual(rawResult(text), { action: "accept", content: EVERY_FIELD });
      assert.match(text, /- Name: Ada Lovelace\n- Agreed to terms: true\n/);

      const after = await house.over(round.round_id);
      assert.equal(after.status, "resolved");
      assert.deepEqual([after.answered.principal, after.answered.channel], ["person ada", "cli"]);
      const { body } = await house.people.get(`/v1/executions/${round.execution_id}/result?wait=10s`);
      assert.deepEqual([body.execution.lifecycle, body.execution.outcome.status], ["finished", "completed"]);
      assert.equal(textOf(body.result.result), text);
    });

    test("every field kind is answered over HTTP, with digest and idempotency key", async (t) => {
      const { house, client } = await openGateway(t, { protocolVersion });
      const call = ask(client);
      const { round_id } = await house.asked();
      const list = await house.people.get("/v1/rounds?status=pending");
      assert.deepEqual(
        list.body.rounds.map((round) => round.round_id),
        [round_id],
      );
      const { digest } = await house.people.round(round_id);
      const responses = { elicitation: { action: "accept", content: EVERY_FIELD } };
      assert.equal((await house.people.answer(round_id, responses, { digest })).status, 422);
      const stale = await house.people.answer(round_id, responses, { digest: `sha256:${"0".repeat(64)}`, key: "k" });
      assert.deepEqual([stale.status, stale.body.code], [409, "managed_input_stale"]);
      const refused = await house.agents.answer(round_id, responses, { digest, key: "k" });
      assert.deepEqual([refused.status, refused.body.code], [403, "forbidden"]);
      const answered = await house.people.answer(round_id, responses, { digest, key: "k" });
      assert.equal(answered.status, 200, JSON.stringify(answered.body));
      assert.deepEqual(rawResult(textOf(await call)), { action: "accept", content: EVERY_FIELD });
      await house.over(round_id);
      const values = await house.people.get(`/v1/rounds/${round_id}/responses`);
      assert.deepEqual(values.body.effective.elicitation.content, EVERY_FIELD);
      const others = await house.agents.get(`/v1/rounds/${round_id}/responses`);
      assert.ok(!JSON.stringify(others.body).includes("Ishmael"), "an agent reads no values");
    });
  });
}

describe("answers to the reference server", { concurrency: 3 }, () => {
  test("the form on the terminal asks for every field kind", async (t) => {
    const { house, client } = await openGateway(t);
    const call = ask(client);
    const { round_id } = await house.asked();
    const terminal = saysoInTerminal(t, house.data, ["answer", round_id]);
    const at = async (shown, keys) => {
      await terminal.shows(shown);
      terminal.write(keys);
    };
    await at("What do you want to do?", ENTER);
    await at("String (name)", `Ada Lovelace${ENTER}`);
    await at("Boolean (check)", ENTER);
    await at("String with default (firstLine)", `Call me Ishmael.${ENTER}`);
    await at("(email)", `ada${ENTER}`);
    await at("must be an e-mail address", `@example.com${ENTER}`);
    await at("(homepage)", `https://example.com/ada?a=1&b=2${ENTER}`);
    await at("(birthdate)", `1815-12-10${ENTER}`);
    await at("Integer (integer)", `7${ENTER}`);
    await at("(number)", `2.5${ENTER}`);
    await at("(untitledSingleSelectEnum)", `${DOWN}${DOWN}${ENTER}`);
    await at("(untitledMultipleSelectEnum)", ` ${DOWN} ${DOWN}${DOWN}${DOWN} ${ENTER}`);
    await at("(titledSingleSelectEnum)", `${DOWN}${ENTER}`);
    await at("(titledMultipleSelectEnum)", ` ${DOWN} ${DOWN} ${ENTER}`);
    await at("(legacyTitledEnum)", `${DOWN}${DOWN}${DOWN}${ENTER}`);
    await at("Send this answer?", ENTER);
    assert.deepEqual(rawResult(textOf(await call)), { action: "accept", content: EVERY_FIELD });
    assert.equal((await terminal.end).code, 0, terminal.text());
    const { answered } = await house.over(round_id);
    assert.deepEqual([answered.principal.startsWith("person local:"), answered.channel], [true, "cli"]);
  });

  test("the defaults of the fields that are left out are filled in", async (t) => {
    const { house, client } = await openGateway(t);
    const call = ask(client);
    const { round_id } = await house.asked();
    assert.equal((await house.cli(["answer", round_id, "--field", "name=Ada"])).code, 0);
    assert.deepEqual(rawResult(textOf(await call)).content, { name: "Ada", ...DEFAULTS });
  });

  test("an invalid answer names the fields and changes nothing, and a valid one follows", async (t) => {
    const { house, client } = await openGateway(t);
    const call = ask(client);
    const { round_id } = await house.asked();
    const before = await house.people.round(round_id);
    const wrong = { email: "nobody", integer: 500, legacyTitledEnum: "pet-9", untitledMultipleSelectEnum: [] };
    const refused = await house.people.answer(
      round_id,
      { elicitation: { action: "accept", content: wrong } },
      { key: "a" },
    );
    assert.deepEqual([refused.status, refused.body.code], [422, "managed_input_invalid"]);
    const pointers = refused.body.fields.map((field) => field.pointer).sort();
    const names = ["email", "integer", "legacyTitledEnum", "name", "untitledMultipleSelectEnum"];
    assert.deepEqual(
      pointers,
      names.map((name) => `/responses/elicitation/content/${name}`),
    );
    assert.ok(!JSON.stringify(refused.body).includes("nobody"), "an error does not repeat what was typed");

    const typed = await house.cli(["answer", round_id, "--field", "name=Ada", "--field", "integer=many"]);
    assert.equal(typed.code, 3);
    assert.match(typed.stderr, /integer: must be a whole number/);
    assert.deepEqual(await house.people.round(round_id), before);
    const valid = await house.people.answer(
      round_id,
      { elicitation: { action: "accept", content: EVERY_FIELD } },
      { key: "a" },
    );
    assert.equal(valid.status, 200);
    assert.deepEqual(rawResult(textOf(await call)).content, EVERY_FIELD);
  });

  test("a decline reaches the server as one, with its reason", async (t) => {
    const { house, client } = await openGateway(t);
    const call = ask(client);
    const { round_id } = await house.asked();
    assert.equal((await house.cli(["answer", round_id, "--decline", "--reason", "not this week"])).code, 0);
    const text = textOf(await call);
    assert.match(text, /User declined/);
    assert.deepEqual(rawResult(text), { action: "decline", _meta: { "dev.sayso/reason": "not this week" } });
  });

  test("a cancel is told apart from a decline", async (t) => {
    const { house, client } = await openGateway(t);
    const call = ask(client);
    const { round_id } = await house.asked();
    assert.equal(
      (await house.people.answer(round_id, { elicitation: { action: "cancel" } }, { key: "k" })).status,
      200,
    );
    const text = textOf(await call);
    assert.match(text, /User cancelled/);
    assert.deepEqual(rawResult(text), { action: "cancel" });
  });

  test("a URL is consented to, and another declined", async (t) => {
    const { house, client } = await openGateway(t);
    const visit = (url) => client.callTool({ name: "trigger-url-elicitation", arguments: { url, elicitationId: url } });
    const first = visit("https://example.com/connect?state=1");
    const { round_id, requests } = await house.asked();
    assert.deepEqual(requests.elicitation, {
      kind: "url",
      message: "Please open the link to complete this action.",
      url: "https://example.com/connect?state=1",
      elicitation_id: "https://example.com/connect?state=1",
    });
    const shown = await house.cli(["show", round_id]);
    assert.match(shown.stdout, /https:\/\/example\.com\/connect\?state=1/);
    assert.equal((await house.cli(["answer", round_id, "--accept"])).code, 0);
    assert.match(textOf(await first), /User completed the URL elicitation flow/);

    const second = visit("https://example.com/other");
    const other = await house.asked();
    assert.equal(
      (await house.people.answer(other.round_id, { elicitation: { action: "decline" } }, { key: "k" })).status,
      200,
    );
    assert.match(textOf(await second), /User declined to open the URL/);
  });

  test("a client without the elicitation capability has its tools ask a person", async (t) => {
    const { house, client, messages } = await openGateway(t);
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === "trigger-url-elicitation"));
    const call = ask(client);
    const { round_id } = await house.asked();
    assert.equal((await house.cli(["answer", round_id, "--cancel"])).code, 0);
    assert.match(textOf(await call), /User cancelled/);
    assert.deepEqual(
      messages.filter(({ from, message }) => from === "server" && message.method && message.id),
      [],
    );
  });

  test("a client with the elicitation capability is not asked in the person's place", async (t) => {
    const { house, client } = await openGateway(t, { onElicit: () => assert.fail("the client was asked") });
    const call = ask(client);
    const { round_id } = await house.asked();
    assert.equal((await house.cli(["answer", round_id, "--cancel"])).code, 0);
    assert.match(textOf(await call), /User cancelled/);
  });

  test("of two calls at once each gets the result of its own question", async (t) => {
    const { house, client } = await openGateway(t);
    const url = "https://example.com/two";
    const form = ask(client);
    const visit = client.callTool({ name: "trigger-url-elicitation", arguments: { url } });
    const rounds = [await house.asked(), await house.asked()];
    // Both calls were in flight at the first question: stdio does not say which of them asked it.
    const names = rounds.map(({ operation_name }) => operation_name);
    assert.equal(names[0], "trigger-elicitation-request or trigger-url-elicitation");
    assert.deepEqual(
      rounds[0].calls.map((call) => call.name),
      ["trigger-elicitation-request", "trigger-url-elicitation"],
    );
    for (const { round_id, requests } of rounds.reverse()) {
      const content = requests.elicitation.kind === "form" ? { name: "Ada" } : undefined;
      const answered = await house.people.answer(
        round_id,
        { elicitation: { action: "accept", content } },
        { key: "k" },
      );
      assert.equal(answered.status, 200, JSON.stringify(answered.body));
    }
    assert.equal(rawResult(textOf(await form)).content.name, "Ada");
    assert.match(textOf(await visit), /URL: https:\/\/example\.com\/two/);
    for (const { round_id } of rounds) assert.equal((await house.over(round_id)).status, "resolved");
  });

  test("a second call while the first waits has its question to itself", async (t) => {
    const { house, client } = await openGateway(t);
    const url = "https://example.com/second";
    const form = ask(client);
    const first = await house.asked();
    const visit = client.callTool({ name: "trigger-url-elicitation", arguments: { url } });
    const second = await house.asked();
    assert.deepEqual(second.calls, [{ name: "trigger-url-elicitation", arguments: { url } }]);
    assert.notEqual(first.execution_id, second.execution_id);
    assert.equal((await house.cli(["answer", second.round_id, "--accept"])).code, 0);
    assert.match(textOf(await visit), /User completed the URL elicitation flow/);
    assert.equal((await house.people.round(first.round_id)).status, "pending");
    assert.equal((await house.cli(["answer", first.round_id, "--decline"])).code, 0);
    assert.match(textOf(await form), /User declined/);
  });
});
