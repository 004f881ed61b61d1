// The inbox in Chromium, with and without JavaScript, on a phone and on a desk: every page is free of what axe finds, of
// sideways scrolling and of inline code, and what a person does there reaches the agent.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { openBrowser, openPage, WIDTHS } from "../lib/browser.mjs";
import { EVERY_FIELD, rawResult } from "../lib/everything.mjs";
import { openHouse } from "../lib/house.mjs";
import { hasFocus, isSound } from "../lib/inbox.mjs";
import { behindGateway, connect, EVERYTHING, textOf } from "../lib/mcp.mjs";

const browser = await openBrowser({ after });
const KINDS = Object.keys(WIDTHS).flatMap((device) => [true, false].map((javaScript) => ({ device, javaScript })));

async function openGateway(t) {
  const house = await openHouse(t);
  return { house, ...(await connect(t, behindGateway(house.data, "everything", EVERYTHING))) };
}

function ask(client) {
  return client.callTool({ name: "trigger-elicitation-request", arguments: {} });
}

/** Fills every field of the reference server's form with something that is not its default. */
async function fillEveryField(page) {
  const group = (role, name) => page.getByRole(role, { name });
  await page.getByLabel("String (required)").fill(EVERY_FIELD.name);
  await group("radiogroup", "Boolean (optional)").getByLabel("Yes").check();
  await page.getByLabel("String with default (optional)").fill(EVERY_FIELD.firstLine);
  await page.getByLabel("String with email format (optional)").fill(EVERY_FIELD.email);
  await page.getByLabel("String with uri format (optional)").fill(EVERY_FIELD.homepage);
  await page.getByLabel("String with date format (optional)").fill(EVERY_FIELD.birthdate);
  await page.getByLabel("Integer (optional)").fill("7");
  await page.getByLabel("Number in range 1-1000 (optional)").fill("2.5");
  await page.getByLabel("Untitled Single Select Enum (optional)").selectOption("Joey");
  const instruments = group("group", "Untitled Multiple Select Enum (optional)");
  await instruments.getByLabel("Guitar").uncheck();
  for (const one of EVERY_FIELD.untitledMultipleSelectEnum) await instruments.getByLabel(one).check();
  await group("radiogroup", "Titled Single Select Enum (optional)").getByLabel("Green Lantern").check();
  const fish = group("group", "Titled Multiple Select Enum (optional)");
  await fish.getByLabel("Tuna").uncheck();
  for (const one of ["Salmon", "Trout"]) await fish.getByLabel(one).check();
  await group("radiogroup", "Legacy Titled Single Select Enum (optional)").getByLabel("Fish").check();
}

describe("the reference server's form in the browser", { concurrency: 2 }, () => {
  for (const { device, javaScript } of KINDS) {
    const kind = `${device}-${javaScript ? "script" : "plain"}`;
    test(`is answered from a one-time link to the history (${kind})`, async (t) => {
      const { house, client } = await openGateway(t);
      const page = await openPage(t, browser, { width: WIDTHS[device], javaScript });
      const link = await house.login();
      await page.goto(link);
      await isSound(page, `${kind}-login`);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByText("Nothing is waiting.").waitFor();
      await isSound(page, `${kind}-empty`);

      const call = ask(client);
      const { round_id } = await house.asked();
      if (!javaScript) await page.getByRole("link", { name: "Look for new questions" }).click();
      await page.getByRole("link", { name: "everything asks for information" }).waitFor();
      await isSound(page, `${kind}-list`);
      await page.getByRole("link", { name: "everything asks for information" }).click();
      await page.getByRole("heading", { name: "everything asks for information" }).waitFor();
      assert.match(await page.locator("main").innerText(), /Please provide inputs for the following fields:/);
      await isSound(page, `${kind}-round`);

      await fillEveryField(page);
      await page.getByLabel("String (required)").fill("");
      await page.getByLabel("Integer (optional)").fill("500");
      await page.getByLabel("Number in range 1-1000 (optional)").fill("many");
      await page.getByLabel("Tuna").check();
      await page.getByLabel("Untitled Single Select Enum (optional)").selectOption("Ross");
      for (const one of ["Guitar", "Violin"]) await page.getByLabel(one).check();
      await page.getByRole("button", { name: "Send answer" }).click();
      await page.getByRole("heading", { name: "4 things need your attention" }).waitFor();
      await hasFocus(page, "problems");
      await isSound(page, `${kind}-invalid`);
      await errorsAreTied(page);
      assert.match(await page.title(), /^Error: /);
      assert.equal(await page.getByLabel("Number in range 1-1000 (optional)").inputValue(), "many");
      assert.equal(await page.getByLabel("String with uri format (optional)").inputValue(), EVERY_FIELD.homepage);
      assert.equal(await page.getByLabel("Untitled Single Select Enum (optional)").inputValue(), "4");
      assert.equal(await page.getByLabel("Violin").isChecked(), true);
      assert.equal((await house.people.round(round_id)).status, "pending");

      for (const one of ["Guitar", "Violin"]) await page.getByLabel(one).uncheck();
      await fillEveryField(page);
      await page.getByRole("button", { name: "Send answer" }).click();
      await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
      assert.deepEqual(rawResult(textOf(await call)), { action: "accept", content: EVERY_FIELD });
      const { answered } = await house.over(round_id);
      assert.deepEqual([answered.principal, answered.channel], ["person ada", "inbox"]);
      await page.reload();
      assert.match(
        await page.locator("main").innerText(),
        /The agent has it and went on\.[^]*Call me Ishmael\.[^]*Green Lantern/,
      );
      await isSound(page, `${kind}-answered`);
      await page.getByRole("link", { name: "execution" }).click();
      await page.getByText("completed").waitFor();
      await isSound(page, `${kind}-execution`);
      await page.getByRole("link", { name: "History" }).click();
      await page.getByText("Answered by ada via inbox").waitFor();
      await isSound(page, `${kind}-history`);

      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Log in to Sayso" }).waitFor();
      await isSound(page, `${kind}-logged-out`);
      await page.goto(link);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("heading", { name: "This link has been used or is too old" }).waitFor();
      await isSound(page, `${kind}-used-link`);
      await page.goto(`${house.address}/rounds/${round_id}`);
      assert.equal(new URL(page.url()).pathname, "/login");
    });
  }
});

/** Every error of the summary leads to a control that is marked as wrong and described by the error's words. */
async function errorsAreTied(page) {
  const links = await page.locator("#problems a").all();
  assert.equal(links.length, 4);
  for (const link of links) {
    const words = await link.innerText();
    const target = page.locator(await link.getAttribute("href"));
    const found = await target.evaluate((element) => {
      const marked = element.closest('[aria-invalid="true"]') ?? element;
      const describing =
        element.getAttribute("aria-describedby") ??
        element.closest("[aria-describedby]")?.getAttribute("aria-describedby");
      const said = (describing ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "");
      return { invalid: marked.getAttribute("aria-invalid"), said: said.join(" ") };
    });
    assert.equal(found.invalid, "true", words);
    assert.ok(found.said.includes(`Error: ${words}`), `${words}: ${found.said}`);
  }
}
