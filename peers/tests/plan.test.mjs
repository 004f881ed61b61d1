// `sayso run` against the reference server: every field kind, a URL, and what it says when a plan does not hold.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import test from "node:test";

import { EVERYTHING } from "../lib/mcp.mjs";
import { dataFolder, finished, sayso } from "../lib/sayso.mjs";

const TOOL = 'tool = "trigger-elicitation-request"';

/** Runs the operations, TOML, against the reference server. */
async function runPlan(t, operations) {
  const folder = await dataFolder(t);
  const file = join(folder, "plan.toml");
  // A JSON list of texts is TOML, too.
  const command = JSON.stringify([EVERYTHING.command, ...EVERYTHING.args]);
  await writeFile(file, `[server]\ncommand = ${command}\n${operations}`);
  const { code, stdout, stderr } = await finished(sayso(t, folder, ["run", "--plan", file, "--json"]));
  assert.ok(stdout, stderr);
  return { code, ...JSON.parse(stdout) };
}

test("a plan answers every field kind of the reference server", async (t) => {
  const { code, passed, operations } = await runPlan(
    t,
    `
    [[operation]]
    ${TOOL}
    expect_text = "User provided the requested information"
    [[operation.plan]]
    expect = "form"
    message_is = "Please provide inputs for the following fields:"
    schema = { required = ["name"], properties = { integer = { minimum = 1, maximum = 100 } } }
    [operation.plan.accept]
    name = "Ada"
    check = true
    firstLine = "It was a dark and stormy night."
    email = "ada@example.com"
    homepage = "https://example.com/ada"
    birthdate = 1815-12-10
    integer = 7
    number = 2.5
    untitledSingleSelectEnum = "Monica"
    untitledMultipleSelectEnum = ["Guitar", "Piano"]
    titledSingleSelectEnum = "hero-2"
    titledMultipleSelectEnum = ["fish-1", "fish-3"]
    legacyTitledEnum = "pet-3"

    [[operation]]
    tool = "trigger-url-elicitation"
    arguments = { url = "https://example.com/connect?state=1" }
    expect_text = "User completed the URL elicitation flow"
    [[operation.plan]]
    expect = "url"
    url = "https://example.com/connect?state=1"
    accept = true

    [[operation]]
    ${TOOL}
    expect_text = "User declined"
    [[operation.plan]]
    expect = "form"
    decline = true

    [[operation]]
    prompt = "simple-prompt"
    expect_text = "simple prompt"

    [[operation]]
    resource = "demo://resource/dynamic/text/7"
    expect_text = "Resource 7"
    `,
  );
  assert.deepEqual(operations.flatMap(({ failures }) => failures), []);
  assert.ok(code === 0 && passed);
  const raw = JSON.parse(operations[0].answer.text.split("Raw result: ")[1]);
  assert.equal(raw.content.birthdate, "1815-12-10");
  assert.deepEqual(raw, operations[0].elicitations[0].response);
});

test("defaults are filled in, and an answer that does not fit is named by its field", async (t) => {
  const { code, operations } = await runPlan(
    t,
    `
    [[operation]]
    ${TOOL}
    [[operation.plan]]
    expect = "form"
    accept = { name = "Ada" }

    [[operation]]
    ${TOOL}
    [[operation.plan]]
    expect = "form"
    accept = { name = "Ada", integer = 101 }

    [[operation]]
    tool = "echo"
    arguments = { message = "still here" }
    expect_text = "still here"
    `,
  );
  assert.equal(code, 10);
  assert.deepEqual(operations.map(({ passed }) => passed), [true, false, true]);
  assert.equal(operations[0].elicitations[0].response.content.integer, 42);
  assert.match(operations[1].failures[0].message, /\/content\/integer must/);
});

test("the plan in the documentation passes", async (t) => {
  const page = await readFile(resolve(import.meta.dirname, "../../docs/plans.md"), "utf8");
  const [, operations] = page.match(/```toml\n\[server\]\ncommand = .*\n([^`]*)```/);
  const { code, operations: done } = await runPlan(t, operations);
  assert.deepEqual(done.flatMap(({ failures }) => failures), []);
  assert.equal(code, 0);
  assert.equal(done.length, 3);
});
