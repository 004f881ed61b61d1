// Calls that wait for approval, in Chromium: the card, edited arguments, input on the same card, several decided from the
// list, the keys, and a question that changes while its page is open; with and without JavaScript, on a phone and a desk.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { openBrowser, WIDTHS } from "../lib/browser.mjs";
import { openHouse } from "../lib/house.mjs";
import { hasFocus, isSound, openInbox } from "../lib/inbox.mjs";

const browser = await openBrowser({ after });
const BOTH = [
  { device: "phone", javaScript: false },
  { device: "desk", javaScript: true },
];

const PAY = {
  kind: "approval",
  tool: "bank:transfer",
  message: "Moves money from one account to another.\nAsk before you use it.",
  arguments: { to: "acme", amount: 120.5, note: "rent\u202etner" },
  preview: ["120.50 EUR to acme"],
  effects: ["write", "network"],
  rule: "operator/money",
  session: "ses-7",
};
const SHIP = {
  kind: "approval",
  tool: "x:ship",
  arguments: { city: "Pune", days: 3, parcels: [{ kg: 1.5 }] },
  effects: ["read"],
  arguments_schema: {
    type: "object",
    required: ["city"],
    properties: {
      city: { type: "string", title: "City" },
      days: { type: "integer", title: "Days", maximum: 9 },
      parcels: {
        type: "array",
        title: "Parcels",
        items: { type: "object", properties: { kg: { type: "number", title: "Weight" } }, required: ["kg"] },
      },
    },
  },
};
const PIN = { type: "object", required: ["pin"], properties: { pin: { type: "integer", title: "Pin" } } };

async function open(t, { device = "desk", javaScript = true } = {}) {
  const house = await openHouse(t);
  return { house, page: await openInbox(t, browser, house, { width: WIDTHS[device], javaScript }) };
}

/** What was answered to the one request `call` of a round. */
async function given(house, id) {
  return (await house.agents.collect(id, { key: "c" })).body.responses.call;
}

