// Allowing more calls than the one that asks, in Chromium: from its card, on the list, and taken back; with and without
// JavaScript, on a phone and a desk.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { openBrowser, WIDTHS } from "../lib/browser.mjs";
import { openHouse } from "../lib/house.mjs";
import { hasFocus, isSound, openInbox } from "../lib/inbox.mjs";
import { behindGateway, connect, EVERYTHING, textOf } from "../lib/mcp.mjs";

const browser = await openBrowser({ after });
const BOTH = [
  { device: "phone", javaScript: false },
  { device: "desk", javaScript: true },
];

/** What the gate says of a call of the agent. */
async function gate(house, args, session = "order-17") {
  const body = { session_id: session, tool: "bank:transfer", arguments: args };
  const { status, body: gated } = await house.agents.call("POST", "/v1/gate", { body });
  assert.equal(status, 200, JSON.stringify(gated));
  return gated;
}

const ACME = { to: "acme", amount: 120.5, note: "rent\u202etner" };

describe("what is allowed beforehand", { concurrency: 3 }, () => {
  for (const { device, javaScript } of BOTH) {
    const kind = `${device}-${javaScript ? "script" : "plain"}`;

    async function open(t) {
      const house = await openHouse(t);
      return { house, page: await openInbox(t, browser, house, { width: WIDTHS[device], javaScript }) };
    }

    async function offer(house, page, args, button) {
      const { round } = await gate(house, args);
      await page.goto(`${house.address}/rounds/${round.round_id}`);
      await page.getByText("Approve, and allow more calls like it").click();
      await isSound(page, `allow-offer-${kind}`);
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.getByRole("heading", { name: "Allow more calls like this one?" }).waitFor();
    }

    test(`a session is allowed, used, listed, and taken back (${kind})`, async (t) => {
      const { house, page } = await open(t);
      await page.getByRole("link", { name: "Grants" }).click();
      await page.getByText("Nothing is allowed beforehand.").waitFor();
      await isSound(page, `grants-empty-${kind}`);
      await offer(house, page, ACME, "Approve for this session");
      const shown = await page.locator("main").innerText();
      for (const part of ["order-17", "agent booking", "⟦U+202E⟧", "Any"]) assert.ok(shown.includes(part), part);
      await isSound(page, `allow-session-${kind}`);
      await page.getByLabel("Ends after (optional)").fill("soon");
      // Enter in a control allows nothing.
      await page.getByLabel("Ends after (optional)").press("Enter");
      await page.getByRole("heading", { name: "One thing needs your attention" }).waitFor();
      await isSound(page, `allow-invalid-${kind}`);
      await page.getByRole("link", { name: "The time must be a whole number" }).click();
      await hasFocus(page, "allow-length");
      await page.getByLabel("Ends after (optional)").fill("2");
      await page.getByLabel("Unit").selectOption("days");
      await page.getByLabel("Number of calls (optional)").fill("3");
      await page.getByLabel("Number of calls (optional)").press("Enter");
      await page.getByRole("heading", { name: "Allow more calls like this one?" }).waitFor();
      assert.equal(house.events.count("grant_added"), 0);
      await page.getByRole("button", { name: "Approve and allow" }).click();
      await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
      await isSound(page, `allow-done-${kind}`);

      assert.equal((await gate(house, ACME)).verdict, "allow");
      const other = await gate(house, { to: "zulu" });
      assert.deepEqual([other.verdict, typeof other.grant_id], ["allow", "string"]);
      await page.getByRole("link", { name: "Grants" }).click();
      await page.getByText("2 of 3 uses left").waitFor();
      await isSound(page, `grants-list-${kind}`);
      await page.getByRole("link", { name: "bank:transfer in session order-17", exact: true }).click();
      await page.getByRole("heading", { name: "Calls that it let run" }).waitFor();
      assert.match(await page.locator("ul.given").innerText(), /by agent booking/);
      await isSound(page, `grant-${kind}`);
      await page.getByRole("link", { name: "Take back" }).click();
      await page.getByRole("heading", { name: "Take this back?" }).waitFor();
      await isSound(page, `grant-revoking-${kind}`);
      assert.equal((await gate(house, { to: "zulu" })).verdict, "allow");
      await page.getByRole("button", { name: "Take it back" }).click();
      await page.locator(".badge", { hasText: "Taken back" }).waitFor();
      await isSound(page, `grant-revoked-${kind}`);
      assert.equal((await gate(house, { to: "zulu" })).verdict, "ask");
      await page.goto(`${house.address}/grants?show=all`);
      await isSound(page, `grants-all-${kind}`);
    });

    test(`a rule is drafted from the call, and widened as far as was shown (${kind})`, async (t) => {
      const { house, page } = await open(t);
      await offer(house, page, { to: "acme", amount: 120.5 }, "Approve by a rule drafted from this call");
      assert.match(await page.locator("main").innerText(), /\/to is "acme"[^]*\/amount is 120.5/);
      await isSound(page, `allow-rule-${kind}`);
      await page.getByLabel("amount", { exact: true }).check();
      await page.getByRole("button", { name: "Approve and allow" }).click();
      await page.getByRole("heading", { name: "Look again before you allow it" }).waitFor();
      assert.doesNotMatch(await page.locator("main").innerText(), /\/amount is/);
      await isSound(page, `allow-rule-wider-${kind}`);
      await page.getByRole("button", { name: "Approve and allow" }).click();
      await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
      assert.equal((await gate(house, { to: "acme", amount: 7 }, "order-18")).verdict, "allow");
      assert.equal((await gate(house, { to: "zulu", amount: 7 }, "order-18")).verdict, "ask");
      await page.goto(`${house.address}/grants`);
      await page.getByText("The conditions").click();
      await isSound(page, `grants-rule-${kind}`);
    });

    test(`a grant with these arguments says which (${kind})`, async (t) => {
      const { house, page } = await open(t);
      await offer(house, page, ACME, "Approve with these arguments for this session");
      assert.match(await page.locator("main").innerText(), /Exactly these/);
      await isSound(page, `allow-pinned-${kind}`);
      await page.getByRole("button", { name: "Approve and allow" }).click();
      await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
      await gate(house, ACME);
      assert.equal((await gate(house, ACME)).verdict, "allow");
      assert.equal((await gate(house, { ...ACME, amount: 1 })).verdict, "ask");
      await page.goto(`${house.address}/grants`);
      await page.getByText("The arguments").click();
      assert.ok((await page.locator("main").innerText()).includes("120.5"));
      await isSound(page, `grants-pinned-${kind}`);
    });
  }

  test("a call behind a gateway is approved for its session, and the next one runs at once", async (t) => {
    const house = await openHouse(t);
    const policy = join(house.data, "policy.toml");
    await writeFile(policy, '[[rule]]\nid = "echo"\nask = ["everything:echo"]\n');
    const { client } = await connect(t, behindGateway(house.data, "everything", EVERYTHING, ["--policy", policy]));
    const page = await openInbox(t, browser, house);
    const say = (message) => client.callTool({ name: "echo", arguments: { message } });
    const first = say("one");
    await page.goto(`${house.address}/rounds/${(await house.asked()).round_id}`);
    await page.getByText("Approve, and allow more calls like it").click();
    await page.getByRole("button", { name: "Approve for this session", exact: true }).click();
    await page.getByRole("button", { name: "Approve and allow" }).click();
    await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
    assert.match(textOf(await first), /one/);
    assert.match(textOf(await say("two")), /two/);
    assert.equal(house.events.count("round_created"), 1);
    await page.getByRole("link", { name: /everything:echo in session/ }).click();
    await page.getByText("used once").waitFor();
    await isSound(page, "grant-gateway");
  });
});
