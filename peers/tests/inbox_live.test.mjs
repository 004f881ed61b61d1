// What happens while a page of the inbox is open, and what tries to get into one: answers from elsewhere, questions that
// are taken back, a session that ends, the keyboard alone, hostile texts and foreign code.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { openBrowser, WIDTHS } from "../lib/browser.mjs";
import { openHouse } from "../lib/house.mjs";
import { hasFocus, isSound, openInbox } from "../lib/inbox.mjs";
import { behindGateway, connect, textOf, WITHDRAWING } from "../lib/mcp.mjs";

const browser = await openBrowser({ after });

const ADDRESS = {
  kind: "form",
  message: "Where to?",
  schema: {
    type: "object",
    properties: { street: { type: "string" }, city: { type: "string" }, gift: { type: "boolean" } },
    required: ["street"],
  },
};
const TYPED = "1 Main Street, at the back";
const HOSTILE = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">\u202Egnp.exe\u200B`;

async function open(t, { device = "desk", javaScript = true } = {}) {
  const house = await openHouse(t);
  return { house, page: await openInbox(t, browser, house, { width: WIDTHS[device], javaScript }) };
}

async function openRound(page, house, round_id) {
  await page.goto(`${house.address}/rounds/${round_id}`);
  await page.getByLabel("street (required)").fill(TYPED);
}

function elsewhere(house, round_id) {
  const responses = { address: { action: "accept", content: { street: "2 Side Street" } } };
  return house.people.answer(round_id, responses, { key: "elsewhere" });
}

describe("while a page is open", { concurrency: 3 }, () => {
  test("the list gains and loses rounds without being loaded again", async (t) => {
    const { house, page } = await open(t, { device: "phone" });
    const loads = [];
    page.on("load", () => loads.push(page.url()));
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    await page.getByRole("link", { name: "booking asks for information" }).waitFor();
    assert.match(await page.title(), /^\(1\) /);
    await page.getByRole("status").getByText("1 question is waiting").waitFor();
    await house.agents.ask({ address: ADDRESS });
    await page.getByText("2 questions are waiting, the longest waiting first.").waitFor();
    await isSound(page, "live-two");
    await elsewhere(house, round_id);
    await page.getByText("1 question is waiting.").waitFor();
    assert.deepEqual(loads, []);
  });

  test("an answer from elsewhere is told at once, and what was typed stays to be copied", async (t) => {
    const { house, page } = await open(t, { device: "phone" });
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    await openRound(page, house, round_id);
    await elsewhere(house, round_id);
    await page.getByRole("heading", { name: "Answered by ada via http" }).waitFor();
    await isSound(page, "elsewhere-script");
    assert.equal(await page.getByLabel("street (required)").inputValue(), TYPED);
    for (const button of await page.locator("form[data-answer] button").all())
      assert.equal(await button.isDisabled(), true);
  });

  test("an answer that comes too late is not used, and its text is kept, without a script", async (t) => {
    const { house, page } = await open(t, { device: "phone", javaScript: false });
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    await openRound(page, house, round_id);
    await elsewhere(house, round_id);
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByRole("heading", { name: "What you typed was not used" }).waitFor();
    await isSound(page, "elsewhere-plain");
    const shown = await page.locator("main").innerText();
    assert.ok(shown.includes(TYPED), shown);
    assert.match(shown, /Answered by ada via http/);
    const { body } = await house.agents.collect(round_id, { key: "c" });
    assert.deepEqual(body.responses.address.content, { street: "2 Side Street" });
  });

  for (const javaScript of [true, false]) {
    const script = javaScript ? "on" : "off";
    test(`a question that is taken back says so and keeps what was typed, JavaScript ${script}`, async (t) => {
      const { house, page } = await open(t, { javaScript });
      const { client } = await connect(t, behindGateway(house.data, "withdrawing", WITHDRAWING));
      const call = client.callTool({ name: "ask", arguments: {} });
      const { round_id } = await house.asked();
      await page.goto(`${house.address}/rounds/${round_id}`);
      await page.getByLabel("city (required)").fill(TYPED);
      await client.callTool({ name: "withdraw", arguments: {} });
      await call;
      if (!javaScript) await page.getByRole("button", { name: "Send answer" }).click();
      await page.getByRole("heading", { name: "Withdrawn" }).waitFor();
      await isSound(page, `withdrawn-${javaScript}`);
      if (javaScript) assert.equal(await page.getByLabel("city (required)").inputValue(), TYPED);
      else assert.ok((await page.locator("main").innerText()).includes(TYPED));

      // The question goes on without its server, and what is answered now is used when the call is made again.
      const later = await house.asked();
      await page.goto(`${house.address}/rounds/${later.round_id}`);
      await page.getByText(/Last time, withdrawing took its question back after \d+ second/).waitFor();
      await isSound(page, `goes-on-${javaScript}`);
      await page.getByLabel("city (required)").fill("Pune");
      await page.getByRole("button", { name: "Send answer" }).click();
      await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
      const again = await client.callTool({ name: "ask", arguments: {} });
      assert.equal(textOf(again), 'Answered: {"action":"accept","content":{"city":"Pune"}}');
    });
  }

  test("a session that has ended keeps what was typed on the page", async (t) => {
    const { house, page } = await open(t, { device: "phone", javaScript: false });
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    await openRound(page, house, round_id);
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByRole("heading", { name: "Your answer was not sent" }).waitFor();
    await isSound(page, "session-ended");
    assert.ok((await page.locator("main").innerText()).includes(TYPED));
    assert.equal((await house.people.round(round_id)).status, "pending");
  });
});

