// Debian's Chromium, driven by Playwright, with axe for what a screen reader would miss.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { atEnd } from "./ending.mjs";

// Longer than any page takes on a busy machine; a bound, not a pause.
const PAGE_LIMIT_MS = 20_000;

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
  atEnd(t, () => browser.close());
  return browser;
}

// Pages opened without JavaScript.
const scriptless = new WeakSet();

/** A page in a context of its own, so without cookies; it is closed with the test. */
export async function openPage(t, browser, { width = WIDTHS.desk, javaScript = true } = {}) {
  // Without motion, since what is still fading in has too little contrast.
  const context = await browser.newContext({
    viewport: { width, height: 844 },
    javaScriptEnabled: javaScript,
    reducedMotion: "reduce",
  });
  atEnd(t, () => context.close());
  context.setDefaultTimeout(PAGE_LIMIT_MS);
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

/**
 * What every page of the inbox must be free of, a line each: what axe finds, sideways scrolling, unnamed controls, inline
 * code.
 */
export async function faults(page) {
  const found = await violations(page);
  if (await scrollsSideways(page)) found.push("the page scrolls sideways");
  return [...found, ...(await page.evaluate(unsound))];
}

function unsound() {
  const found = [];
  const name = (element) => element.outerHTML.slice(0, 120);
  for (const control of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (control.labels.length !== 1) found.push(`one label is missing: ${name(control)}`);
  }
  for (const element of document.querySelectorAll("[aria-describedby], [aria-labelledby]")) {
    const ids = ["aria-describedby", "aria-labelledby"].map((attribute) => element.getAttribute(attribute) ?? "");
    for (const id of ids.join(" ").split(" ").filter(Boolean)) {
      if (!document.getElementById(id)) found.push(`no element ${id}, which describes ${name(element)}`);
    }
  }
  for (const element of document.querySelectorAll("*")) {
    const isInline = element.localName === "script" ? !element.src : element.localName === "style";
    const hasCode = [...element.attributes].some(
      ({ name, value }) => (name === "style" && value) || name.startsWith("on"),
    );
    if (isInline || hasCode) found.push(`inline code or style: ${name(element)}`);
  }
  return found;
}

/** Keeps a picture of the whole page, where the environment says in which folder. */
export async function picture(page, name) {
  const folder = process.env.PEERS_PICTURES;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
