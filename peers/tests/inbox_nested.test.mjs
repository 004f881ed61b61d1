// Nested objects as groups and lists of objects as rows, in Chromium, with and without JavaScript, on a phone and a desk.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import { openBrowser, WIDTHS } from "../lib/browser.mjs";
import { openHouse } from "../lib/house.mjs";
import { hasFocus, isSound, openInbox } from "../lib/inbox.mjs";

const browser = await openBrowser({ after });
const KINDS = Object.keys(WIDTHS).flatMap((device) => [true, false].map((javaScript) => ({ device, javaScript })));

const SHIPMENT = {
  kind: "form",
  message: "Where to, and what?",
  schema: {
    type: "object",
    required: ["to", "parcels"],
    properties: {
      to: {
        type: "object",
        title: "Address",
        description: "As on the parcel",
        required: ["street"],
        properties: {
          street: { type: "string", title: "Street", minLength: 3 },
          position: {
            type: "object",
            title: "Position",
            required: ["lat"],
            properties: { lat: { type: "number", title: "Latitude" }, lon: { type: "number", title: "Longitude" } },
          },
        },
      },
      back: {
        type: "object",
        title: "Return address",
        required: ["street"],
        properties: { street: { type: "string", title: "Street, back" }, land: { type: "string", default: "DE" } },
      },
      parcels: {
        type: "array",
        title: "Parcels",
        maxItems: 3,
        items: {
          type: "object",
          required: ["kg"],
          properties: {
            kg: { type: "number", title: "Weight", exclusiveMinimum: 0 },
            kind: { type: "string", title: "Kind", enum: ["box", "bag"] },
          },
        },
      },
    },
  },
};

describe("a form with groups and lists", { concurrency: 3 }, () => {
  for (const { device, javaScript } of KINDS) {
    const kind = `${device}-${javaScript ? "script" : "plain"}`;
    test(`is filled in, with rows added and removed and errors at their fields (${kind})`, async (t) => {
      const house = await openHouse(t);
      const page = await openInbox(t, browser, house, { width: WIDTHS[device], javaScript });
      const { round_id } = await house.agents.ask({ shipment: SHIPMENT });
      await page.goto(`${house.address}/rounds/${round_id}`);
      await isSound(page, `nested-${kind}`);
      const parcel = (number) => page.getByRole("group", { name: `Parcels ${number}`, exact: true });
      await page.getByLabel("Street (required)", { exact: true }).fill("ab");
      await page.getByLabel("Longitude (optional)").fill("7");
      await parcel(1).getByLabel("Weight (required)").fill("0");
      await page.getByRole("button", { name: "Add another to Parcels" }).click();
      await parcel(2).waitFor();
      await hasFocus(page, "r0-f2_1");
      assert.equal(await parcel(1).getByLabel("Weight (required)").inputValue(), "0");
      await parcel(2).getByLabel("Weight (required)").fill("2.50");
      await parcel(2).getByLabel("bag").check();
      await page.getByRole("button", { name: "Add another to Parcels" }).click();
      await parcel(3).waitFor();
      assert.equal(await page.getByRole("button", { name: "Add another to Parcels" }).count(), 0);
      // Enter in a field sends the form; it neither adds nor removes a row.
      await parcel(3).getByLabel("Weight (required)").press("Enter");
      await page.getByRole("heading", { name: "4 things need your attention" }).waitFor();
      await isSound(page, `nested-invalid-${kind}`);
      for (const [words, id] of [
        ["Address: Street must be at least 3 characters", "r0-f0_0"],
        ["Address: Position: Latitude is required", "r0-f0_1_0"],
        ["Parcels 1: Weight must be greater than 0", "r0-f2_0_0"],
        ["Parcels 3: Weight is required", "r0-f2_2_0"],
      ]) {
        await page.getByRole("link", { name: words }).click();
        await hasFocus(page, id);
        const control = page.locator(`#${id}`);
        assert.equal(await control.getAttribute("aria-invalid"), "true");
        const described = (await control.getAttribute("aria-describedby")).split(" ");
        const said = await page.locator(`#${described.at(-1)}`).innerText();
        assert.ok(said.includes(words), said);
      }
      await page.getByRole("button", { name: "Remove Parcels 1" }).click();
      await parcel(3).waitFor({ state: "detached" });
      assert.equal(await parcel(1).getByLabel("Weight (required)").inputValue(), "2.50");
      assert.equal(await parcel(1).getByLabel("bag").isChecked(), true);
      await page.getByRole("button", { name: "Remove Parcels 2" }).click();
      await parcel(2).waitFor({ state: "detached" });
      await page.getByLabel("Street (required)", { exact: true }).fill("Elm");
      await page.getByLabel("Longitude (optional)").fill("");
      await page.getByRole("button", { name: "Send answer" }).click();
      await page.getByRole("heading", { name: "Answered by ada" }).waitFor();
      await isSound(page, `nested-answered-${kind}`);
      const { body } = await house.agents.collect(round_id, { key: "c" });
      assert.deepEqual(body.responses.shipment.content, {
        to: { street: "Elm" },
        parcels: [{ kg: 2.5, kind: "bag" }],
      });
    });
  }
});
