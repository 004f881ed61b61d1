// Debian's Chromium, driven by Playwright, with axe for what a screen reader would miss.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { WAIT_LIMIT_MS } from "./program.mjs";

const axeSource = readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** The two widths that every page is looked at: a phone's and a desk's. */
export const WIDTHS = { phone: 390, desk: 1280 };

/** A browser that ends with the test. It reaches this machine only: what it would fetch by itself is switched off. */
export async function openBrowser(t) {
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  t.after(() => browser.close());
  return browser;
}

// Pages opened without JavaScript.
const scriptless = new WeakSet();

/** A page in a context of its own, so without cookies. */
export async function openPage(browser, { width = WIDTHS.desk, javaScript = true } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, javaScriptEnabled: javaScript });
  context.setDefaultTimeout(WAIT_LIMIT_MS);
  const page = await context.newPage();
  if (!javaScript) scriptless.add(page);
  return page;
}

/** What axe finds wrong on a page, a line each: the rule, what it asks, and the elements. Works without JavaScript too. */
export async function violations(page) {
  if (scriptless.has(page)) await page.evaluate(lendTimers);
  await page.evaluate(await axeSource);
  const results = await page.evaluate(() => globalThis.axe.run());
  return results.violations.map(
    ({ id, help, nodes }) => `${id}: ${help} (${nodes.map((node) => node.target.join(" ")).join(", ")})`,
  );
}

// Where JavaScript is off no timer ever fires, and axe defers its work by timers. Its short ones run as microtasks; its
// long ones are bounds on fetches and frames, which may stay unfired. (queueMicrotask would never call back either.)
function lendTimers() {
  globalThis.setTimeout = (callback, delay = 0, ...args) => {
    if (delay < 1000) Promise.resolve(args).then((values) => callback(...values));
    return 0;
  };
}

/** Whether the page is wider than its window, so that a phone would scroll sideways. */
export function scrollsSideways(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}