describe("by keyboard and against it", { concurrency: 3 }, () => {
  test("every control is reached in reading order, and an answer is sent without a mouse", async (t) => {
    const { house, page } = await open(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    await page.goto(`${house.address}/rounds/${round_id}`);
    const reached = [];
    for (;;) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const { activeElement: element } = document;
        return element === document.body ? "" : element.innerText || element.name || element.id;
      });
      if (at === "" || at === reached[0]) break;
      reached.push(at.trim());
    }
    const names = [
      "Skip to the content",
      "Sayso",
      "Waiting",
      "History",
      "Grants",
      "Log out",
      "← All waiting questions",
      "execution",
    ];
    const controls = ["r0-f0", "r0-f1", "r0-f2", "Send answer", "r0-reason", "Decline", "Dismiss without deciding"];
    assert.deepEqual(reached, [...names, ...controls]);

    await page.reload();
    for (const _ of names) await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "One thing needs your attention" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await hasFocus(page, "r0-f0");
    await page.keyboard.type("1 Main Street");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Pune");
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
    const { body } = await house.agents.collect(round_id, { key: "c" });
    assert.equal(body.responses.address.content.street, "1 Main Street");
    assert.equal(body.responses.address.content.city, "Pune");
    assert.equal(typeof body.responses.address.content.gift, "boolean");
  });

  test("hostile texts are shown as texts, and what hides in them is made visible", async (t) => {
    const { house, page } = await open(t, { device: "phone" });
    const schema = {
      type: "object",
      properties: {
        [HOSTILE]: { type: "string", title: HOSTILE, description: HOSTILE, enum: [HOSTILE, "b"], default: HOSTILE },
      },
    };
    const { round_id } = await house.agents.ask(
      { [HOSTILE]: { kind: "form", message: HOSTILE, schema } },
      {
        server: HOSTILE.replaceAll(":", ""),
        operation_name: HOSTILE,
        calls: [{ name: HOSTILE, arguments: { [HOSTILE]: HOSTILE } }],
      },
    );
    for (const path of ["/", `/rounds/${round_id}`]) {
      await page.goto(house.address + path);
      await isSound(page, `hostile-${path.length}`);
      const shown = await page.locator("main").innerText();
      assert.ok(shown.includes("<script>document.title=") && shown.includes("⟦U+202E⟧gnp.exe⟦U+200B⟧"), shown);
      assert.ok(!shown.includes("\u202e") && !shown.includes("\u200b"));
      assert.match(await page.title(), /· Sayso$/);
      assert.deepEqual(await page.locator("main img, main script").all(), []);
    }
    await page.getByRole("button", { name: "Send answer" }).click();
    await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
    await isSound(page, "hostile-answered");
    await page.goto(`${house.address}/history`);
    await isSound(page, "hostile-history");
    const { body } = await house.agents.collect(round_id, { key: "c" });
    assert.deepEqual(body.responses[HOSTILE].content, { [HOSTILE]: HOSTILE });
  });

  test("code that gets into a page is not run, and the page reaches nobody else", async (t) => {
    const { house, page } = await open(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    const response = await page.goto(`${house.address}/rounds/${round_id}`);
    const policy = response.headers()["content-security-policy"];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|data:|https?:/);
    const outcome = await page.evaluate(async () => {
      const blocked = new Set();
      const allBlocked = new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
          if (blocked.add(effectiveDirective).size === 3) resolve();
        });
      });
      const script = document.createElement("script");
      script.textContent = "document.title = 'owned'";
      document.body.append(script);
      const button = document.createElement("button");
      button.setAttribute("onclick", "document.title = 'owned'");
      document.body.append(button);
      button.click();
      const fetched = await fetch("http://localhost:1/", { mode: "no-cors" }).then(
        () => "fetched",
        () => "refused",
      );
      await allBlocked;
      return { fetched, title: document.title, blocked: [...blocked].sort() };
    });
    assert.equal(outcome.fetched, "refused");
    assert.doesNotMatch(outcome.title, /owned/);
    assert.deepEqual(outcome.blocked, ["connect-src", "script-src-attr", "script-src-elem"]);
    const framed = await page.evaluate(() =>
      fetch(location.href, { headers: { accept: "text/html" } }).then((r) => r.headers.get("x-frame-options")),
    );
    assert.equal(framed, "DENY");
  });

  test("a form that another site posts with the person's cookie is refused", async (t) => {
    const { house, page } = await open(t);
    const { round_id } = await house.agents.ask({ address: ADDRESS });
    const [cookie] = await page.context().cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Lax"]);
    const answer = await fetch(`${house.address}/rounds/${round_id}`, {
      method: "POST",
      headers: {
        cookie: `${cookie.name}=${cookie.value}`,
        origin: "https://evil.example",
        "content-type": "application/x-www-form-urlencoded",
      },
      body: "r0-action=decline",
    });
    assert.equal(answer.status, 403);
    assert.equal((await house.people.round(round_id)).status, "pending");
  });
});
