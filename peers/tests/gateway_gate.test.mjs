// Real servers behind a gateway with a policy: reading passes, writing asks, and what a person refuses never happens.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import { atEnd } from "../lib/ending.mjs";
import { EVERY_FIELD, rawResult } from "../lib/everything.mjs";
import { openHouse } from "../lib/house.mjs";
import { behindGateway, connect, EVERYTHING, filesystem, heard, overheard, textOf } from "../lib/mcp.mjs";
import { Program } from "../lib/program.mjs";
import { dataFolder, finished } from "../lib/sayso.mjs";

const TRUSTED = '[[server]]\nname = "files"\ntrusted = true\n\n[[tool]]\ntools = ["files:write_file"]\neffects = ["write"]\n';
const WRITES = `${TRUSTED}
[[rule]]
id = "secrets"
deny = ["files:*"]
when = [{ at = "/path", glob = "*.key" }]
reason = "Keys stay as they are."

[[rule]]
id = "writes"
ask = ["files:*"]
effects = ["write"]
`;

/** A folder, a policy over it, and the official client in front of the filesystem server behind a gateway. */
async function openFiles(t, { policy = WRITES, options = () => [] } = {}) {
  const house = await openHouse(t);
  const folder = await mkdtemp(join(tmpdir(), "sayso-files-"));
  atEnd(t, () => rm(folder, { recursive: true, force: true }));
  const file = join(house.data, "policy.toml");
  await writeFile(file, policy);
  const lines = join(house.data, "heard");
  const server = overheard(filesystem(folder), lines);
  const gateway = behindGateway(house.data, "files", server, ["--policy", file, ...options(house)]);
  const { client, messages } = await connect(t, gateway);
  const callsHeard = async () => (await heard(lines)).filter((message) => message.method === "tools/call");
  const edit = async (text) => {
    await writeFile(`${file}.next`, text);
    await rename(`${file}.next`, file);
  };
  return { house, folder, client, messages, callsHeard, edit };
}

function write(client, path, content, options) {
  return client.callTool({ name: "write_file", arguments: { path, content } }, options);
}

/** A verdict over HTTP, bound to what was shown. */
async function decide(house, round, response, key = "k") {
  const answered = await house.people.answer(round.round_id, { call: response }, { digest: round.digest, key });
  assert.equal(answered.status, 200, JSON.stringify(answered.body));
}

