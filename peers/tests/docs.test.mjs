// What the documentation tells a reader to type works: the blocks marked `sh runnable` of each page are run in order, in
// one shell on a terminal, in an empty folder.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { describe, test } from "node:test";

import { inTerminal } from "../lib/program.mjs";
import { dataFolder, SAYSO } from "../lib/sayso.mjs";

const REPOSITORY = resolve(import.meta.dirname, "../..");
// The port that `sayso serve` takes unless told otherwise. Here it is a free one.
const PORT = /\b7717\b/g;

/** The runnable blocks of a page with the lines they begin at. */
function runnable(text) {
  const blocks = [];
  let block;
  for (const [at, line] of text.split("\n").entries()) {
    if (block && line.startsWith("```")) {
      blocks.push(block);
      block = undefined;
    } else if (block) {
      block.lines.push(line);
    } else if (/^```(sh|console)\b.*\b(runnable|test)\b/.test(line)) {
      block = { at: at + 1, lines: [] };
    }
  }
  return blocks;
}

async function pages() {
  const docs = await readdir(join(REPOSITORY, "docs"), { recursive: true });
  const names = [
    "README.md",
    "CONTRIBUTING.md",
    ...docs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  ];
  const read = names
    .sort()
    .map(async (name) => ({ name, blocks: runnable(await readFile(join(REPOSITORY, name), "utf8")) }));
  return (await Promise.all(read)).filter(({ blocks }) => blocks.length > 0);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A folder with a `sayso` in it whose server listens on `port`. */
async function commands(folder, port) {
  const bin = join(folder, "bin");
  await mkdir(bin);
  const script = `#!/bin/sh
case $1 in
serve) shift; exec ${SAYSO} serve --listen 127.0.0.1:${port} "$@" ;;
login) shift; exec ${SAYSO} login --url http://127.0.0.1:${port} "$@" ;;
esac
exec ${SAYSO} "$@"
`;
  await writeFile(join(bin, "sayso"), script, { mode: 0o755 });
  return bin;
}

// What must have been shown for a page's example to have gone all the way.
const SHOWN = {
  "README.md": [/"staging"/],
  "docs/approvals.md": [/"verdict": "ask"/, /"verdict": "allow"/, /A person approved this call/, /"grant_id": "grt_/, /"revoked":1/],
  "docs/http.md": [/"status": "resolved"/, /"street": "1 Main Street"/, /"code": "forbidden"/, /^event: ?resolved$/m],
  "docs/kit.md": [/"outcome": "completed"/, /"managed_input_conflict"/],
};

const documented = await pages();

test("the pages that show commands have runnable blocks", () => {
  const names = documented.map(({ name }) => name);
  for (const name of Object.keys(SHOWN)) assert.ok(names.includes(name), `${name}: none is marked`);
});

describe("the runnable blocks of", { concurrency: 2 }, () => {
  for (const { name, blocks } of documented) {
    test(name, async (t) => {
      const folder = await dataFolder(t);
      const port = await freePort();
      const [bin, cwd, home] = [await commands(folder, port), join(folder, "work"), join(folder, "home")];
      await mkdir(cwd);
      await mkdir(home);
      const marked = blocks.map(({ at, lines }) => [`echo "# ${name}:${at}"`, ...lines].join("\n"));
      const file = join(folder, "blocks.sh");
      await writeFile(file, marked.join("\n").replace(PORT, String(port)));
      const env = { PATH: bin + delimiter + process.env.PATH, HOME: home };
      const shell = inTerminal(t, "/bin/bash", ["-euo", "pipefail", file], { cwd, env });
      const { code } = await shell.end;
      assert.equal(code, 0, shell.text());
      assert.doesNotMatch(shell.text(), /^error\[/m);
      for (const words of SHOWN[name] ?? []) assert.match(shell.text(), words);
    });
  }
});