describe("a call that waits for approval", { concurrency: 3 }, () => {
  for (const { device, javaScript } of BOTH) {
    const kind = `${device}-${javaScript ? "script" : "plain"}`;

    test(`is edited as JSON, and runs only after the changes were shown (${kind})`, async (t) => {
      const { house, page } = await open(t, { device, javaScript });
      const arguments_schema = {
        type: "object",
        properties: { to: { type: "string" }, amount: { type: "number", minimum: 1 }, note: { type: "string" } },
        required: ["to", "amount"],
      };
      const { round_id } = await house.agents.ask({ call: { ...PAY, arguments_schema } });
      await page.goto(`${house.address}/rounds/${round_id}`);
      const shown = await page.locator("main").innerText();
      for (const part of ["bank:transfer", "Ask before you use it.", "120.5", "⟦U+202E⟧", "It changes or deletes data", "120.50 EUR to acme", "operator/money", "ses-7"]) {
        assert.ok(shown.includes(part), `${part}: ${shown}`);
      }
      await page.getByText("Edit the arguments first").click();
      await isSound(page, `card-${kind}`);
      await page.getByLabel("The arguments, as JSON").fill('{"to": "acme", "amount": 0}');
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "One thing needs your attention" }).waitFor();
      await isSound(page, `card-invalid-${kind}`);
      await page.getByRole("link", { name: "The arguments (at /amount)" }).click();
      await hasFocus(page, "r0-arguments");
      await page.getByLabel("The arguments, as JSON").fill('{"to": "acme", "amount": 7.50}');
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "What you changed" }).waitFor();
      assert.match(await page.locator(".diff").innerText(), /− .*120\.5[^]*\+ .*7\.50/);
      await isSound(page, `card-changed-${kind}`);
      assert.equal((await house.people.round(round_id)).status, "pending");
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
      assert.match(await page.locator("main").innerText(), /Approved, with changed arguments:/);
      await isSound(page, `card-approved-${kind}`);
      assert.deepEqual(await given(house, round_id), {
        action: "accept",
        content: { arguments: { to: "acme", amount: 7.5 } },
      });
    });

    test(`is edited in fields, and needs its input (${kind})`, async (t) => {
      const { house, page } = await open(t, { device, javaScript });
      const { round_id } = await house.agents.ask({ call: { ...SHIP, schema: PIN } });
      await page.goto(`${house.address}/rounds/${round_id}`);
      await page.getByText("Edit the arguments first").click();
      assert.equal(await page.getByLabel("City (required)").inputValue(), "Pune");
      await page.getByRole("button", { name: "Add another to Parcels" }).click();
      await hasFocus(page, "r0-a2_1");
      await page.locator("#r0-a2_1_0").fill("heavy");
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "2 things need your attention" }).waitFor();
      await isSound(page, `fields-invalid-${kind}`);
      await page.getByRole("link", { name: "Parcels 2: Weight must be a number" }).click();
      await hasFocus(page, "r0-a2_1_0");
      await page.locator("#r0-a2_1_0").fill("2.25");
      await page.getByLabel("Pin (required)").fill("7");
      // Enter in a control decides nothing.
      await page.getByLabel("Pin (required)").press("Enter");
      await page.getByRole("heading", { name: "Not decided yet" }).waitFor();
      await isSound(page, `fields-changed-${kind}`);
      assert.equal((await house.people.round(round_id)).status, "pending");
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "Approved by ada" }).waitFor();
      await isSound(page, `fields-approved-${kind}`);
      assert.deepEqual((await given(house, round_id)).content, {
        arguments: { city: "Pune", days: 3, parcels: [{ kg: 1.5 }, { kg: 2.25 }] },
        input: { pin: 7 },
      });
    });

    test(`is decided with others from the list, each by itself (${kind})`, async (t) => {
      const { house, page } = await open(t, { device, javaScript });
      const calls = [];
      for (const to of ["one", "two", "three"]) {
        calls.push(await house.agents.ask({ call: { ...PAY, arguments: { to } } }));
      }
      await house.agents.ask({ call: { ...SHIP, schema: PIN } });
      await page.goto(`${house.address}/`);
      await isSound(page, `batch-list-${kind}`);
      assert.equal(await page.getByRole("checkbox").count(), 3);
      for (const { round_id } of calls.slice(0, 2)) await page.locator(`#pick-${round_id}`).check();
      await isSound(page, `batch-picked-${kind}`);
      const other = await house.people.answer(
        calls[1].round_id,
        { call: { action: "decline" } },
        { key: "k", digest: calls[1].digest },
      );
      assert.equal(other.status, 200, JSON.stringify(other.body));
      if (javaScript) {
        await page.locator(`#pick-${calls[1].round_id}`).waitFor({ state: "detached" });
        assert.equal(await page.locator(`#pick-${calls[0].round_id}`).isChecked(), true);
        await page.locator(`#pick-${calls[2].round_id}`).check();
      }
      await page.getByRole("button", { name: "Approve selected" }).click();
      await page.getByRole("heading", { name: javaScript ? "2 of 2 approved" : "1 of 2 approved" }).waitFor();
      if (!javaScript) assert.match(await page.locator("main").innerText(), /Answered already, by ada via http/);
      await isSound(page, `batch-done-${kind}`);
      assert.deepEqual(await given(house, calls[0].round_id), { action: "accept" });
    });

    test(`that changed while its page was open is asked again with what changed (${kind})`, async (t) => {
      const { house, page } = await open(t, { device, javaScript });
      const { owner_id } = (await house.agents.call("POST", "/v1/workers", { body: {} })).body;
      const begun = await house.agents.call("POST", "/v1/executions", { body: { owner_id } });
      assert.equal(begun.status, 201, JSON.stringify(begun.body));
      const place = { execution_id: begun.body.execution_id, logical_operation_id: "pay" };
      const first = await house.agents.ask({ call: { ...PAY, arguments: { to: "acme", amount: 1 } } }, place);
      await page.goto(`${house.address}/rounds/${first.round_id}`);
      await page.getByLabel("Reason, if you deny (optional)").fill("not yet");
      const failure = { code: "superseded", message: "the call is another now" };
      const failed = await house.agents.call("POST", `/v1/rounds/${first.round_id}/fail`, { body: failure });
      assert.equal(failed.status, 200, JSON.stringify(failed.body));
      if (javaScript) {
        await page.getByRole("heading", { name: "Superseded" }).waitFor();
        await isSound(page, `replaced-live-${kind}`);
        await house.agents.ask({ call: { ...PAY, arguments: { to: "acme", amount: 1000 } } }, place);
        await page.reload();
        await page.getByRole("link", { name: "Open the new question" }).waitFor();
        await isSound(page, `replaced-${kind}`);
        await page.getByRole("link", { name: "Open the new question" }).click();
      } else {
        const next = await house.agents.ask({ call: { ...PAY, arguments: { to: "acme", amount: 1000 } } }, place);
        await page.getByRole("button", { name: "Approve" }).click();
        await page.getByRole("heading", { name: "The question changed while you were looking at it" }).waitFor();
        assert.match(await page.locator(".diff").innerText(), /− .*"amount": 1[^]*\+ .*"amount": 1000/);
        await isSound(page, `replaced-${kind}`);
        assert.equal((await house.people.round(next.round_id)).status, "pending");
        assert.equal(await page.getByLabel("Reason, if you deny (optional)").inputValue(), "not yet");
      }
      await page.getByRole("button", { name: "Deny" }).click();
      await page.getByRole("heading", { name: "Denied by ada" }).waitFor();
    });
  }

  test("is reached, selected and decided by keys, which are off while somebody types and can be turned off", async (t) => {
    const { house, page } = await open(t);
    const first = await house.agents.ask({ call: { ...PAY, arguments: { to: "one" } } });
    const second = await house.agents.ask({ call: { ...PAY, arguments: { to: "two" } } });
    const form = { kind: "form", message: "Where to?", schema: { type: "object", properties: {} } };
    const third = await house.agents.ask({ form });
    await page.goto(`${house.address}/`);
    const focused = () => page.evaluate(() => document.activeElement.id);
    await page.getByText("Turn keys off").waitFor();
    for (const { round_id } of [first, second, third]) {
      await page.keyboard.press("j");
      await hasFocus(page, `card-${round_id}`);
    }
    await page.keyboard.press("k");
    await hasFocus(page, `card-${second.round_id}`);
    await page.keyboard.press("x");
    assert.equal(await page.locator(`#pick-${second.round_id}`).isChecked(), true);
    await page.keyboard.press("x");
    await page.locator("#batch-reason").focus();
    await page.keyboard.type("a jolly no");
    assert.equal(await page.locator("#batch-reason").inputValue(), "a jolly no");
    assert.equal(await page.getByRole("checkbox", { checked: true }).count(), 0);

    await page.getByRole("button", { name: "Turn keys off" }).click();
    await page.locator(`#card-${first.round_id}`).focus();
    await page.keyboard.press("j");
    assert.equal(await focused(), `card-${first.round_id}`);
    await page.getByRole("button", { name: "Keys are off: turn them on" }).click();
    await page.locator(`#card-${first.round_id}`).focus();
    await page.keyboard.press("d");
    await hasFocus(page, "batch-deny");
    assert.equal((await house.people.round(first.round_id)).status, "pending", "a key alone decides nothing");
    await isSound(page, "keys");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "1 of 1 denied" }).waitFor();
    assert.deepEqual(await given(house, first.round_id), { action: "decline", reason: "a jolly no" });
    await page.goto(`${house.address}/`);
    await page.locator(`#card-${second.round_id}`).focus();
    await page.keyboard.press("a");
    await hasFocus(page, "batch-approve");
    assert.equal(await page.locator(`#pick-${second.round_id}`).isChecked(), true);
    assert.equal((await house.people.round(second.round_id)).status, "pending", "a key alone decides nothing");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "1 of 1 approved" }).waitFor();
    assert.deepEqual(await given(house, second.round_id), { action: "accept" });
    // What needs more than a yes is opened by it.
    await page.goto(`${house.address}/`);
    await page.locator(`#card-${third.round_id}`).focus();
    await page.keyboard.press("a");
    await page.waitForURL(`**/rounds/${third.round_id}`);
    assert.equal((await house.people.round(third.round_id)).status, "pending");
    await page.goto(`${house.address}/`);
    await page.locator(`#card-${third.round_id}`).focus();
    await page.keyboard.press("o");
    await page.waitForURL(`**/rounds/${third.round_id}`);
  });
});
