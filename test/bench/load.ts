// The client: raw sockets, with one load after another, controlled by main. Closed loop: each
// connection sends the next request after its response. Open loop: a fixed number of requests per
// second. A slow response never delays the next request, and a late send counts from its due time.
import { connect, type Socket } from "node:net";

export interface Load {
  port: number;
  path: string;
  headers: Record<string, string>;
  body: string;
  connections: number;
  ms: number;
  /** Ends after this number of requests, if that is earlier. */
  most?: number;
  /** Requests per second. If unset, the loop is closed. */
  rate?: number;
  /** Each connection sends one request, and the load ends with the last response. */
  once?: boolean;
}

export interface Measured {
  requests: number;
  errors: number;
  firstError?: string;
  ms: number;
  events: number;
  /** Microseconds. */
  p50: number;
  p99: number;
  first50: number;
  first99: number;
  event50: number;
  event99: number;
}

const now = () => Number(process.hrtime.bigint() / 1000n);
const CRLF2 = Buffer.from("\r\n\r\n");
const AT = Buffer.from('"@');
const LAST = Buffer.from("0\r\n\r\n");

function centile(values: number[], share: number): number {
  if (values.length === 0) return 0;
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

class Run {
  readonly #load: Load;
  readonly #request: Buffer;
  readonly #until: number;
  readonly #began = now();
  readonly #whole: number[] = [];
  readonly #first: number[] = [];
  readonly #event: number[] = [];
  readonly #idle: Client[] = [];
  readonly #clients = new Set<Client>();
  #events = 0;
  #requests = 0;
  #errors = 0;
  #firstError: string | undefined;
  #resolve!: (measured: Measured) => void;
  #active = 0;
  #over = false;
  /** A request that is never answered must not keep the others. */
  #patience: NodeJS.Timeout;

  constructor(load: Load) {
    this.#load = load;
    const body = Buffer.from(load.body);
    const head = [
      `POST ${load.path} HTTP/1.1`,
      `host: 127.0.0.1:${load.port}`,
      "content-type: application/json",
      `content-length: ${body.length}`,
      ...Object.entries(load.headers).map(([name, value]) => `${name}: ${value}`),
    ].join("\r\n");
    this.#request = Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]);
    this.#until = this.#began + load.ms * 1000;
    this.#patience = setTimeout(() => {
      this.#errors += this.#active;
      this.#firstError ??= "no answer in a minute";
      this.#end();
    }, load.ms + 60_000);
  }

  start(): Promise<Measured> {
    const { connections, rate, once } = this.#load;
    if (rate !== undefined) this.#open(rate);
    else if (once) {
      // Spread over one second, like real clients.
      const each = 1000 / connections;
      for (let i = 0; i < connections; i++) {
        this.#active++;
        setTimeout(() => this.#fresh().ask(this.#request), i * each);
      }
    } else
      for (let i = 0; i < connections; i++) {
        this.#active++;
        this.#fresh().ask(this.#request);
      }
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  #fresh(): Client {
    const client: Client = new Client(this.#load.port, {
      first: (us) => void this.#first.push(us),
      event: (us) => {
        this.#events++;
        if (us >= 0) this.#event.push(us);
      },
      done: (us) => {
        this.#requests++;
        this.#whole.push(us);
        this.#next(client);
      },
      failed: (why) => {
        this.#clients.delete(client);
        if (this.#over) return;
        this.#errors++;
        this.#firstError ??= why;
        this.#next(undefined);
      },
    });
    this.#clients.add(client);
    return client;
  }

  #next(client: Client | undefined): void {
    this.#active--;
    const { most = Infinity } = this.#load;
    const late = now() >= this.#until || this.#requests + this.#active >= most;
    if (this.#load.rate !== undefined) {
      if (client) this.#idle.push(client);
      if (late && this.#active === 0) this.#end();
      return;
    }
    if (this.#load.once || late) {
      if (this.#active === 0) this.#end();
      return;
    }
    if (this.#errors > 1000) return this.#end();
    this.#active++;
    (client?.usable ? client : this.#fresh()).ask(this.#request);
  }

  #open(rate: number): void {
    // Timers come once a millisecond: that much is the clock's, not lateness.
    const GRAIN = 2_000;
    const gap = 1e6 / rate;
    let due = this.#began;
    const timer = setInterval(() => {
      const at = now();
      for (; due <= at && due < this.#until; due += gap) {
        this.#active++;
        let client = this.#idle.pop();
        while (client && !client.usable) client = this.#idle.pop();
        (client ?? this.#fresh()).ask(this.#request, at - due > GRAIN ? due : now());
      }
      if (at >= this.#until) {
        clearInterval(timer);
        if (this.#active === 0) this.#end();
      }
    }, 1);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#patience);
    const ms = (now() - this.#began) / 1000;
    for (const client of this.#clients) client.close();
    this.#resolve({
      requests: this.#requests,
      errors: this.#errors,
      ...(this.#firstError !== undefined && { firstError: this.#firstError }),
      ms,
      events: this.#events,
      p50: centile(this.#whole, 0.5),
      p99: centile(this.#whole, 0.99),
      first50: centile(this.#first, 0.5),
      first99: centile(this.#first, 0.99),
      event50: centile(this.#event, 0.5),
      event99: centile(this.#event, 0.99),
    });
  }
}

interface Heard {
  first(us: number): void;
  event(us: number): void;
  done(us: number): void;
  failed(why: string): void;
}

class Client {
  readonly #socket: Socket;
  readonly #heard: Heard;
  #asked = 0;
  #busy = false;
  #head = false;
  #missing = 0;
  #chunked = false;
  #spoken = false;
  #tail: Buffer = Buffer.alloc(0);
  #closing = false;
  usable = true;

  constructor(port: number, heard: Heard) {
    this.#heard = heard;
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.on("data", (data) => this.#data(data));
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => this.#lost("the connection was closed"));
  }

  ask(request: Buffer, due = now()): void {
    this.#busy = true;
    this.#head = this.#spoken = false;
    this.#tail = Buffer.alloc(0);
    this.#asked = due;
    this.#socket.write(request);
  }

  close(): void {
    this.usable = false;
    this.#socket.destroy();
  }

  #lost(why: string): void {
    this.usable = false;
    if (!this.#busy) return;
    this.#busy = false;
    this.#heard.failed(why);
  }

  #data(data: Buffer): void {
    if (!this.#busy) return;
    let body = data;
    if (!this.#head) {
      const end = data.indexOf(CRLF2);
      if (end < 0) return this.#lost("a head in pieces");
      const head = data.toString("latin1", 0, end);
      if (!head.startsWith("HTTP/1.1 200")) {
        this.#socket.destroy();
        return this.#lost(data.toString("latin1", 0, 600));
      }
      this.#head = true;
      this.#chunked = /transfer-encoding: *chunked/i.test(head);
      this.#closing = /connection: *close/i.test(head);
      this.#missing = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      body = data.subarray(end + 4);
    }
    if (!this.#chunked) {
      this.#missing -= body.length;
      if (this.#missing <= 0) this.#done();
      return;
    }
    const at = now();
    for (let i = body.indexOf(AT); i >= 0; i = body.indexOf(AT, i + 20)) {
      const sent =
        i + 18 <= body.length ? Number(body.toString("latin1", i + 2, i + 18)) : Number.NaN;
      if (!this.#spoken) {
        this.#spoken = true;
        this.#heard.first(at - this.#asked);
      }
      this.#heard.event(Number.isNaN(sent) ? -1 : at - sent);
    }
    const end =
      body.length >= 5 ? body.subarray(-5) : Buffer.concat([this.#tail, body]).subarray(-5);
    this.#tail = end;
    if (end.equals(LAST)) this.#done();
  }

  #done(): void {
    this.#busy = false;
    if (this.#closing) this.close();
    this.#heard.done(now() - this.#asked);
  }
}

process.on("message", (load: Load) => {
  void new Run(load).start().then((measured) => process.send!(measured));
});
process.on("disconnect", () => process.exit());