describe("the filesystem server behind a policy", { concurrency: 3 }, () => {
  test("reading passes and asks nobody", async (t) => {
    const { house, folder, client } = await openFiles(t);
    await writeFile(join(folder, "a.txt"), "Call me Ishmael.");
    const read = await client.callTool({ name: "read_text_file", arguments: { path: join(folder, "a.txt") } });
    assert.equal(textOf(read), "Call me Ishmael.");
    const list = await client.callTool({ name: "list_directory", arguments: { path: folder } });
    assert.match(textOf(list), /a\.txt/);
    assert.equal(house.events.count("round_created"), 0);
  });

  test("an approved write happens once, and its result is the server's own", async (t) => {
    const { house, folder, client, callsHeard } = await openFiles(t);
    const path = join(folder, "a.txt");
    const call = write(client, path, "one");
    const round = await house.asked();
    const { kind, tool, arguments: shown, effects, rule } = round.requests.call;
    assert.deepEqual([kind, tool, effects, rule], ["approval", "files:write_file", ["write"], "operator writes"]);
    assert.deepEqual(shown, { content: "one", path });
    assert.match(round.requests.call.definition, /^sha256:/);
    assert.equal(existsSync(path), false, "nothing is written before the word");
    await decide(house, round, { action: "accept" });
    assert.match(textOf(await call), /Successfully wrote/);
    assert.equal(await readFile(path, "utf8"), "one");
    assert.equal((await house.over(round.round_id)).status, "resolved");
    assert.equal((await callsHeard()).length, 1);
  });

  test("what was approved for the session is written from then on, and nobody is asked again", async (t) => {
    const { house, folder, client } = await openFiles(t);
    const first = write(client, join(folder, "a.txt"), "one");
    const round = await house.asked();
    const { session } = round.requests.call;
    const body = { round_id: round.round_id };
    const granted = await house.people.call("POST", `/v1/sessions/${session}/approvals`, { body });
    assert.equal(granted.status, 201, JSON.stringify(granted.body));
    await decide(house, round, { action: "accept" });
    await first;
    await write(client, join(folder, "b.txt"), "two");
    assert.equal(await readFile(join(folder, "b.txt"), "utf8"), "two");
    await house.events.first("grant_used");
    assert.equal(house.events.count("round_created"), 1);
  });

  test("a refused write leaves the disk untouched, and the agent reads the reason", async (t) => {
    const { house, folder, client, callsHeard } = await openFiles(t);
    const path = join(folder, "a.txt");
    await writeFile(path, "before");
    const call = write(client, path, "after");
    const round = await house.asked();
    await decide(house, round, { action: "decline", reason: "Not on a Friday." });
    const result = await call;
    assert.equal(result.isError, true);
    assert.match(textOf(result), /person refused.*not run.*Not on a Friday\./s);
    assert.equal(await readFile(path, "utf8"), "before");
    assert.deepEqual(await callsHeard(), []);
    assert.equal((await house.over(round.round_id)).status, "resolved");
  });

  test("a denied write asks nobody and leaves the disk untouched", async (t) => {
    const { house, folder, client, callsHeard } = await openFiles(t);
    const result = await write(client, join(folder, "a.key"), "x");
    assert.equal(result.isError, true);
    assert.match(textOf(result), /policy denies.*operator secrets.*Keys stay as they are\./s);
    assert.equal(existsSync(join(folder, "a.key")), false);
    assert.deepEqual(await callsHeard(), []);
    assert.equal(house.events.count("round_created"), 0);
  });

  test("what a person changed is what is written, and the agent is told", async (t) => {
    const { house, folder, client } = await openFiles(t);
    const [asked, changed] = [join(folder, "a.txt"), join(folder, "b.txt")];
    const call = write(client, asked, "one");
    const round = await house.asked();
    const wrong = { call: { action: "accept", content: { arguments: { path: changed, content: 7 } } } };
    const refused = await house.people.answer(round.round_id, wrong, { digest: round.digest, key: "w" });
    assert.deepEqual([refused.status, refused.body.fields?.[0].pointer], [422, "/responses/call/content/arguments/content"]);
    await decide(house, round, { action: "accept", content: { arguments: { path: changed, content: "two" } } });
    const result = await call;
    assert.equal(await readFile(changed, "utf8"), "two");
    assert.equal(existsSync(asked), false);
    assert.match(textOf(result), /Successfully wrote.*changed the arguments.*b\.txt/s);
  });

  test("an edit into what the policy denies is not written", async (t) => {
    const { house, folder, client } = await openFiles(t);
    const call = write(client, join(folder, "a.txt"), "one");
    const round = await house.asked();
    const path = join(folder, "a.key");
    await decide(house, round, { action: "accept", content: { arguments: { path, content: "one" } } });
    assert.match(textOf(await call), /operator secrets/);
    assert.equal(existsSync(path), false);
    assert.deepEqual((await house.over(round.round_id)).failure.code, "superseded");
  });

  test("a call that waits longer than its client hears heartbeats, then its handle, and runs when it is asked for", async (t) => {
    const { house, folder, client, callsHeard } = await openFiles(t, { options: () => ["--hold", "12"] });
    const path = join(folder, "a.txt");
    const beats = [];
    const call = write(client, path, "one", { onprogress: (progress) => beats.push(progress) });
    const round = await house.asked();
    const pending = await call;
    assert.match(textOf(pending), /still waiting.*not denied.*sayso_wait/s);
    assert.equal(beats[0]?.message, "waiting for a person");
    await decide(house, round, { action: "accept" });
    const { execution_id } = await house.people.round(round.round_id);
    assert.equal(existsSync(path), false, "nobody waits for it");
    const result = await client.callTool({ name: "sayso_wait", arguments: { execution_id } });
    assert.match(textOf(result), /Successfully wrote/);
    assert.equal(await readFile(path, "utf8"), "one");
    assert.match(textOf(await write(client, path, "one")), /Successfully wrote/, "a retry reads the stored result");
    assert.equal((await callsHeard()).length, 1);
  });

  test("rounds at a server: asked, superseded by an edited policy, approved", async (t) => {
    const { house, folder, client, edit } = await openFiles(t, {
      options: (house) => ["--server", house.address, "--token-file", house.agent.file],
    });
    const path = join(folder, "a.txt");
    const call = write(client, path, "one");
    const first = await house.asked();
    assert.equal(first.asked_by, "agent booking");
    await edit(WRITES.replace('"writes"', '"writes-again"'));
    await decide(house, first, { action: "accept" });
    const second = await house.asked();
    assert.deepEqual([second.execution_id, second.round_index], [first.execution_id, 1]);
    assert.equal((await house.people.round(first.round_id)).failure.code, "superseded");
    assert.equal(existsSync(path), false);
    await decide(house, second, { action: "accept" });
    assert.match(textOf(await call), /Successfully wrote/);
    assert.equal(await readFile(path, "utf8"), "one");
  });
});

