// `sayso run` against the reference server over HTTP: its questions come in the stream of the call that asked.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { join } from "node:path";
import test from "node:test";

import { atEnd } from "../lib/ending.mjs";
import { DEFAULTS, EVERY_FIELD, rawResult } from "../lib/everything.mjs";
import { everythingOverHttp } from "../lib/mcp.mjs";
import { dataFolder, finished, sayso } from "../lib/sayso.mjs";

const ASKS = `
  [[operation]]
  tool = "trigger-elicitation-request"
  expect_text = "User provided the requested information"
  [[operation.plan]]
  expect = "form"
  message_is = "Please provide inputs for the following fields:"`;

async function run(t, plan, args = []) {
  const folder = await dataFolder(t);
  const file = join(folder, "plan.toml");
  await writeFile(file, plan);
  const { code, stdout, stderr } = await finished(sayso(t, folder, ["run", "--plan", file, "--json", ...args]));
  assert.ok(stdout, stderr);
  const { operations } = JSON.parse(stdout);
  return { code, operations, failures: operations.flatMap(({ failures }) => failures) };
}

/** TOML of an answer: JSON texts, numbers and lists are TOML, too. */
const table = (answer) => Object.entries(answer).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join("\n");

test("a plan answers the reference server over HTTP", async (t) => {
  const url = await everythingOverHttp(t);
  const { code, operations, failures } = await run(
    t,
    `[server]
    url = "${url}"
    headers = { X-Test = "peers" }
    ${ASKS}
    [operation.plan.accept]
    ${table(EVERY_FIELD)}

    [[operation]]
    tool = "trigger-url-elicitation"
    arguments = { url = "https://example.com/connect?state=1" }
    expect_text = "User completed the URL elicitation flow"
    [[operation.plan]]
    expect = "url"
    accept = true

    [[operation]]
    tool = "trigger-elicitation-request"
    expect_text = "User declined"
    [[operation.plan]]
    expect = "form"
    decline = true

    [[operation]]
    prompt = "simple-prompt"
    expect_text = "simple prompt"

    [[operation]]
    resource = "demo://resource/dynamic/text/7"
    expect_text = "Resource 7"`,
  );
  assert.deepEqual(failures, []);
  assert.equal(code, 0);
  assert.deepEqual(rawResult(operations[0].answer.text).content, EVERY_FIELD);
});

test("--url puts a running server in the plan's place, and one plan serves both transports", async (t) => {
  const url = await everythingOverHttp(t);
  const plan = `[server]\ncommand = ["/no/such/server"]\n${ASKS}\naccept = { name = "Ada" }`;
  const { code, operations, failures } = await run(t, plan, ["--url", url]);
  assert.deepEqual(failures, []);
  assert.equal(code, 0);
  assert.deepEqual(rawResult(operations[0].answer.text).content, { name: "Ada", ...DEFAULTS });
});

test("a question whose stream is cut is answered, and the result is read by going on with it", async (t) => {
  const cutting = await cuttingProxy(t, await everythingOverHttp(t));
  const { code, failures } = await run(t, `${ASKS}\naccept = { name = "Ada" }`, ["--url", cutting.url]);
  assert.deepEqual(failures, []);
  assert.equal(code, 0);
  assert.equal(cutting.cuts, 1);
  assert.ok(cutting.resumed, "it asked for the rest");
});

test("an unexpected question ends the session, and the next operation has a new one", async (t) => {
  const url = await everythingOverHttp(t);
  const { code, operations } = await run(
    t,
    `[[operation]]
    tool = "trigger-elicitation-request"

    [[operation]]
    tool = "echo"
    arguments = { message = "still here" }
    expect_text = "still here"`,
    ["--url", url],
  );
  assert.equal(code, 10);
  assert.deepEqual(operations.map(({ passed }) => passed), [false, true]);
  assert.equal(operations[0].failures[0].code, "elicitation_expectation_failed");
});

/** Passes everything on, and cuts the first stream that has brought a question. */
async function cuttingProxy(t, url) {
  const target = new URL(url);
  const state = { cuts: 0, resumed: false, url: "" };
  const proxy = createServer((incoming, outgoing) => {
    state.resumed ||= incoming.headers["last-event-id"] !== undefined;
    const headers = { ...incoming.headers, host: target.host };
    const passed = request(target, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.on("data", (piece) => {
        const cut = state.cuts === 0 && piece.includes('"method":"elicitation/create"');
        outgoing.write(piece, () => {
          if (!cut) return;
          state.cuts += 1;
          passed.destroy();
          outgoing.destroy();
        });
      });
      answer.on("end", () => outgoing.end());
      answer.on("error", () => outgoing.destroy());
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  atEnd(t, () => {
    proxy.closeAllConnections();
    proxy.close();
  });
  state.url = `http://127.0.0.1:${proxy.address().port}/mcp`;
  return state;
}
