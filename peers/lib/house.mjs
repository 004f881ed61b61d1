// A data folder with people and agents in it, and `sayso serve` over it: the HTTP API and the event stream.
import { atEnd } from "./ending.mjs";
import { WAIT_LIMIT_MS } from "./program.mjs";
import { dataFolder, finished, newToken, sayso } from "./sayso.mjs";

/** Starts `sayso serve` on a free port. @returns the program, and the address it listens on */
export async function serve(t, data) {
  const program = sayso(t, data, ["serve", "--listen", "127.0.0.1:0", "--json"]);
  const [line] = await program.line(/^\{.*\}$/);
  return { program, address: JSON.parse(line).listening };
}

/** The HTTP API as one principal. Every call answers `{status, body}`, whatever the status. */
export class Api {
  constructor(address, secret) {
    this.address = address;
    this.secret = secret;
  }

  async call(method, path, { body, key, headers = {} } = {}) {
    const response = await fetch(this.address + path, {
      method,
      headers: {
        authorization: `Bearer ${this.secret}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(key !== undefined && { "idempotency-key": key }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  get(path) {
    return this.call("GET", path);
  }

  /** Asks; `more` are further members of the round. @returns the stored round */
  async ask(requests, more = {}) {
    const { status, body } = await this.call("POST", "/v1/rounds", { body: { requests, ...more } });
    if (status !== 201) throw new Error(`asked and got ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  async round(id) {
    return (await this.get(`/v1/rounds/${id}`)).body;
  }

  answer(id, responses, { key, digest } = {}) {
    return this.call("POST", `/v1/rounds/${id}/responses`, { key, body: { responses, digest } });
  }

  collect(id, { key, wait = "45s" } = {}) {
    return this.call("POST", `/v1/rounds/${id}/collect?wait=${wait}`, { key });
  }
}

/** Everything that happens in a data folder from its first event on. */
export class EventStream {
  seen = [];
  #watchers = new Set();
  #broken;

  static async open(t, address, secret) {
    const stream = new EventStream();
    const stop = new AbortController();
    atEnd(t, () => stop.abort());
    const headers = { authorization: `Bearer ${secret}`, "last-event-id": "0" };
    const response = await fetch(`${address}/v1/events`, { headers, signal: stop.signal });
    if (response.status !== 200) throw new Error(`the event stream answered ${response.status}`);
    stream.#read(response.body).catch((error) => {
      stream.#broken = error;
      stream.#look();
    });
    return stream;
  }

  async #read(body) {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop();
      for (const frame of frames) this.#take(frame);
    }
    throw new Error("the event stream ended");
  }

  #take(frame) {
    const member = (name) =>
      frame
        .split("\n")
        .find((line) => line.startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim();
    // A frame without data is a heartbeat, and the snapshot only says where the stream begins.
    if (!member("data") || member("event") === "snapshot") return;
    this.seen.push(JSON.parse(member("data")));
    this.#look();
  }

  /** The first event of this kind, past or to come, for which `matches` holds. */
  first(kind, matches = () => true, { limit = WAIT_LIMIT_MS } = {}) {
    return new Promise((resolve, reject) => {
      const finish = (settle, value) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle(value);
      };
      const look = () => {
        const found = this.seen.find((event) => event.body.event === kind && matches(event));
        if (found) finish(resolve, found);
        else if (this.#broken) finish(reject, this.#broken);
      };
      const kinds = () => this.seen.map((event) => event.body.event).join(" ");
      const timer = setTimeout(() => finish(reject, new Error(`no event ${kind} in time, but ${kinds()}`)), limit);
      this.#watchers.add(look);
      look();
    });
  }

  /** How many events of a kind there were so far. */
  count(kind) {
    return this.seen.filter((event) => event.body.event === kind).length;
  }

  #look() {
    for (const look of [...this.#watchers]) look();
  }
}

class House {
  #asked = new Set();

  /** The next round that anybody opened in this house and that this has not answered with before. */
  async asked() {
    const event = await this.events.first("round_created", ({ round_id }) => !this.#asked.has(round_id));
    this.#asked.add(event.round_id);
    return this.people.round(event.round_id);
  }

  /** Waits until round `id` is over, in whatever way. @returns the round */
  async over(id, options) {
    const isIt = (event) => event.round_id === id;
    await Promise.any([this.events.first("resolved", isIt, options), this.events.first("failed", isIt, options)]);
    return this.people.round(id);
  }

  /** `sayso ARGS` as the person, by a token file. @returns `{code, stdout, stderr}` */
  cli(args) {
    return finished(sayso(this.t, this.data, [...args, "--token-file", this.person.file]));
  }

  /** A link that logs one browser in, as the person. */
  async login() {
    return JSON.parse((await this.cli(["login", "--url", this.address, "--json"])).stdout).url;
  }
}

/** A data folder with a person `ada` and an agent `booking`, `sayso serve` over it, and all its events. */
export async function openHouse(t) {
  const house = new House();
  house.t = t;
  house.data = await dataFolder(t);
  house.person = await newToken(t, house.data, "person", "ada");
  house.agent = await newToken(t, house.data, "agent", "booking");
  const { program, address } = await serve(t, house.data);
  house.server = program;
  house.address = address;
  house.people = new Api(address, house.person.secret);
  house.agents = new Api(address, house.agent.secret);
  house.events = await EventStream.open(t, address, house.person.secret);
  return house;
}