describe("the reference server behind a policy", { concurrency: 2 }, () => {
  async function openEverything(t, policy, options = []) {
    const house = await openHouse(t);
    const file = join(house.data, "policy.toml");
    await writeFile(file, policy);
    const gateway = behindGateway(house.data, "everything", EVERYTHING, ["--policy", file, ...options]);
    return { house, ...(await connect(t, gateway)) };
  }

  test("an approved call may ask its user, in the same execution", async (t) => {
    const policy = '[[rule]]\nid = "form"\nask = ["everything:trigger-elicitation-request"]\n';
    const { house, client } = await openEverything(t, policy);
    const call = client.callTool({ name: "trigger-elicitation-request", arguments: {} });
    const approval = await house.asked();
    await decide(house, approval, { action: "accept" });
    const form = await house.asked();
    assert.deepEqual([form.execution_id, form.round_index], [approval.execution_id, 1]);
    const content = { elicitation: { action: "accept", content: EVERY_FIELD } };
    assert.equal((await house.people.answer(form.round_id, content, { key: "k", digest: form.digest })).status, 200);
    assert.deepEqual(rawResult(textOf(await call)).content, EVERY_FIELD);
    assert.equal((await house.over(approval.round_id)).status, "resolved");
    assert.equal((await house.over(form.round_id)).status, "resolved");
  });

  test("parallel calls each get their own verdict and exactly one result", async (t) => {
    const { house, client } = await openEverything(t, '[[rule]]\nid = "echo"\nask = ["everything:echo"]\n');
    const calls = [1, 2, 3].map((n) => client.callTool({ name: "echo", arguments: { message: `m${n}` } }));
    const rounds = [await house.asked(), await house.asked(), await house.asked()];
    for (const round of rounds) {
      const { message } = round.requests.call.arguments;
      await decide(house, round, message === "m2" ? { action: "decline" } : { action: "accept" });
    }
    const texts = (await Promise.all(calls)).map(textOf);
    assert.match(texts[0], /m1/);
    assert.match(texts[1], /person refused/);
    assert.match(texts[2], /m3/);
  });

  test("the mode guarded denies what no rule allows, and needs a policy", async (t) => {
    const bare = behindGateway(await dataFolder(t), "everything", EVERYTHING, ["--mode", "guarded"]);
    const refused = await finished(new Program(t, bare.command, bare.args));
    assert.deepEqual([refused.code, /needs a policy/.test(refused.stderr)], [2, true]);
    const policy = '[[rule]]\nid = "echo"\nallow = ["everything:echo"]\n';
    const { client } = await openEverything(t, policy, ["--mode", "guarded"]);
    assert.match(textOf(await client.callTool({ name: "echo", arguments: { message: "hi" } })), /hi/);
    const denied = await client.callTool({ name: "get-sum", arguments: { a: 1, b: 2 } });
    assert.match(textOf(denied), /operator default/);
  });

  test("an agent asks by the gateway's tool, and no policy stands in its way", async (t) => {
    const { house, client } = await openEverything(t, '[[rule]]\nid = "all"\ndeny = ["*:*"]\n', ["--ask-user"]);
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === "ask_user"));
    const questions = [{ question: "Which target?", options: [{ label: "staging" }, { label: "live" }] }];
    const call = client.callTool({ name: "ask_user", arguments: { questions } });
    const round = await house.asked();
    const response = { action: "accept", content: { answer: ["live"] } };
    const answered = await house.people.answer(round.round_id, { q0: response }, { digest: round.digest, key: "k" });
    assert.equal(answered.status, 200, JSON.stringify(answered.body));
    const result = await call;
    assert.equal(textOf(result), "Which target?\nlive");
    assert.deepEqual(result.structuredContent, { answers: [{ question: "Which target?", answer: ["live"] }] });
  });
});
