// What the other tests see with: a browser check that finds nothing, or a terminal that is none, would prove nothing.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import test from "node:test";

import { openBrowser, openPage, scrollsSideways, violations, WIDTHS } from "../lib/browser.mjs";
import { inTerminal, Program } from "../lib/program.mjs";

const PAGE = `<!doctype html><html lang="en"><title>t</title><main><h1>t</h1><input name="street">
<script>document.title = "scripted"</script></main></html>`;

async function serve(t) {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.setHeader("content-security-policy", "default-src 'none'; script-src 'unsafe-inline'");
    response.end(PAGE);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/`;
}

for (const javaScript of [true, false]) {
  test(`axe finds an unlabelled field, JavaScript ${javaScript ? "on" : "off"}`, async (t) => {
    const address = await serve(t);
    const page = await openPage(t, await openBrowser(t), { width: WIDTHS.phone, javaScript });
    await page.goto(address);
    assert.equal(await page.title(), javaScript ? "scripted" : "t");
    assert.match((await violations(page)).join("\n"), /^label: .*input/m);
    assert.equal(await scrollsSideways(page), false);
  });
}

test("a program is watched by its lines and its end", async (t) => {
  const program = new Program(t, "/bin/sh", ["-c", "echo ready; read word; echo got $word >&2; exit 3"]);
  await program.line(/^ready$/);
  program.write("yes\n");
  assert.equal((await program.line(/got (.*)/, { stream: "stderr" }))[1], "yes");
  assert.deepEqual(await program.end, { code: 3, signal: null });
  await assert.rejects(program.line(/never/), /before the program ended/);
});

test("a pseudo-terminal is a terminal on every stream, passes words as they are and the exit code on", async (t) => {
  const script = 'test -t 0 && test -t 1 && test -t 2 && echo "[$1]" && read word && echo "got $word" && exit 3';
  const program = inTerminal(t, "/bin/sh", ["-c", script, "sh", "it's  $HOME"]);
  await program.line(/^\[it's {2}\$HOME\]$/);
  program.write("yes\n");
  await program.line(/^got yes$/);
  assert.deepEqual(await program.end, { code: 3, signal: null });
});
