// What the gateway need not touch passes as it came: the reference server's lines with and without it are compared byte
// for byte. (The corpus of odd messages is with the gateway's own tests.)
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { dataFolder } from "../lib/sayso.mjs";
import { behindGateway, connect, EVERYTHING, LineClient } from "../lib/mcp.mjs";

const VERSIONS = ["2025-11-25", "2025-06-18"];

// Requests whose answers do not differ from one process of the server to the next.
const REQUESTS = [
  ["prompts/list", {}],
  ["prompts/get", { name: "simple-prompt" }],
  ["prompts/get", { name: "no-such-prompt" }],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["tools/call", { name: "echo", arguments: { message: 'naïve \u202e \u0000 "quoted" 😀 </script>' } }],
  ["tools/call", { name: "get-sum", arguments: { a: 0.1, b: 0.2 } }],
  ["tools/call", { name: "get-sum", arguments: { a: "one" } }],
  ["tools/call", { name: "get-structured-content", arguments: { location: "New York" } }],
  ["tools/call", { name: "get-tiny-image", arguments: {} }],
  ["tools/call", { name: "no-such-tool", arguments: {} }],
  ["no/such/method", {}],
];

async function bothWays(t, protocolVersion) {
  const data = await dataFolder(t);
  const direct = new LineClient(t, EVERYTHING);
  const through = new LineClient(t, behindGateway(data, "everything", EVERYTHING));
  const hellos = await Promise.all([direct.initialize({ protocolVersion }), through.initialize({ protocolVersion })]);
  return { direct, through, hellos };
}

describe("the reference server's own lines", { concurrency: 2 }, () => {
  for (const protocolVersion of VERSIONS) {
    test(`pass the gateway unchanged, ${protocolVersion}`, async (t) => {
      const { direct, through, hellos } = await bothWays(t, protocolVersion);
      assert.equal(hellos[1], hellos[0]);
      for (const [method, params] of REQUESTS) {
        const [expected, passed] = await Promise.all([direct.ask(method, params), through.ask(method, params)]);
        assert.equal(passed, expected, method);
      }
    });

    test(`of its tools' first page only the end is touched, ${protocolVersion}`, async (t) => {
      const { direct, through } = await bothWays(t, protocolVersion);
      const [expected, passed] = await Promise.all([direct.ask("tools/list", {}), through.ask("tools/list", {})]);
      let same = 0;
      while (passed[same] === expected[same]) same += 1;
      const rest = expected.slice(same);
      assert.ok(passed.endsWith(rest), "everything after the inserted tools is as it came");
      const inserted = passed.slice(same, passed.length - rest.length);
      assert.equal(inserted[0], ",");
      const tools = JSON.parse(`[${inserted.slice(1)}]`);
      assert.deepEqual(
        tools.map(({ name }) => name),
        ["sayso_wait", "resume"],
      );
      assert.deepEqual(JSON.parse(passed).result.tools.slice(-2), tools);
      assert.equal(JSON.parse(passed).result.tools.length, JSON.parse(expected).result.tools.length + 2);
    });
  }

  test("an error that asks for a visit first passes with everything in it", async (t) => {
    const { direct, through } = await bothWays(t, "2025-11-25");
    const call = [
      "tools/call",
      { name: "trigger-url-elicitation", arguments: { url: "https://example.com/", errorPath: true } },
    ];
    const lines = await Promise.all([direct.ask(...call), through.ask(...call)]);
    assert.equal(JSON.parse(lines[1]).error.code, -32042);
    // The server makes a new id for every visit.
    const [expected, passed] = lines.map((line) =>
      line.replace(/"elicitationId":"[0-9a-f-]{36}"/, '"elicitationId":"-"'),
    );
    assert.equal(passed, expected);
  });

  test("a ping is answered on both sides, and the official client reads that error as what it is", async (t) => {
    const data = await dataFolder(t);
    const { client } = await connect(t, behindGateway(data, "everything", EVERYTHING), {
      onElicit: () => assert.fail(),
    });
    await client.ping();
    const visit = { name: "trigger-url-elicitation", arguments: { url: "https://example.com/", errorPath: true } };
    await assert.rejects(client.callTool(visit), (error) => {
      assert.equal(error.code, -32042);
      assert.equal(error.data.elicitations[0].url, "https://modelcontextprotocol.io");
      return true;
    });
  });
});
