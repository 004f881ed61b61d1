// The inbox as a person sees it.
import assert from "node:assert/strict";

import { faults, openPage, picture } from "./browser.mjs";

/** A page of the inbox, logged in by a link of its own; it shows the list. */
export async function openInbox(t, browser, house, options) {
  const page = await openPage(t, browser, options);
  await page.goto(await house.login());
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Waiting for you" }).waitFor();
  return page;
}

/** Checks a page as it now stands, and keeps its picture. */
export async function isSound(page, name) {
  await picture(page, name);
  assert.deepEqual(await faults(page), [], name);
}

/** The focus is, or comes to be, on the element with this id: a page that was sent for has it a moment after it is there. */
export async function hasFocus(page, id) {
  await page.locator(`[id="${id}"]:focus`).waitFor({ state: "attached", timeout: 10_000 });
}
