// A program under test: its output is read line by line, and a test waits for a line or for the end, never for time.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

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

  /**
   * Starts `command`; it is killed when the test `t` ends, if it still runs.
   * @param {{env?: Record<string, string>, cwd?: string}} options `env` is added to a small base, see `baseEnv`.
   */
  constructor(t, command, args, { env = {}, cwd } = {}) {
    this.#child = spawn(command, args, { cwd, env: { ...baseEnv(), ...env }, stdio: "pipe" });
    // A program may exit before it has read everything; that shows in its exit code and output.
    this.#child.stdin.on("error", () => {});
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
    t.after(async () => {
      if (!this.#ended) this.#child.kill("SIGKILL");
      await this.end.catch(() => {});
    });
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

  /** Sends a signal and waits for the end. */
  async kill(signal = "SIGKILL") {
    this.#child.kill(signal);
    return this.end;
  }

  /** Everything written to a stream so far. */
  text(stream = "stdout") {
    return this.lines[stream].join("\n");
  }

  /**
   * The first line that matches, already written or still to come; after `from` lines if given.
   * @param {RegExp} pattern
   * @returns {Promise<RegExpMatchArray>}
   */
  line(pattern, { stream = "stdout", from = 0 } = {}) {
    return new Promise((resolve, reject) => {
      const finish = (settle, value) => {
        clearTimeout(limit);
        this.#watchers.delete(look);
        settle(value);
      };
      const missing = (why) =>
        new Error(`no line ${pattern} on ${stream} ${why}\n${this.text("stdout")}\n${this.text("stderr")}`);
      const look = () => {
        for (const line of this.lines[stream].slice(from)) {
          const match = line.match(pattern);
          if (match) return finish(resolve, match);
        }
        if (this.#ended) finish(reject, missing("before the program ended"));
      };
      const limit = setTimeout(() => finish(reject, missing("in time")), WAIT_LIMIT_MS);
      this.#watchers.add(look);
      look();
    });
  }

  #look() {
    for (const look of [...this.#watchers]) look();
  }
}

/** A program under a pseudo-terminal. Its two streams are one there: all it says comes on `stdout`, and it reads echoed. */
export function inTerminal(t, command, args, { env = {} } = {}) {
  const line = [command, ...args].map(quoted).join(" ");
  return new Program(t, "script", ["--quiet", "--return", "--command", line, "/dev/null"], {
    env: { ...env, SHELL: "/bin/sh", TERM: "xterm" },
  });
}

function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** The environment of every program under test: what it needs to run, and nothing of the developer's own settings. */
export function baseEnv() {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, LANG: "C.UTF-8", NO_COLOR: "1" };
}
