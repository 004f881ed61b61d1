// The other pages of the inbox in Chromium: declining, addresses, several requests at once, and other kinds of fields.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, describe, test } from "node:test";

import { openBrowser, WIDTHS } from "../lib/browser.mjs";
import { rawResult } from "../lib/everything.mjs";
import { openHouse } from "../lib/house.mjs";
import { isSound, openInbox } from "../lib/inbox.mjs";
import { behindGateway, connect, EVERYTHING, textOf } from "../lib/mcp.mjs";

const browser = await openBrowser({ after });

async function openGateway(t) {
  const house = await openHouse(t);
  return { house, ...(await connect(t, behindGateway(house.data, "everything", EVERYTHING))) };
}

function ask(client) {
  return client.callTool({ name: "trigger-elicitation-request", arguments: {} });
}

describe("in the browser", { concurrency: 3 }, () => {
  async function open(t, { device = "desk", javaScript = true, house } = {}) {
    const opened = house ?? (await openHouse(t));
    return { house: opened, page: await openInbox(t, browser, opened, { width: WIDTHS[device], javaScript }) };
  }

  test("a decline goes with its reason", async (t) => {
    const { house, client } = await openGateway(t);
    const { page } = await open(t, { house });
    const call = ask(client);
    await page.goto(`${house.address}/rounds/${(await house.asked()).round_id}`);
    await page.getByLabel("Reason, if you decline (optional)").fill("not this week");
    await page.getByRole("button", { name: "Decline" }).click();
    await page.getByRole("heading", { name: "Declined by ada" }).waitFor();
    await isSound(page, "declined");
    assert.match(await page.locator("main").innerText(), /Declined, because:\s+not this week/);
    assert.deepEqual(rawResult(textOf(await call)), {
      action: "decline",
      _meta: { "dev.sayso/reason": "not this week" },
    });
  });

  test("a dismissal is no decision, and needs no complete form", async (t) => {
    const { house, client } = await openGateway(t);
    const { page } = await open(t, { house, javaScript: false });
    const call = ask(client);
    await page.goto(`${house.address}/rounds/${(await house.asked()).round_id}`);
    await page.getByLabel("Integer (optional)").fill("many");
    await page.getByRole("button", { name: "Dismiss without deciding" }).click();
    await page.getByRole("heading", { name: "Dismissed by ada" }).waitFor();
    await isSound(page, "dismissed");
    assert.deepEqual(rawResult(textOf(await call)), { action: "cancel" });
  });

  for (const javaScript of [true, false]) {
    test(`an address is opened by nobody but the person, JavaScript ${javaScript ? "on" : "off"}`, async (t) => {
      const { house, page } = await open(t, { device: "phone", javaScript });
      const visited = await visits(t);
      const url = `${visited.address}/connect?state=1`;
      const { round_id } = await house.agents.ask({ consent: { kind: "url", message: "Connect your account", url } });
      await page.goto(`${house.address}/rounds/${round_id}`);
      const shown = await page.locator("main").innerText();
      assert.ok(shown.includes(url), shown);
      assert.match(shown, /Host: 127\.0\.0\.1/);
      assert.match(shown, /Warning: This address does not use https/);
      await isSound(page, `url-${javaScript}`);
      assert.equal(visited.count, 0);
      const [tab] = await Promise.all([
        page.context().waitForEvent("page"),
        page.getByRole("link", { name: "Open it in a new tab" }).click(),
      ]);
      await tab.waitForLoadState();
      assert.equal(visited.count, 1);
      assert.equal(visited.referrer, undefined);
      await tab.close();
      await page.getByRole("button", { name: "I consent to open it" }).click();
      await page.getByRole("heading", { name: "Consented to by ada" }).waitFor();
      await isSound(page, `url-consented-${javaScript}`);
      const { body } = await house.agents.collect(round_id, { key: "c" });
      assert.deepEqual(body.responses, { consent: { action: "accept" } });
      assert.equal(visited.count, 1);
    });
  }

  test("a host that may imitate another is warned of, and what is no web address is no link", async (t) => {
    const { house, page } = await open(t, { device: "phone" });
    const lookAlike = "https://bank.example@xn--80ak6aa92e.com/oauth/authorize?redirect=https%3A%2F%2Fexample.com";
    const asked = await house.agents.ask({
      a: { kind: "url", message: "Connect", url: lookAlike },
      b: { kind: "url", message: "Run", url: "javascript:alert(1)" },
    });
    await page.goto(`${house.address}/rounds/${asked.round_id}`);
    const shown = await page.locator("main").innerText();
    assert.match(shown, /Host: xn--80ak6aa92e\.com/);
    assert.match(shown, /punycode/);
    assert.match(shown, /There is a user name before the host/);
    assert.match(shown, /This is not a web address/);
    assert.deepEqual(await page.locator("main a[target]").evaluateAll((all) => all.map((link) => link.href)), [
      lookAlike,
    ]);
    await isSound(page, "url-odd");
  });

  for (const { device, javaScript } of [
    { device: "phone", javaScript: false },
    { device: "desk", javaScript: true },
  ]) {
    test(`several requests are answered together, JavaScript ${javaScript ? "on" : "off"}`, async (t) => {
      const { house, page } = await open(t, { device, javaScript });
      const { round_id } = await house.agents.ask({
        address: {
          kind: "form",
          message: "Where to?",
          schema: { type: "object", properties: { street: { type: "string" } }, required: ["street"] },
        },
        target: {
          kind: "choice",
          question: "Deploy where?",
          options: [{ label: "staging", description: "Safe" }, { label: "production" }],
        },
        note: { kind: "text", question: "Anything else?" },
        call: {
          kind: "approval",
          tool: "github:issues.create",
          arguments: { title: "Deploy failed", body: "x\u202ey" },
          preview: ["Creates an issue"],
        },
        consent: { kind: "url", message: "Connect your account", url: "https://example.com/" },
      });
      await page.goto(`${house.address}/rounds/${round_id}`);
      await isSound(page, `several-${device}`);
      await page.getByLabel("Other: your own words").fill("nowhere");
      await page.getByRole("button", { name: "Send all answers" }).click();
      await page.getByRole("heading", { name: /need your attention/ }).waitFor();
      await isSound(page, `several-invalid-${device}`);
      assert.equal(await page.getByLabel("Other: your own words").inputValue(), "nowhere");
      await page.getByLabel("Other: your own words").fill("");
      await page.getByLabel("street (required)").fill("1 Main Street");
      await page.getByLabel("staging").check();
      await page.locator("#r2-answer").fill("No.\nReally.");
      await page.locator("#r3-action").getByLabel("Deny").check();
      await page.locator("#r3-reason").fill("too early");
      await page.locator("#r4-action").getByLabel("Dismiss without deciding").check();
      await page.getByRole("button", { name: "Send all answers" }).click();
      await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
      await isSound(page, `several-answered-${device}`);
      const { body } = await house.agents.collect(round_id, { key: "c" });
      assert.deepEqual(body.responses, {
        address: { action: "accept", content: { street: "1 Main Street" } },
        target: { action: "accept", content: { answer: ["staging"] } },
        note: { action: "accept", content: { answer: ["No.\nReally."] } },
        call: { action: "decline", reason: "too early" },
        consent: { action: "cancel" },
      });
    });
  }

  test("a field of every other kind is filled, dates with times and nested data among them", async (t) => {
    const { house, page } = await open(t, { device: "phone" });
    const properties = {
      at: { type: "string", format: "date-time", title: "Moment" },
      zip: { type: "string", pattern: "^[0-9]{5}$", title: "Postcode" },
      notes: { type: "string", maxLength: 400, title: "Notes" },
      // More members than are named: it is entered as JSON.
      customs: {
        type: "object",
        title: "Customs",
        properties: { code: { type: "string" } },
        required: ["code"],
        additionalProperties: {},
      },
    };
    const schema = { type: "object", properties, required: Object.keys(properties) };
    const { round_id } = await house.agents.ask({ form: { kind: "form", message: "More", schema } });
    await page.goto(`${house.address}/rounds/${round_id}`);
    await page.getByLabel("Moment (required)").fill("2026-01-31T09:30");
    await page.getByLabel("Offset from UTC").fill("+05:30");
    await page.getByLabel("Postcode (required)").fill("123");
    await page.getByLabel("Notes (required)").fill("two\nlines");
    await page.getByLabel("Customs (required)").fill('{"code": 7}');
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByRole("heading", { name: "2 things need your attention" }).waitFor();
    await isSound(page, "other-kinds-invalid");
    assert.match(await page.locator("#problems").innerText(), /Customs \(at \/code\)/);
    assert.equal(await page.getByLabel("Notes (required)").inputValue(), "two\nlines");
    await page.getByLabel("Postcode (required)").fill("12345");
    await page.getByLabel("Customs (required)").fill('{"code": "A1"}');
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
    const { body } = await house.agents.collect(round_id, { key: "c" });
    const content = { at: "2026-01-31T09:30:00+05:30", zip: "12345", notes: "two\nlines", customs: { code: "A1" } };
    assert.deepEqual(body.responses.form.content, content);
  });
});

/** A server on this machine that counts its visits. */
async function visits(t) {
  const visited = { count: 0 };
  const server = createServer((request, response) => {
    if (request.url.startsWith("/connect")) {
      visited.count += 1;
      visited.referrer = request.headers.referer;
    }
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>t</title>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  visited.address = `http://127.0.0.1:${server.address().port}`;
  return visited;
}
