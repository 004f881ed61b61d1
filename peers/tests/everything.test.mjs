// The peers themselves, without Sayso between them: what the official client and the reference server do is what the
// gateway's tests compare with.
//
// `trigger-elicitation-request` takes no arguments and sends one `elicitation/create` without `mode` (so a form), whose
// `requestedSchema` is an object of these thirteen properties, only `name` required, in this order:
//
//   name                        string
//   check                       boolean
//   firstLine                   string with a default
//   email, homepage, birthdate  string with format email, uri, date
//   integer                     integer, 1 to 100, default 42
//   number                      number, 0 to 1000, default 3.14
//   untitledSingleSelectEnum    string with enum, default
//   untitledMultipleSelectEnum  array of 1 to 3, items string with enum, default
//   titledSingleSelectEnum      string with oneOf of const and title, default
//   titledMultipleSelectEnum    array of 1 to 3, items anyOf of const and title, default
//   legacyTitledEnum            string with enum and enumNames, default
//
// Its result ends with the text "Raw result: " and the client's answer as JSON. The server waits ten minutes.
// `trigger-url-elicitation` takes `url` and sends `mode: "url"`, `message`, `url` and an `elicitationId`; with
// `errorPath: true` it answers error -32042 instead. Both tools exist only for a client that declared the capability,
// and appear after `notifications/initialized`, followed by `notifications/tools/list_changed`.
import assert from "node:assert/strict";
import test from "node:test";

import { connect, EVERYTHING, textOf } from "../lib/mcp.mjs";

const FIELDS = {
  name: ["type"],
  check: ["type"],
  firstLine: ["type", "default"],
  email: ["type", "format"],
  homepage: ["type", "format"],
  birthdate: ["type", "format"],
  integer: ["type", "minimum", "maximum", "default"],
  number: ["type", "minimum", "maximum", "default"],
  untitledSingleSelectEnum: ["type", "enum", "default"],
  untitledMultipleSelectEnum: ["type", "minItems", "maxItems", "items", "default"],
  titledSingleSelectEnum: ["type", "oneOf", "default"],
  titledMultipleSelectEnum: ["type", "minItems", "maxItems", "items", "default"],
  legacyTitledEnum: ["type", "enum", "enumNames", "default"],
};

/** The tools, once the server has added those that need a capability. */
async function toolNames({ client }) {
  const { tools } = await client.listTools();
  return tools.map((tool) => tool.name);
}

for (const protocolVersion of ["2025-06-18", "2025-11-25"]) {
  test(`the reference server elicits every field kind from the official client (${protocolVersion})`, async (t) => {
    const asked = [];
    const content = { name: "Ada", integer: 7 };
    const connection = await connect(t, EVERYTHING, {
      protocolVersion,
      onElicit(params) {
        asked.push(params);
        return { action: "accept", content };
      },
    });
    const result = await connection.client.callTool({ name: "trigger-elicitation-request", arguments: {} });

    assert.equal(asked.length, 1);
    const [{ mode, message, requestedSchema }] = asked;
    assert.ok(mode === undefined || mode === "form");
    assert.equal(message, "Please provide inputs for the following fields:");
    assert.deepEqual(requestedSchema.required, ["name"]);
    assert.deepEqual(Object.keys(requestedSchema.properties), Object.keys(FIELDS));
    for (const [name, keywords] of Object.entries(FIELDS)) {
      const own = Object.keys(requestedSchema.properties[name]).filter(
        (key) => !["title", "description"].includes(key),
      );
      assert.deepEqual(own.sort(), [...keywords].sort(), name);
    }
    const raw = textOf(result).split("Raw result: ")[1];
    assert.deepEqual(JSON.parse(raw), { action: "accept", content });
  });
}

test("a decline and a cancel are told apart by the reference server", async (t) => {
  const answers = ["decline", "cancel"];
  const { client } = await connect(t, EVERYTHING, { onElicit: () => ({ action: answers.shift() }) });
  const call = () => client.callTool({ name: "trigger-elicitation-request", arguments: {} });
  assert.match(textOf(await call()), /User declined/);
  assert.match(textOf(await call()), /User cancelled/);
});

test("the reference server asks for consent to open a URL", async (t) => {
  let asked;
  const { client } = await connect(t, EVERYTHING, {
    onElicit(params) {
      asked = params;
      return { action: "accept" };
    },
  });
  const url = "https://example.com/connect?state=1";
  const result = await client.callTool({ name: "trigger-url-elicitation", arguments: { url, elicitationId: "e-1" } });
  assert.deepEqual(asked, {
    mode: "url",
    url,
    message: "Please open the link to complete this action.",
    elicitationId: "e-1",
  });
  assert.match(textOf(result), /User completed the URL elicitation flow/);
});

test("a client without the elicitation capability is not offered the eliciting tools", async (t) => {
  const names = await toolNames(await connect(t, EVERYTHING));
  assert.ok(names.includes("echo"));
  assert.deepEqual(
    names.filter((name) => name.includes("elicitation")),
    [],
  );
});
