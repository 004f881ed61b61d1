// A program under test: its output is read line by line, and a test waits for a line or for the end, never for time.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { atEnd } from "./ending.mjs";

/** How long any wait may take before the test fails; a bound, not a pause. */
export const WAIT_LIMIT_MS = 60_000;

// Colour and cursor sequences (CSI), window titles (OSC), and the carriage return that a terminal adds.
const TERMINAL_SEQUENCES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\r/g;

export class Program {
  /** What it has written so far, a line each, without terminal sequences. */
  lines = { stdout: [], stderr: [] };
  #child;
  #watchers = new Set();
  #ended = false;
  // All of standard output, and how much of it `shows` has been asked about.
  #screen = "";
  #shown = 0;

  /**
   * Starts `command`; it is killed when the test `t` ends, if it still runs.
   * @param {{env?: Record<string, string>, cwd?: string}} options `env` is added to a small base, see `baseEnv`.
   */
  constructor(t, command, args, { env = {}, cwd } = {}) {
    this.#child = spawn(command, args, { cwd, env: { ...baseEnv(), ...env }, stdio: "pipe" });
    // A program may exit before it has read everything; that shows in its exit code and output.
    this.#child.stdin.on("error", () => {});
    this.#child.stdout.setEncoding("utf8").on("data", (text) => {
      this.#screen += text;
      this.#look();
    });
    for (const stream of ["stdout", "stderr"]) {
      createInterface({ input: this.#child[stream] }).on("line", (raw) => {
        const line = raw.replace(TERMINAL_SEQUENCES, "");
        this.lines[stream].push(line);
        this.#look();
      });
    }
    /** Resolves with `{code, signal}` once it has ended and all its output was read. */
    this.end = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        this.#ended = true;
        this.#look();
        resolve({ code, signal });
      });
    });
    this.end.catch(() => {});
    atEnd(t, () => this.kill().catch(() => {}));
  }

  get pid() {
    return this.#child.pid;
  }

  write(text) {
    this.#child.stdin.write(text);
  }

  closeInput() {
    this.#child.stdin.end();
  }

  /**
   * Kills it as `kill -9` does and waits until it is gone. What it has started may live on and hold its pipes, which are
   * closed here.
   */
  async kill() {
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.pid !== undefined) {
      const gone = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await gone;
    }
    for (const stream of this.#child.stdio) stream.destroy();
    await this.end;
  }

  /** Everything written to a stream so far. */
  text(stream = "stdout") {
    return this.lines[stream].join("\n");
  }

  /** Sends a signal and does not wait. */
  signal(signal) {
    this.#child.kill(signal);
  }

  /**
   * The first line that matches, already written or still to come; after `from` lines if given.
   * @param {RegExp | ((line: string) => unknown)} pattern
   * @returns what `pattern` makes of the line: a match, or whatever is not false, undefined or null
   */
  line(pattern, { stream = "stdout", from = 0, limit = WAIT_LIMIT_MS } = {}) {
    const read = pattern instanceof RegExp ? (line) => line.match(pattern) : pattern;
    return this.#until(`line ${pattern} on ${stream}`, limit, () => {
      for (const line of this.lines[stream].slice(from)) {
        const found = read(line);
        if (found) return found;
      }
    });
  }

  /** Waits until standard output shows `text` after what was waited for before; it need not end a line. */
  shows(text) {
    return this.#until(`text ${JSON.stringify(text)}`, WAIT_LIMIT_MS, () => {
      const screen = this.#screen.replace(TERMINAL_SEQUENCES, "");
      const at = screen.indexOf(text, this.#shown);
      if (at < 0) return undefined;
      this.#shown = at + text.length;
      return text;
    });
  }

  #until(wanted, limitMs, find) {
    return new Promise((resolve, reject) => {
      const finish = (settle, value) => {
        clearTimeout(limit);
        this.#watchers.delete(look);
        settle(value);
      };
      const missing = (why) => new Error(`no ${wanted} ${why}\n${this.text("stdout")}\n${this.text("stderr")}`);
      const look = () => {
        const found = find();
        if (found) return finish(resolve, found);
        if (this.#ended) finish(reject, missing("before the program ended"));
      };
      const limit = setTimeout(() => finish(reject, missing("in time")), limitMs);
      this.#watchers.add(look);
      look();
    });
  }

  #look() {
    for (const look of [...this.#watchers]) look();
  }
}

/** A program under a pseudo-terminal. Its two streams are one there: all it says comes on `stdout`, and it reads echoed. */
export function inTerminal(t, command, args, { env = {}, cwd } = {}) {
  // A terminal of no size shows nothing.
  const line = `stty cols 160 rows 60; exec ${[command, ...args].map(quoted).join(" ")}`;
  return new Program(t, "script", ["--quiet", "--return", "--command", line, "/dev/null"], {
    cwd,
    env: { ...env, SHELL: "/bin/sh", TERM: "xterm" },
  });
}

function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

// In the environment of everything that this process starts, directly or not.
const MARK = `SAYSO_PEERS=${randomUUID()}`;

/** The environment of every program under test: what it needs to run, and nothing of the developer's own settings. */
export function baseEnv() {
  const { PATH, HOME } = process.env;
  const [name, value] = MARK.split("=");
  return { PATH, HOME, LANG: "C.UTF-8", NO_COLOR: "1", [name]: value };
}

// What outlives its parent is nobody's child: a server whose gateway was killed waits for its answer for ten minutes.
process.on("exit", () => {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(MARK)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile, or is somebody else's.
    }
  }
});
