// `sayso demo`, the first thing that anybody runs: unattended, answered from another process, stopped and killed.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";

import { dataFolder, finished, sayso, saysoInTerminal } from "../lib/sayso.mjs";

const ANSWERS = resolve(import.meta.dirname, "../../crates/sayso-cli/demo-answers.json");
const BOOKED = "Booked: one anvil to 1 Main Street, Pune. Tracking number SHP-4711.";
const ENTER = "\r";
const CTRL_C = "\u0003";

function demo(t, data, args = []) {
  return sayso(t, data, ["demo", "--listen", "127.0.0.1:0", ...args]);
}

/** The round that a running demo waits for, and the folder it is in, as it tells the person. */
async function asked(program) {
  const [, id, folder] = await program.line(/^ {2}sayso answer (rnd_\S+) --data (\S+)$/);
  await program.line(/Waiting for you/);
  return { id, folder };
}

describe("the demo", { concurrency: 3 }, () => {
  test("runs by itself with answers from a file", async (t) => {
    const ended = await finished(demo(t, await dataFolder(t), ["--answers", ANSWERS]));
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, /It calls quote_shipment, which passes: Shipping one anvil costs 12\.50 EUR\./);
    assert.ok(ended.stdout.endsWith(`The tool answered: ${BOOKED}`), ended.stdout);
  });

  test("prints one line of JSON for a script", async (t) => {
    const ended = await finished(demo(t, await dataFolder(t), ["--answers", ANSWERS, "--json"]));
    assert.equal(ended.code, 0, ended.stderr);
    const { round_id, ...outcome } = JSON.parse(ended.stdout);
    assert.match(round_id, /^rnd_/);
    assert.deepEqual(outcome, { status: "resolved", result: BOOKED });
  });

  test("names the field where the answers do not fit", async (t) => {
    const data = await dataFolder(t);
    const file = join(data, "answers.json");
    await writeFile(file, JSON.stringify({ elicitation: { action: "accept", content: { street: "1 Main Street" } } }));
    const ended = await finished(demo(t, data, ["--answers", file]));
    assert.equal(ended.code, 3);
    assert.match(ended.stderr, /\/responses\/elicitation\/content\/city: is required/);
  });

  test("waits for the form on another terminal, and the booking goes through", async (t) => {
    const program = demo(t, await dataFolder(t));
    const { id, folder } = await asked(program);
    const [link] = await program.line(/http:\/\/\S+\/login\?token=[0-9a-f]+/);
    assert.equal((await fetch(link)).status, 200);

    const terminal = saysoInTerminal(t, folder, ["answer", id]);
    const at = async (shown, keys) => {
      await terminal.shows(shown);
      terminal.write(keys);
    };
    await at("What do you want to do?", ENTER);
    await at("Street and number (street)", `1 Main Street${ENTER}`);
    await at("City (city)", `Pune${ENTER}`);
    await at("Postal code (postal_code)", `41${ENTER}`);
    await at("must match the pattern", `1001${ENTER}`);
    await at("Service (service)", ENTER);
    await at("Not before (not_before)", ENTER);
    await at("Insure it (insured)", ENTER);
    await at("Send this answer?", ENTER);
    assert.equal((await terminal.end).code, 0, terminal.text());
    const ended = await finished(program);
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(ended.stdout.endsWith(`The tool answered: ${BOOKED}`), ended.stdout);
  });

  test("stopped by Ctrl-C it says what becomes of the round, and says so again when it is started", async (t) => {
    const data = await dataFolder(t);
    const first = saysoInTerminal(t, data, ["demo", "--listen", "127.0.0.1:0"]);
    const { id, folder } = await asked(first);
    first.write(CTRL_C);
    assert.equal((await first.end).code, 130);
    assert.match(first.text(), new RegExp(`Round ${id} ended as recovery_unavailable: the gateway was stopped`));

    const late = await finished(saysoInTerminal(t, folder, ["answer", id, "--cancel"]));
    assert.equal(late.code, 5);
    const again = await finished(demo(t, data, ["--answers", ANSWERS]));
    assert.equal(again.code, 0, again.stderr);
    assert.match(
      again.stdout,
      new RegExp(`^Last time: round ${id} ended as recovery_unavailable: the gateway was stopped`),
    );
    const third = await finished(demo(t, data, ["--answers", ANSWERS]));
    assert.match(third.stdout, /^Last time: round rnd_\S+ was answered by person local:\S+ and went through\./);
  });

  test("killed it leaves its round, which the next start tells of", async (t) => {
    const data = await dataFolder(t);
    const first = demo(t, data);
    const { id, folder } = await asked(first);
    await first.kill();
    const again = demo(t, data);
    await again.line(new RegExp(`^Last time: round ${id} is still pending; its process ended without a word`));
    const next = await asked(again);
    assert.notEqual(next.id, id);
    const answer = ["answer", next.id, "--field", "street=1 Main Street", "--field", "city=Pune"];
    assert.equal((await finished(saysoInTerminal(t, folder, answer))).code, 0);
    const ended = await finished(again);
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(ended.stdout.endsWith(`The tool answered: ${BOOKED}`), ended.stdout);
  });
});
