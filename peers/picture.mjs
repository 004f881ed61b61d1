// Makes docs/images/inbox.png, the picture of the inbox in the README: the demo's question, half answered.
//
//     cargo build -p sayso-cli && node peers/picture.mjs [FILE]
//
// What differs from one run to the next (times, the account's name) is replaced, so that the picture only changes when
// the page does.
import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { openBrowser, openPage, WIDTHS } from "./lib/browser.mjs";
import { dataFolder, sayso } from "./lib/sayso.mjs";

const file = resolve(process.argv[2] ?? resolve(import.meta.dirname, "../docs/images/inbox.png"));
const endings = [];
const run = { after: (end) => endings.push(end) };

try {
  const demo = sayso(run, await dataFolder(run), ["demo", "--listen", "127.0.0.1:0"]);
  const [link] = await demo.line(/http:\/\/\S+\/login\?token=\S+/);
  const page = await openPage(run, await openBrowser(run), { width: WIDTHS.desk });
  await page.goto(link.trim());
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("link", { name: "shipping asks for information" }).click();
  await page.getByLabel("Street and number (required)").fill("1 Main Street");
  await page.getByLabel("City (required)").fill("Pune");
  await page.getByLabel("Express, tomorrow").check();
  await page.getByLabel("Postal code (optional)").focus();
  await page.mouse.move(0, 0);
  await page.evaluate(settle);
  await mkdir(dirname(file), { recursive: true });
  await page.screenshot({ path: file, fullPage: true, caret: "hide" });
} finally {
  for (const end of endings) await end();
}

function settle() {
  for (const time of document.querySelectorAll("time")) time.textContent = "2 minutes ago";
  for (const exact of document.querySelectorAll(".exact")) exact.textContent = "(2026-12-01 09:30:00 UTC)";
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/local:\S+/, "local:ada");
}
