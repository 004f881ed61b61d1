// The `sayso` command of the debug build, on a data folder of the test's own.
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { atEnd } from "./ending.mjs";
import { inTerminal, Program } from "./program.mjs";

const repository = resolve(import.meta.dirname, "../..");

/** Where the binary is; `./test` builds it first. */
export const SAYSO = join(process.env.CARGO_TARGET_DIR ?? join(repository, "target"), "debug/sayso");

/** An empty folder that goes with the test. */
export async function dataFolder(t) {
  const folder = await mkdtemp(join(tmpdir(), "sayso-peers-"));
  atEnd(t, () => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** `sayso ARGS` without a terminal, as a script or an agent would start it. */
export function sayso(t, data, args) {
  return new Program(t, built(), args, { env: { SAYSO_DATA: data } });
}

/**
 * `sayso ARGS` under a pseudo-terminal, as a person would start it: only then does the local credential work.
 * What both streams say comes on `stdout`.
 */
export function saysoInTerminal(t, data, args) {
  return inTerminal(t, built(), args, { env: { SAYSO_DATA: data } });
}

/** Runs to the end and answers `{code, stdout, stderr}`. */
export async function finished(program) {
  const { code } = await program.end;
  return { code, stdout: program.text("stdout"), stderr: program.text("stderr") };
}

/** A credential made by the folder's owner: its secret, and a file that holds it. */
export async function newToken(t, data, kind, name) {
  const { secret } = await told(saysoInTerminal(t, data, ["token", "new", "--kind", kind, "--name", name, "--json"]));
  const file = join(data, `${name}.token`);
  await writeFile(file, secret, { mode: 0o600 });
  return { secret, file };
}

/** The JSON object that a command printed on a line of its own, once it has ended well. */
export async function told(program) {
  const { code, stdout, stderr } = await finished(program);
  if (code !== 0) throw new Error(`exit code ${code}\n${stdout}\n${stderr}`);
  return JSON.parse(stdout.split("\n").find((line) => line.startsWith("{")));
}

function built() {
  if (!existsSync(SAYSO)) throw new Error(`${SAYSO} is not built: run ./test --only peers`);
  return SAYSO;
}
